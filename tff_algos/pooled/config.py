"""Settings of training on pooled data. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import AlgorithmConfig, group
from tff_algos.settings.local_training import LocalTrainingConfig


@dataclasses.dataclass(frozen=True)
class PooledConfig(AlgorithmConfig):
    """What one model gets out of all clients' data; a round is the local training of FedAvg, on all examples."""

    training: LocalTrainingConfig = group(LocalTrainingConfig, flag_prefix="")
