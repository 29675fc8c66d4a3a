"""How the clients' statistics reach the server: computed inside each client's computation, with noise if asked for.

Without privacy a client returns its mean, standard deviation and skewness (Eq. 1). With privacy it returns its noisy
moment vector, from which the server derives them and the client's noisy size (see `privacy`).

What the server has then is one array, *shared*, with a row for each client: the means, the standard deviations and the
skewnesses of its columns; with privacy, its noisy number of examples before them.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.fed_sikd import privacy
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.statistics import (
    compute_moment_sums,
    compute_statistics,
    count_examples,
    statistics_from_moments,
)
from tff_algos.late_computation import LateComputation
from tff_algos.seeds import derive_seed
from tff_algos.settings.config_fields import ConfigError

_BYTES_OF_VALUE = 8  # statistics travel as float64


@dataclasses.dataclass(frozen=True)
class StatisticsSharing:
    """The exchange before the first round.

    Attributes:
      collect: () -> the shared array, float64, shape (clients, 3 * columns), or (clients, 1 + 3 * columns) with
        privacy; see `take_statistics` and `take_noisy_sizes`.
      bytes_up: what all clients send together, in bytes.
      spent_epsilon: the epsilon that it costs each client at `privacy_delta`; None without privacy.
    """

    collect: Callable[[], np.ndarray]
    bytes_up: int
    spent_epsilon: float | None


def take_statistics(shared: np.ndarray) -> np.ndarray:
    """The statistics in a shared array, shape (clients, 3 * columns)."""
    # Three columns a feature: a column beyond that is the sizes.
    return shared[:, shared.shape[1] % 3 :]


def take_noisy_sizes(shared: np.ndarray) -> np.ndarray | None:
    """The clients' noisy numbers of examples in a shared array, each at least 1, shape (clients,).

    None if it has none: without privacy, and in states of earlier versions, which had the statistics alone.
    """
    return shared[:, 0] if shared.shape[1] % 3 else None


def build_statistics_sharing(
    model_spec: ModelSpec, clients: FederatedData, config: FedSiKDConfig, seed: int
) -> StatisticsSharing:
    """The exchange under `config`; `collect` needs a TFF context.

    Raises:
      ConfigError: privacy is asked for and the data set has no known feature range.
    """
    num_columns = 1 if config.statistics == "scalar" else int(np.prod(model_spec.format.input_shape))
    bytes_of_column, kind = 3 * len(clients.clients) * _BYTES_OF_VALUE, config.statistics
    if not config.privacy_epsilon:

        def compute_exact(x, noise_seed):
            return compute_statistics(_preprocess(model_spec, x), kind)

        compute = LateComputation(_build_client_computation, compute_exact, model_spec)
        return StatisticsSharing(lambda: _run(compute, clients, seed), bytes_of_column * num_columns, None)
    # That of the numbers which the model gets, scaled or as they are stored.
    feature_range = (model_spec if model_spec.input_dtype else clients).format.preprocessing.feature_range
    if feature_range is None:
        raise ConfigError(
            "privacy_epsilon",
            config.privacy_epsilon,
            "0 for this data set, whose values have no known range to clip to",
        )
    delta, accountant = config.privacy_delta, config.privacy_accountant
    noise_multiplier = privacy.calibrate_noise_multiplier(config.privacy_epsilon, delta, accountant)
    deviation = noise_multiplier * privacy.compute_sensitivity(num_columns)

    def compute_noisy_moments(x, noise_seed):
        normalized = privacy.normalize_features(_preprocess(model_spec, x), feature_range)
        return privacy.add_noise(compute_moment_sums(normalized, kind), deviation, noise_seed)

    compute = LateComputation(_build_client_computation, compute_noisy_moments, model_spec)

    def collect():
        moments = _run(compute, clients, seed)
        statistics = [statistics_from_moments(row, kind) for row in moments]
        in_units = [privacy.restore_units(row, feature_range).ravel() for row in statistics]
        return np.column_stack([count_examples(moments), np.stack(in_units)])

    bytes_up = bytes_of_column * num_columns + len(clients.clients) * _BYTES_OF_VALUE  # the moments and the count
    return StatisticsSharing(collect, bytes_up, privacy.spent_epsilon(noise_multiplier, delta, accountant))


def _preprocess(model_spec: ModelSpec, x: tf.Tensor) -> tf.Tensor:
    return tf.ensure_shape(model_spec.preprocess(x), (None, *model_spec.model_input_shape))


def _build_client_computation(compute: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], model_spec: ModelSpec) -> Callable:
    """The computation {<path, seed>}@CLIENTS -> {float64 vector}@CLIENTS of `compute(examples, seed)`."""
    client_type = tff.StructWithPythonType([np.str_, tff.TensorType(np.int32, (2,))], tuple)

    @tff.tensorflow.computation(client_type)
    def client_work(client):
        path, seed = client
        x, _ = read_split(path, "train", model_spec)
        return tf.reshape(compute(x, seed), [-1])

    @tff.federated_computation(tff.FederatedType(client_type, tff.CLIENTS))
    def share(clients):
        return tff.federated_map(client_work, clients)

    return share


def _run(share: Callable, clients: FederatedData, seed: int) -> np.ndarray:
    inputs = [(client.path, derive_seed(seed, "privacy noise", client=client.index)) for client in clients.clients]
    return np.stack([np.asarray(vector, np.float64) for vector in share(inputs)])
