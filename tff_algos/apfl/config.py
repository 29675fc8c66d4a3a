"""Settings of APFL. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import ConfigError, group, setting
from tff_algos.settings.local_training import LocalTrainingConfig, build_sgd_training
from tff_algos.settings.searched import SERVER_MOMENTUM, SGD_RATES


@dataclasses.dataclass(frozen=True)
class APFLConfig(SynchronousConfig):
    """APFL (Deng et al. 2020, Algorithm 1)."""

    training: LocalTrainingConfig = group(build_sgd_training, flag_prefix="")
    alpha: float = setting(
        0.5, "Share of its own model in a client's mixture; the first one if adaptive.", minimum=0, maximum=1
    )
    adaptive: bool = setting(True, "Whether a client's alpha takes a step down its gradient in each round.")

    def __post_init__(self):
        super().__post_init__()
        if self.training.proximal_weight:
            raise ConfigError("proximal_weight", self.training.proximal_weight, "0: APFL has no such term")


SEARCHED = {
    "learning_rate": SGD_RATES,
    # The share of a client's own model, which the paper varies and then adapts.
    "alpha": "float(0.1,0.9)",
    # Adapted shares were ahead on HAR, fixed ones elsewhere.
    "adaptive": "true|false",
    "server_momentum": SERVER_MOMENTUM,
}
