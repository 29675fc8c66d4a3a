"""Settings of MOON. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import setting
from tff_algos.settings.searched import ADAM_RATES, SERVER_MOMENTUM


@dataclasses.dataclass(frozen=True)
class MoonConfig(SynchronousConfig):
    """MOON (Li, He and Song 2021, Algorithm 1).

    The temperature is the paper's. The paper tunes mu over 0.1, 1, 5 and 10, and takes 5, 1 and 1 on its three data
    sets; 1 is the default of the authors' code. Local training has our defaults, not the paper's SGD.
    """

    contrast_weight: float = setting(
        1.0, "Weight of the model-contrastive loss (paper: mu, tuned over 0.1, 1, 5 and 10); 0 is FedAvg.", minimum=0
    )
    temperature: float = setting(0.5, "Temperature of the model-contrastive loss (paper: tau).", above=0)


SEARCHED = {
    "learning_rate": ADAM_RATES,
    # Mu, which the paper tunes over this range, and tau.
    "contrast_weight": "log(0.1,10)",
    "temperature": "log(0.1,1)",
    "server_momentum": SERVER_MOMENTUM,
}
