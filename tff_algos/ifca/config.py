"""Settings of IFCA. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import ConfigError, setting
from tff_algos.settings.searched import ADAM_RATES, SERVER_MOMENTUM

MODELS, GRADIENTS = "models", "gradients"


@dataclasses.dataclass(frozen=True)
class IFCAConfig(SynchronousConfig):
    """IFCA (Ghosh et al. 2020, Algorithm 1)."""

    num_models: int = setting(3, "Models that the clients choose from (paper: k).", minimum=1, smoke=2)
    averaging: str = setting(
        MODELS,
        "models: the mean of the models that were trained; gradients: one step along the clients' gradients.",
        choices=(MODELS, GRADIENTS),
    )
    dealt_rounds: int = setting(
        0,
        "Rounds at the start in which clients train a model dealt to them, whichever fits them best (paper: none).",
        minimum=0,
    )

    def __post_init__(self):
        super().__post_init__()
        if self.averaging == GRADIENTS:
            training = self.training
            if training.optimizer != "sgd" or training.momentum:
                expected = "sgd without momentum with averaging=gradients, whose step is the gradient"
                raise ConfigError("optimizer", training.optimizer, expected)
            if training.steps != 1:
                raise ConfigError("steps", training.steps, "1 with averaging=gradients: a client sends one gradient")


SEARCHED = {
    "learning_rate": ADAM_RATES,
    # K, which the paper's experiments know.
    "num_models": "int(2,5)",
    # The paper starts near the clusters; from random models, some may never be chosen unless clients are dealt them.
    "dealt_rounds": "0|2",
    "server_momentum": SERVER_MOMENTUM,
}
