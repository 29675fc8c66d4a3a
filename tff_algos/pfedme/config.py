"""Settings of pFedMe. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import ConfigError, group, setting
from tff_algos.settings.local_training import LocalTrainingConfig, build_sgd_training
from tff_algos.settings.searched import SGD_RATES


@dataclasses.dataclass(frozen=True)
class PFedMeConfig(SynchronousConfig):
    """pFedMe (Dinh et al. 2020, Algorithm 1); its beta is the learning rate of the server.

    The paper's experiments have a pull of 15 and an outer rate of 0.005, which takes hundreds of rounds.
    """

    training: LocalTrainingConfig = group(build_sgd_training, flag_prefix="")
    inner_steps: int = setting(
        5, "Steps to the personal model on each batch, at the learning rate (paper: K).", minimum=1, smoke=1
    )
    pull: float = setting(1.0, "Pull of the personal model to the client's copy of w (paper: lambda).", minimum=0)
    outer_rate: float = setting(
        0.5, "Rate at which w follows the personal model, by outer_rate * pull a batch (paper: eta).", above=0
    )

    def __post_init__(self):
        super().__post_init__()
        if self.training.proximal_weight:
            raise ConfigError("proximal_weight", self.training.proximal_weight, "0: the pull is pFedMe's own such term")


SEARCHED = {
    "learning_rate": SGD_RATES,
    # K: how well the personal model is solved for on a batch. 2 was chosen on images, 5 on HAR.
    "inner_steps": "2|5",
    # Lambda: the paper has 15, and hundreds of rounds. With a weak pull the personal model keeps more of itself.
    "pull": "log(0.3,3)",
    # Eta. Times the pull it stays below 2, above which the shared model would swing further out with each batch.
    "outer_rate": "log(0.05,0.6)",
}
