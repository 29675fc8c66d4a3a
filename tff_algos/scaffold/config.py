"""Settings of SCAFFOLD. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import ConfigError, group
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.synchronous import SynchronousConfig


@dataclasses.dataclass(frozen=True)
class ScaffoldConfig(SynchronousConfig):
    """SCAFFOLD (Karimireddy et al. 2020, Algorithm 1, option II); the control variates are those of plain SGD."""

    training: LocalTrainingConfig = group(
        lambda: LocalTrainingConfig(optimizer="sgd", learning_rate=0.05), flag_prefix=""
    )

    def __post_init__(self):
        super().__post_init__()
        if self.training.optimizer != "sgd" or self.training.momentum:
            value, expected = self.training.optimizer, "sgd without momentum: the steps are read as gradients"
            raise ConfigError("optimizer", value, expected)
