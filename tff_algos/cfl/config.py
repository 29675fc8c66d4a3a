"""Settings of CFL. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.aggregation import AggregationConfig, CompressionConfig, ServerStepConfig
from tff_algos.settings.config_fields import AlgorithmConfig, Needs, group, setting
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.searched import ADAM_RATES


def _needs_no(multiple: str) -> Needs:
    return Needs(multiple, lambda value: value == 0, "--{flag}=0")


@dataclasses.dataclass(frozen=True)
class CFLConfig(AlgorithmConfig):
    """CFL (Sattler, Müller and Samek 2020)."""

    training: LocalTrainingConfig = group(LocalTrainingConfig, flag_prefix="")
    compression: CompressionConfig = group(CompressionConfig, flag_prefix="compression_")
    eps_1_multiple: float = setting(
        0.2,
        "A cluster has converged when its mean update's norm is below this times the largest it had; 0: see eps_1.",
        minimum=0,
    )
    eps_1: float = setting(
        0.0,
        "A cluster has converged when its mean update's norm is below this.",
        minimum=0,
        needs=_needs_no("eps_1_multiple"),
    )
    eps_2_multiple: float = setting(
        0.5,
        "A converged cluster is cut if a client's update is longer than this times the largest mean; 0: see eps_2.",
        minimum=0,
    )
    eps_2: float = setting(
        0.0,
        "A converged cluster is cut if a client's update is longer than this.",
        minimum=0,
        needs=_needs_no("eps_2_multiple"),
    )
    gamma_max: float = setting(
        0.73,  # noise alone has cosines near 0, and so 0.71
        "A cluster is cut if sqrt((1 - the largest cosine across) / 2) is above this; 0.71 is a cosine of 0.",
        minimum=0,
        maximum=1,
    )
    linkage: str = setting(
        "single",
        "single: the cut with the least cosine across; complete: parts of like sizes, as the authors' code has them.",
        choices=("single", "complete"),
    )
    client_weighting: str = setting("examples", "Weight of a client in its cluster.", choices=("examples", "equal"))
    aggregation: AggregationConfig = group(AggregationConfig, flag_prefix="")
    server: ServerStepConfig = group(ServerStepConfig, flag_prefix="server_")


SEARCHED = {
    "learning_rate": ADAM_RATES,
    # What may be cut at all: on rotated MNIST nothing is at the default, and cutting sooner gained 9 points.
    "gamma_max": "float(0,0.74)",
    # When a cluster has converged, which must come before the last round: a larger share cuts earlier.
    "eps_1_multiple": "float(0.1,0.8)",
    # How much one client must still pull then: a smaller share cuts more.
    "eps_2_multiple": "float(0.1,0.8)",
}
