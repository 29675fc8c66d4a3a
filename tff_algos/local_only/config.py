"""Settings of local training alone. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import AlgorithmConfig, group
from tff_algos.settings.local_training import LocalTrainingConfig


@dataclasses.dataclass(frozen=True)
class LocalOnlyConfig(AlgorithmConfig):
    """What a client gets out of its own data; a round is the local training of FedAvg.

    Trials chose the default rate (docs/algorithms.md).
    """

    training: LocalTrainingConfig = group(lambda: LocalTrainingConfig(learning_rate=3e-4), flag_prefix="")
