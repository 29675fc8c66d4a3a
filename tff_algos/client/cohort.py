"""The clients of a round: when they are asked, what each is told, and to which sizes cohorts are padded."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from tff_algos.client.cohort_draw import sample_cohort
from tff_algos.seeds import derive_seed
from tff_algos.settings.config_fields import STRATIFIED
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.virtual_clock import find_available


class ClientInput(NamedTuple):
    """What a client is told in a round (CLIENTS-placed); it reads its data itself.

    Attributes:
      path: path prefix of its files, `ClientFiles.path`.
      seed: int32, shape (2,).
      group: row of the stacked models that it starts from, and of the aggregate that it adds to, int32.
      weight: its weight in the mean of its group, float32.
      learning_rate: of this round, float32.
    """

    path: str
    seed: np.ndarray
    group: np.int32
    weight: np.float32
    learning_rate: np.float32


# In an empty slot: no examples, hence no update and no weight.
NOBODY = ClientInput("", np.zeros(2, np.int32), np.int32(0), np.float32(0.0), np.float32(0.0))


def choose_cohort(
    config: Any, data: FederatedData, able: np.ndarray, time_s: float, seed: int, round_num: int
) -> tuple[float, np.ndarray]:
    """The cohort of a round, ascending, after the virtual seconds until enough devices are available.

    Args:
      config: an algorithm's, with `cohort_size`, `participation` and `privacy`.
      data: the federation.
      able: indices of the devices that may be asked, ascending; of none the cohort is empty.
      time_s: virtual time at which the round begins.
      seed: the run's.
      round_num: 1-based.
    """
    wait_s, available = find_available(data.profiles, able, config.cohort_size, time_s, seed, round_num)
    return wait_s, draw_cohort(config, data, available, seed, round_num)


def draw_cohort(
    config: Any, data: FederatedData, available: np.ndarray, seed: int, round_num: int, more: int = 0
) -> np.ndarray:
    """The cohort among these clients, ascending; `more` are drawn beyond its size. Arguments as in `choose_cohort`."""
    if not available.size:
        return available
    size, participation, is_private = config.cohort_size, config.participation, config.privacy.is_active
    size, kinds = size and size + more, None
    if data.archetypes is not None and participation == STRATIFIED:
        kinds = np.array([data.archetypes.of_clients, data.archetypes.meta_of_clients]).T[available]
    return available[sample_cohort(len(available), size, participation, seed, round_num, is_private, kinds)]


def compute_padded_size(num_clients: int) -> int:
    """The next of the sizes 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, ... (four an octave).

    Each distinct number of clients makes the worker keep another executor with its threads and graphs (20 MB for a
    small model), so cohorts of varying size are padded to a few sizes. An empty slot has no examples and costs little.
    """
    # Four sizes an octave: at most a fifth of the slots are empty, and few executors are made.
    step = 2 ** max(num_clients.bit_length() - 3, 0)
    return -(-num_clients // step) * step


def compute_usual_slots(num_clients: int, mean_size: int) -> int:
    """Slots for a cohort that each client joins by chance; it fits in all but one round in a thousand, or fewer.

    The cohort's size is binomial. The slots are four standard deviations above its mean, at most all clients, padded.
    A run that pads all its cohorts to them (see `pad_cohort`) makes one executor, in its first round.

    Args:
      num_clients: clients that may join.
      mean_size: of the cohort, at most `num_clients`.
    """
    # Of a binomial; TFF's worker never frees an executor of a size that came once.
    deviation = math.sqrt(mean_size * (1 - mean_size / num_clients))
    return compute_padded_size(min(math.ceil(mean_size + 4 * deviation), num_clients))


def pad_cohort(inputs: Sequence[Any], min_slots: int = 1, padding: Any = NOBODY) -> list:
    """The cohort with empty slots up to its padded size, or up to `min_slots` if that is more.

    Args:
      inputs: what each client is told, possibly of none.
      min_slots: slots at least, at least 1.
      padding: what an empty slot is told; of the type of the inputs.
    """
    return [*inputs, *[padding] * (max(compute_padded_size(len(inputs)), min_slots) - len(inputs))]


def tell_clients(
    data: FederatedData,
    clients: np.ndarray,
    groups: np.ndarray,
    weighting: str,
    training: LocalTrainingConfig,
    seed: int,
    purpose: str,
    round_num: int,
) -> list[ClientInput]:
    """What each client of a cohort is told, without empty slots (see `pad_cohort`).

    Args:
      data: the federation.
      clients: indices of the cohort, in ascending order; new clients can be asked, too.
      groups: the row of each, shape (len(clients),).
      weighting: "examples" (of its train split) or "equal".
      training: gives the learning rate of the round.
      seed: the run's.
      purpose: what the clients do, which their seeds are derived from.
      round_num: 1-based.
    """
    learning_rate = np.float32(training.round_learning_rate(round_num))
    inputs = []
    for index, group in zip(clients, groups, strict=True):
        # A path, not the data: the client reads its files inside the computation, so nothing large travels.
        client = data.everyone[index]
        weight = np.float32(client.num_train if weighting == "examples" else 1)
        client_seed = derive_seed(seed, purpose, round_num, index)
        inputs.append(ClientInput(client.path, client_seed, np.int32(group), weight, learning_rate))
    return inputs
