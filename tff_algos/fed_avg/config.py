"""Settings of FedAvg. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import group
from tff_algos.settings.fine_tuning import FineTuningConfig


@dataclasses.dataclass(frozen=True)
class FedAvgConfig(SynchronousConfig):
    """FedAvg (McMahan et al. 2017, Algorithm 1); with a proximal weight it is FedProx (Li et al. 2020)."""

    fine_tuning: FineTuningConfig = group(lambda: FineTuningConfig(steps=0), flag_prefix="fine_tuning_")
