"""Settings of FL+HC. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import AlgorithmConfig, Needs, group, setting
from tff_algos.settings.local_training import LocalTrainingConfig


@dataclasses.dataclass(frozen=True)
class FLHCConfig(AlgorithmConfig):
    """FL+HC (Briggs et al. 2020, Algorithm 1)."""

    training: LocalTrainingConfig = group(LocalTrainingConfig, flag_prefix="")
    clustering_round: int = setting(
        1, "FedAvg rounds before the clients are clustered (Briggs et al.: n).", minimum=1, smoke=1
    )
    distance_threshold: float = setting(
        0.0,
        "Cut of the tree, Euclidean distance between updates, whatever num_clusters says; 0 cuts at that instead.",
        minimum=0,
    )
    num_clusters: int = setting(
        3,
        "Number of clusters if distance_threshold is 0.",
        minimum=1,
        needs=Needs("distance_threshold", lambda distance: distance == 0, "a threshold of 0"),
    )
    client_weighting: str = setting("examples", "Weight of a client in its cluster.", choices=("examples", "equal"))
