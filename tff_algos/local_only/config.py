"""Settings of local training alone. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import check, group
from tff_algos.settings.local_training import LocalTrainingConfig


@dataclasses.dataclass(frozen=True)
class LocalOnlyConfig:
    """What a client gets out of its own data; a round is the local training of FedAvg."""

    training: LocalTrainingConfig = group(LocalTrainingConfig, flag_prefix="")

    def __post_init__(self):
        check(self)
