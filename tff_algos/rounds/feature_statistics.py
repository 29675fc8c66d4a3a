"""Means and deviations of features over all clients' train examples, as federated sums. No paper's: plain statistics.

Each client returns (count, sum, sum of squares) of its values, shifted by an origin that the server broadcasts, in
float64, and the server gets nothing but the sums over the clients. Steps that fill sequences up are in none of them.
This happens twice. The first time the origin is 0,
which gives the means. The second time it is the means, so that squares are of deviations alone: a feature at 1e6 with
a deviation of 1 keeps all its digits, which E[x^2] - E[x]^2 would lose.

The sums carry no noise. So a run with private updates does not use them (`launch.settings.run_config`).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.federated_data import ClientFiles, FederatedData
from models.model_spec import ModelSpec
from models.standardization import LEAST_DEVIATION, Padding, count_scaled, find_measured
from tff_algos.client.client_data import read_split
from tff_algos.late_computation import LateComputation
from tff_algos.seeds import derive_generator

MOST_CLIENTS = 2000  # that are asked; of more, so many are drawn by the seed

_ROUNDING = 2.0**-50  # of a mean: deviations below this share of it are rounding errors of equal values


class FeatureStatistics(NamedTuple):
    """Of each feature or channel, and how many clients were asked.

    Attributes:
      means: float64, (features,); 0 where there is no value but padding.
      deviations: alike. None is 0: a constant has 1.
      no_switches: values that are stored as neither 0 nor 1, alike.
      num_clients: how many were asked.
    """

    means: np.ndarray
    deviations: np.ndarray
    no_switches: np.ndarray
    num_clients: int


def choose_clients(clients: FederatedData, seed: int) -> list[ClientFiles]:
    """The clients that are asked, in their order: all, or `MOST_CLIENTS` of them, those with examples only."""
    members = [client for client in clients.clients if client.num_train]
    if len(members) <= MOST_CLIENTS:
        return members
    chosen = derive_generator(seed, "feature statistics").choice(len(members), MOST_CLIENTS, replace=False)
    return [members[index] for index in sorted(chosen.tolist())]


def compute_feature_statistics(
    model_spec: ModelSpec, clients: FederatedData, seed: int, padding: Padding | None = None
) -> FeatureStatistics:
    """The statistics of the model's inputs before they are standardized; needs a TFF context.

    Args:
      model_spec: of the model.
      clients: whose train examples are measured.
      seed: draws the clients that are asked.
      padding: the steps that do not count.
    """
    chosen = choose_clients(clients, seed)
    add_up = LateComputation(_build_sums, model_spec.with_standardization(None), padding)
    paths = [client.path for client in chosen]
    size = count_scaled(model_spec.model_input_shape)
    counts, sums, squares, _ = _ask(add_up, np.zeros(size), paths)
    origin, _ = divide_moments(counts, sums, squares, np.zeros(size))
    counts, sums, squares, no_switches = _ask(add_up, origin, paths)
    means, deviations = divide_moments(counts, sums, squares, origin)
    return FeatureStatistics(means, deviations, no_switches, len(chosen))


def count_padded_steps(
    model_spec: ModelSpec, clients: FederatedData, seed: int, values: tuple[float, ...]
) -> np.ndarray:
    """int64 (values, 3): steps all of whose channels have a value, at the ends of sequences and within, and all steps.

    Of the model's inputs before they are standardized, of the same clients; needs a TFF context.
    """
    count = LateComputation(_build_count, model_spec.with_standardization(None), values)
    found = np.asarray(count([client.path for client in choose_clients(clients, seed)]), np.int64)
    at_ends, everywhere, total = found.reshape(-1, 3).T
    return np.stack([at_ends, everywhere - at_ends, total], axis=1)


def divide_moments(
    count: float | np.ndarray, sums: np.ndarray, squares: np.ndarray, origin: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(means, population deviations) from sums over shifted values; the deviation of a constant feature is 1.

    Args:
      count: of values of each feature; one without any has a mean of 0.
      sums: of value - origin, float64, shape (features,).
      squares: of (value - origin) ** 2, alike.
      origin: what was taken from the values, alike; near the means, no digits of the deviations are lost.
    """
    count = np.maximum(count, 1)
    shift = sums / count
    deviations = np.sqrt(np.maximum(squares / count - shift**2, 0.0))
    means = origin + shift
    # Dividing by a deviation that is only rounding would blow noise up to the size of a feature.
    is_constant = deviations <= np.maximum(LEAST_DEVIATION, _ROUNDING * np.abs(means))
    return means, np.where(is_constant, 1.0, deviations)


def _ask(add_up: Callable, origin: np.ndarray, paths: Sequence[str]) -> list[np.ndarray]:
    return np.split(np.asarray(add_up(origin, list(paths)), np.float64), 4)


def _build_sums(model_spec: ModelSpec, padding: Padding | None) -> Callable:
    """(origin float64[n]@SERVER, {path}@CLIENTS) -> float64[4 n]@SERVER, of each feature: how many values, their sum,
    that of their squares, and how many are stored as neither 0 nor 1.
    """
    size = count_scaled(model_spec.model_input_shape)
    shape = (None, *model_spec.model_input_shape)

    @tff.tensorflow.computation(tff.TensorType(np.float64, (size,)), tff.TensorType(np.str_))
    def client_work(origin, path):
        stored, _ = read_split(path, "train", model_spec)
        x = tf.ensure_shape(model_spec.preprocess(stored), shape)
        stored = tf.reshape(stored, (-1, size))
        is_other = tf.logical_and(tf.not_equal(stored, 0), tf.not_equal(stored, 1))
        shifted = tf.reshape(tf.cast(x, tf.float64), (-1, size)) - origin
        counts = tf.fill([size], tf.cast(tf.shape(shifted)[0], tf.float64))
        if padding is not None:  # decided while the graph is made
            is_measured = tf.reshape(tf.broadcast_to(find_measured(x, padding), tf.shape(x)), (-1, size))
            is_other = tf.logical_and(is_other, is_measured)
            shifted = tf.where(is_measured, shifted, 0)
            counts = tf.reduce_sum(tf.cast(is_measured, tf.float64), axis=0)
        others = tf.reduce_sum(tf.cast(is_other, tf.float64), axis=0)
        return tf.concat(
            [counts, tf.reduce_sum(shifted, axis=0), tf.reduce_sum(tf.square(shifted), axis=0), others], axis=0
        )

    @tff.federated_computation(
        tff.FederatedType(tff.TensorType(np.float64, (size,)), tff.SERVER),
        tff.FederatedType(tff.TensorType(np.str_), tff.CLIENTS),
    )
    def add_up(origin, paths):
        return tff.federated_sum(tff.federated_map(client_work, (tff.federated_broadcast(origin), paths)))

    return add_up


def _build_count(model_spec: ModelSpec, values: tuple[float, ...]) -> Callable:
    """{path}@CLIENTS -> int64[3 values]@SERVER: padded steps at the ends of sequences, all padded steps, all steps."""
    shape = (None, *model_spec.model_input_shape)

    @tff.tensorflow.computation(tff.TensorType(np.str_))
    def client_work(path):
        x, _ = read_split(path, "train", model_spec)
        x = tf.ensure_shape(model_spec.preprocess(x), shape)
        total = tf.size(x[..., :1] if len(shape) == 3 else x, tf.int64)
        counts = []
        for value in values:
            found = [find_measured(x, Padding(value, is_anywhere)) for is_anywhere in (False, True)]
            counts += [*(total - tf.math.count_nonzero(each) for each in found), total]
        return tf.stack(counts)

    @tff.federated_computation(tff.FederatedType(tff.TensorType(np.str_), tff.CLIENTS))
    def add_up(paths):
        return tff.federated_sum(tff.federated_map(client_work, paths))

    return add_up
