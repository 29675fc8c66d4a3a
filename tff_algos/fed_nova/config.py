"""Settings of FedNova. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import ConfigError, group
from tff_algos.settings.local_training import LocalTrainingConfig, build_sgd_training
from tff_algos.settings.searched import SERVER_MOMENTUM, SGD_RATES


@dataclasses.dataclass(frozen=True)
class FedNovaConfig(SynchronousConfig):
    """FedNova (Wang et al. 2020)."""

    training: LocalTrainingConfig = group(build_sgd_training, flag_prefix="")

    def __post_init__(self):
        super().__post_init__()
        if self.training.optimizer != "sgd":
            raise ConfigError("optimizer", self.training.optimizer, "sgd: for adam the paper has no weights of steps")
        if self.training.momentum and self.training.proximal_weight:
            expected = "0 with a momentum: the paper weighs the steps for one or the other"
            raise ConfigError("proximal_weight", self.training.proximal_weight, expected)
        if (pull := self.training.learning_rate * self.training.proximal_weight) >= 1:
            expected = (
                f"below {1 / self.training.learning_rate:g}, 1 / learning_rate: a step would go back by {pull:g} times "
                "the way, for which the paper weighs no steps"
            )
            raise ConfigError("proximal_weight", self.training.proximal_weight, expected)


# The paper has no setting of its own: it weighs the steps that there are.
SEARCHED = {
    "learning_rate": SGD_RATES,
    "server_momentum": SERVER_MOMENTUM,
}
