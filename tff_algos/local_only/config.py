"""Settings of local training alone. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import AlgorithmConfig, group
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.searched import ADAM_RATES


@dataclasses.dataclass(frozen=True)
class LocalOnlyConfig(AlgorithmConfig):
    """What a client gets out of its own data; a round is the local training of FedAvg.

    Trials chose the default rate (docs/algorithms.md).
    """

    training: LocalTrainingConfig = group(lambda: LocalTrainingConfig(learning_rate=3e-4), flag_prefix="")


SEARCHED = {
    "learning_rate": ADAM_RATES,
    # All that a client learns it learns here, and its few examples are soon learnt by heart: a round is as many passes.
    "epochs": "1|5",
}
