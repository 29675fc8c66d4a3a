"""Settings of FedAvg, and of FedAvg with fine-tuning at its end. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import group
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig


@dataclasses.dataclass(frozen=True)
class FedAvgConfig(SynchronousConfig):
    """FedAvg (McMahan et al. 2017, Algorithm 1); with a proximal weight it is FedProx (Li et al. 2020)."""


@dataclasses.dataclass(frozen=True)
class FineTunedConfig(SynchronousConfig):
    """FedAvg, then fine-tuning. The plain names are those of the fine-tuning; local training's begin with `local_`.

    The defaults were chosen by trials (docs/algorithms.md). Measuring accuracy takes longer than a round, since all
    clients fine-tune.
    """

    training: LocalTrainingConfig = group(lambda: LocalTrainingConfig(batch_size=48), flag_prefix="local_")
    fine_tuning: FineTuningConfig = group(
        lambda: FineTuningConfig(steps=200, learning_rate=0.025, batch_size=48), flag_prefix=""
    )
