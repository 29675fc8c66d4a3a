"""Settings of FedAvg, and of FedAvg with fine-tuning at its end. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import group
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.searched import ADAM_RATES, FINE_TUNING_RATES, SERVER_MOMENTUM


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


SEARCHED = {
    "learning_rate": ADAM_RATES,
    "server_momentum": SERVER_MOMENTUM,
}
# Reddi et al. tune both rates, each over a grid.
ADAPTIVE_SEARCHED = {
    "learning_rate": ADAM_RATES,
    "server_learning_rate": "log(0.003,0.1)",
}
# What counts is the rate over one minus the momentum (Hsu et al. 2019), so that both are varied.
MOMENTUM_SEARCHED = {
    "learning_rate": ADAM_RATES,
    "server_momentum": "float(0.5,0.98)",
    "server_learning_rate": "log(0.1,1)",
}
FINE_TUNED_SEARCHED = {
    "local_learning_rate": ADAM_RATES,
    "server_momentum": SERVER_MOMENTUM,
    # How far each client goes from the shared model at the end.
    "learning_rate": FINE_TUNING_RATES,
    "steps": "50|200",
}
