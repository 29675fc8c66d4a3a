"""Settings of Ditto. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import setting
from tff_algos.settings.searched import ADAM_RATES, SERVER_MOMENTUM


@dataclasses.dataclass(frozen=True)
class DittoConfig(SynchronousConfig):
    """Ditto (Li et al. 2021, Algorithm 1)."""

    pull: float = setting(0.1, "Pull of the personal models to the global one (paper: lambda).", minimum=0)


SEARCHED = {
    "learning_rate": ADAM_RATES,
    # Lambda: from almost local training to almost the global model.
    "pull": "log(0.01,2)",
    "server_momentum": SERVER_MOMENTUM,
}
