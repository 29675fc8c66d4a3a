"""Means and deviations of features over all clients' train examples, as federated sums. No paper's: plain statistics.

Each client returns (count, sum, sum of squares) of its values, shifted by an origin that the server broadcasts, in
float64, and the server gets nothing but the sums over the clients. This happens twice. The first time the origin is 0,
which gives the means. The second time it is the means, so that squares are of deviations alone: a feature at 1e6 with
a deviation of 1 keeps all its digits, which E[x^2] - E[x]^2 would lose.

The sums carry no noise. So a run with private updates does not use them (`launch.settings.run_checks`).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.federated_data import ClientFiles, FederatedData
from models.model_spec import ModelSpec
from models.standardization import LEAST_DEVIATION, count_scaled
from tff_algos.client.client_data import read_split
from tff_algos.late_computation import LateComputation
from tff_algos.seeds import derive_generator

MOST_CLIENTS = 2000  # that are asked; of more, so many are drawn by the seed

_ROUNDING = 2.0**-50  # of a mean: deviations below this share of it are rounding errors of equal values


class FeatureStatistics(NamedTuple):
    """Of each feature or channel, float64, and how many clients were asked. No deviation is 0: a constant has 1."""

    means: np.ndarray
    deviations: np.ndarray
    num_clients: int


def choose_clients(clients: FederatedData, seed: int) -> list[ClientFiles]:
    """The clients that are asked, in their order: all, or `MOST_CLIENTS` of them, those with examples only."""
    members = [client for client in clients.clients if client.num_train]
    if len(members) <= MOST_CLIENTS:
        return members
    chosen = derive_generator(seed, "feature statistics").choice(len(members), MOST_CLIENTS, replace=False)
    return [members[index] for index in sorted(chosen.tolist())]


def compute_feature_statistics(model_spec: ModelSpec, clients: FederatedData, seed: int) -> FeatureStatistics:
    """The statistics of the model's inputs before they are standardized; needs a TFF context."""
    chosen = choose_clients(clients, seed)
    add_up = LateComputation(_build_sums, model_spec.with_standardization(None))
    paths = [client.path for client in chosen]
    means = np.zeros(count_scaled(model_spec.model_input_shape))
    means, _ = divide_moments(*_ask(add_up, means, paths), means)
    means, deviations = divide_moments(*_ask(add_up, means, paths), means)
    return FeatureStatistics(means, deviations, len(chosen))


def divide_moments(
    count: float, sums: np.ndarray, squares: np.ndarray, origin: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(means, population deviations) from sums over shifted values; the deviation of a constant feature is 1.

    Args:
      count: of values of each feature, above 0.
      sums: of value - origin, float64, shape (features,).
      squares: of (value - origin) ** 2, alike.
      origin: what was taken from the values, alike; near the means, no digits of the deviations are lost.
    """
    shift = sums / count
    deviations = np.sqrt(np.maximum(squares / count - shift**2, 0.0))
    means = origin + shift
    is_constant = deviations <= np.maximum(LEAST_DEVIATION, _ROUNDING * np.abs(means))
    return means, np.where(is_constant, 1.0, deviations)


def _ask(add_up: Callable, origin: np.ndarray, paths: Sequence[str]) -> tuple[float, np.ndarray, np.ndarray]:
    totals = np.asarray(add_up(origin, list(paths)), np.float64)
    _, sums, squares = np.split(totals, [1, 1 + len(origin)])
    return float(totals[0]), sums, squares


def _build_sums(model_spec: ModelSpec) -> Callable:
    """(origin float64[n]@SERVER, {path}@CLIENTS) -> float64[1 + 2 n]@SERVER: count, sums, sums of squares."""
    size = count_scaled(model_spec.model_input_shape)
    shape = (None, *model_spec.model_input_shape)

    @tff.tensorflow.computation(tff.TensorType(np.float64, (size,)), tff.TensorType(np.str_))
    def client_work(origin, path):
        x, _ = read_split(path, "train", model_spec)
        x = tf.cast(tf.ensure_shape(model_spec.preprocess(x), shape), tf.float64)
        shifted = tf.reshape(x, (-1, size)) - origin
        count = tf.cast(tf.shape(shifted)[:1], tf.float64)
        return tf.concat([count, tf.reduce_sum(shifted, axis=0), tf.reduce_sum(tf.square(shifted), axis=0)], axis=0)

    @tff.federated_computation(
        tff.FederatedType(tff.TensorType(np.float64, (size,)), tff.SERVER),
        tff.FederatedType(tff.TensorType(np.str_), tff.CLIENTS),
    )
    def add_up(origin, paths):
        return tff.federated_sum(tff.federated_map(client_work, (tff.federated_broadcast(origin), paths)))

    return add_up
