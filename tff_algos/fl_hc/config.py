"""Settings of FL+HC. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.aggregation import AggregationConfig, ServerStepConfig
from tff_algos.settings.config_fields import (
    SMOKE_CLIENTS,
    AlgorithmConfig,
    Needs,
    check_enough_clients,
    group,
    setting,
)
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.searched import ADAM_RATES, SERVER_MOMENTUM

NO_MULTIPLE = Needs("distance_multiple", lambda multiple: multiple == 0, "--{flag}=0")


@dataclasses.dataclass(frozen=True)
class FLHCConfig(AlgorithmConfig):
    """FL+HC (Briggs et al. 2020, Algorithm 1)."""

    training: LocalTrainingConfig = group(LocalTrainingConfig, flag_prefix="")
    clustering_round: int = setting(
        1, "FedAvg rounds before the clients are clustered (Briggs et al.: n).", minimum=1, smoke=1
    )
    distance_multiple: float = setting(
        1.0,
        "Cut of the tree, as a multiple of the median distance between two clients' updates; 0 cuts it otherwise.",
        minimum=0,
    )
    distance_threshold: float = setting(
        0.0,
        "Cut of the tree, Euclidean distance between updates; 0 cuts it at num_clusters instead.",
        minimum=0,
        needs=NO_MULTIPLE,
    )
    num_clusters: int = setting(
        3,
        "Number of clusters if the tree is not cut at a distance.",
        minimum=1,
        smoke=SMOKE_CLIENTS,
        needs=(NO_MULTIPLE, Needs("distance_threshold", lambda distance: distance == 0, "a threshold of 0")),
    )
    client_weighting: str = setting("examples", "Weight of a client in its cluster.", choices=("examples", "equal"))
    aggregation: AggregationConfig = group(AggregationConfig, flag_prefix="")
    server: ServerStepConfig = group(ServerStepConfig, flag_prefix="server_")

    def check_clients(self, num_clients: int) -> None:
        """Raises ConfigError if the tree is cut into more clusters than there are clients."""
        if not self.distance_multiple and not self.distance_threshold:
            check_enough_clients("num_clusters", self.num_clusters, num_clients)


SEARCHED = {
    "learning_rate": ADAM_RATES,
    # Where the tree is cut, by which it depends whether there are clusters at all: trials chose 0.9 where clients come
    # in groups, 1.1 and 1.2 where labels alone differ.
    "distance_multiple": "float(0.7,1.3)",
    # N: the rounds before, after which updates point somewhere.
    "clustering_round": "int(1,5)",
    "server_momentum": SERVER_MOMENTUM,
}
