"""Settings of training on pooled data. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import AlgorithmConfig, group
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.searched import ADAM_RATES


@dataclasses.dataclass(frozen=True)
class PooledConfig(AlgorithmConfig):
    """What one model gets out of all clients' data; a round is the local training of FedAvg, on all examples."""

    training: LocalTrainingConfig = group(LocalTrainingConfig, flag_prefix="")


SEARCHED = {
    "learning_rate": ADAM_RATES,
    # A pass over all examples is as many steps as all clients together take, so that one a round may be enough.
    "epochs": "1|5",
}
