"""FedSiKD with private updates: the noise on the students' and the teachers' sums, and what both cost together.

Each client has one cluster, which is known from the noisy statistics that all clients released (or drawn at random).
The student of the next round needs one sum alone, that over all clients of

    (n_min / n_k) * clip(update),    k the client's cluster, n_k its size, n_min the least size,

divided by K n_min: the mean of the cluster means (step 4). A client changes it by at most the clip norm. The teachers,
which all members of a cluster train, are a second release of the round: the clusters' sums side by side.
"""

from collections.abc import Sequence

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.fed_sikd import privacy
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.protocol import Weights
from tff_algos.rounds.aggregators import Aggregate
from tff_algos.rounds.noise_sources import SeededNoise
from tff_algos.rounds.privacy_accounting import Accounting
from tff_algos.rounds.private_aggregation import PrivateAggregator, check_private_model
from tff_algos.settings.update_privacy import check_delta

STUDENTS, TEACHERS = range(2)  # the releases of a round


def weight_cluster_sums(sums: Sequence[np.ndarray], sizes: np.ndarray) -> Weights:
    """sum_k (n_min / n_k) * sums[k], one array a weight, from sums stacked by cluster.

    Args:
      sums: each of shape (clusters, *shape).
      sizes: clients of each cluster, at least 1, shape (clusters,).
    """
    shares = (sizes.min() / sizes).astype(np.float32)
    return tuple(np.tensordot(shares, np.asarray(array), axes=1) for array in sums)


class PrivateStudents(PrivateAggregator):
    """The students' release: one row, which is the mean over all clusters once the server has divided it."""

    def weigh(self, sums: Weights, sizes: np.ndarray) -> tuple[Weights, int]:
        weighted = tuple(array[np.newaxis] for array in weight_cluster_sums(sums, sizes))
        return weighted, len(sizes) * int(sizes.min())


class PrivateTeachers(PrivateAggregator):
    """The teachers' release: for each cluster the noisy mean of its members, all of which train."""

    def finish(self, values, weight, counts, sizes, state, round_num) -> Aggregate:
        noisy = super().finish(values, weight, counts, sizes, state, round_num)
        # A divisor of the aggregate is one number for all rows, and clusters differ in size.
        divisors = sizes.astype(np.float32)
        means = tuple(array / divisors.reshape(-1, *[1] * (array.ndim - 1)) for array in noisy.update)
        return noisy._replace(update=means, divisor=1)


def build_private_aggregators(
    model_spec: ModelSpec, clients: FederatedData, config: FedSiKDConfig, seed: int
) -> tuple[PrivateStudents, PrivateTeachers]:
    """The aggregators of the students and of the teachers, which share one state, the students' to keep.

    Raises:
      ConfigError: a model has weights that are not trained, or the budget cannot be kept.
    """
    statistics_multiplier = None
    if config.uses_statistics:  # which hide examples, and so does the whole run
        check_delta(config.privacy, int(clients.num_train.sum()), "examples")
        statistics_multiplier = privacy.calibrate_noise_multiplier(
            config.privacy_epsilon, config.privacy_delta, config.privacy_accountant
        )
    check_private_model(model_spec)
    if config.trains_teacher:
        check_private_model(model_spec.teacher)
    releases, num_clients = 2 if config.trains_teacher else 1, len(clients.clients)
    accounting = Accounting(
        config.privacy.delta,
        num_clients,
        num_clients,
        "fixed",
        releases,
        statistics_multiplier,
        asked=config.privacy.accountant,
    )
    mechanism = config.privacy, accounting, SeededNoise(seed), accounting.settle_noise(config.privacy)
    return PrivateStudents(*mechanism, STUDENTS), PrivateTeachers(*mechanism, TEACHERS)
