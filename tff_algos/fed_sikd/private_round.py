"""FedSiKD with private updates: the noise on the students' and the teachers' sums, and what both cost together.

Each client has one cluster, which is known from the noisy statistics that all clients released (or drawn at random).
The student of the next round needs one sum alone, that over all clients of

    (n_min / n_k) * clip(update),    k the client's cluster, n_k its size, n_min the least size,

divided by K n_min: the mean of the cluster means (step 4). A client changes it by at most the clip norm. The teachers,
which all members of a cluster train, are a second release of the round: the clusters' sums side by side.
"""

from collections.abc import Sequence

import numpy as np

from tff_algos.fed_sikd import privacy
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.protocol import Weights
from tff_algos.rounds.privacy_accounting import Accounting
from tff_algos.rounds.private_aggregation import ClipCounts, PrivacyState, PrivateSum, build_private_sum
from tff_algos.weights import add_deltas

STUDENTS, TEACHERS = range(2)  # the releases of a round


def build_fed_sikd_private_sum(config: FedSiKDConfig, num_clients: int, has_teacher: bool, seed: int) -> PrivateSum:
    """The server's part of private updates; raises ConfigError if the budget cannot be kept."""
    statistics_multiplier = None
    if config.uses_statistics:
        statistics_multiplier = privacy.calibrate_noise_multiplier(config.privacy_epsilon, config.privacy_delta)
    releases = 2 if has_teacher else 1
    accounting = Accounting(config.privacy.delta, num_clients, num_clients, "fixed", releases, statistics_multiplier)
    return build_private_sum(config.privacy, accounting, seed)


def weight_cluster_sums(sums: Sequence[np.ndarray], sizes: np.ndarray) -> Weights:
    """sum_k (n_min / n_k) * sums[k], one array a weight, from sums stacked by cluster.

    Args:
      sums: each of shape (clusters, *shape).
      sizes: clients of each cluster, at least 1, shape (clusters,).
    """
    shares = (sizes.min() / sizes).astype(np.float32)
    return tuple(np.tensordot(shares, np.asarray(array), axes=1) for array in sums)


def step_student(
    private_sum: PrivateSum,
    student: Weights,
    sums: Sequence[np.ndarray],
    counts: ClipCounts,
    sizes: np.ndarray,
    state: PrivacyState,
    round_num: int,
) -> tuple[Weights, PrivacyState]:
    """The next student, from the clusters' sums without noise, and the mechanism's next state."""
    noisy, state = private_sum.add_noise(weight_cluster_sums(sums, sizes), counts, state, round_num, STUDENTS)
    return add_deltas(student, noisy, 1 / (len(sizes) * int(sizes.min()))), state


def step_teachers(
    private_sum: PrivateSum,
    teachers: Weights,
    sums: Sequence[np.ndarray],
    counts: ClipCounts,
    sizes: np.ndarray,
    state: PrivacyState,
    round_num: int,
) -> tuple[Weights, PrivacyState]:
    """The next teachers, each moved by the noisy mean of its cluster, and the mechanism's next state."""
    noisy, state = private_sum.add_noise(sums, counts, state, round_num, TEACHERS)
    means = (array / sizes.reshape(-1, *[1] * (array.ndim - 1)).astype(np.float32) for array in noisy)
    return add_deltas(teachers, means), state
