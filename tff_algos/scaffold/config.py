"""Settings of SCAFFOLD. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import ConfigError, group
from tff_algos.settings.local_training import LocalTrainingConfig, build_sgd_training
from tff_algos.settings.searched import SERVER_MOMENTUM, SGD_RATES


@dataclasses.dataclass(frozen=True)
class ScaffoldConfig(SynchronousConfig):
    """SCAFFOLD (Karimireddy et al. 2020, Algorithm 1, option II)."""

    training: LocalTrainingConfig = group(build_sgd_training, flag_prefix="")

    def __post_init__(self):
        super().__post_init__()
        if self.training.optimizer != "sgd" or self.training.momentum:
            expected = "sgd without momentum, since c_i reads the steps as gradients"
            raise ConfigError("optimizer", self.training.optimizer, expected)


SEARCHED = {
    "learning_rate": SGD_RATES,
    # Eta_g, the second rate of the paper's algorithm.
    "server_learning_rate": "log(0.3,1.5)",
    "server_momentum": SERVER_MOMENTUM,
    # Equal as printed; by examples as FedAvg is here.
    "client_weighting": "examples|equal",
}
