"""Settings of FedAvg. Imports no TensorFlow."""

import dataclasses

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.compression import CompressionConfig
from tff_algos.settings.config_fields import SMOKE_CLIENTS, group, participation_setting, setting
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import (
    PrivateAlgorithmConfig,
    UpdatePrivacyConfig,
    check_equal_weights,
    check_reachable,
)
from tff_algos.simulation.availability import check_cohort_size


@dataclasses.dataclass(frozen=True)
class FedAvgConfig(PrivateAlgorithmConfig):
    """FedAvg (McMahan et al. 2017, Algorithm 1); with a proximal weight it is FedProx (Li et al. 2020)."""

    training: LocalTrainingConfig = group(LocalTrainingConfig, flag_prefix="")
    compression: CompressionConfig = group(CompressionConfig, flag_prefix="compression_")
    cohort_size: int = setting(
        0,
        "Clients asked in a round; 0 or more than there are means all (paper: max(C * K, 1)).",
        minimum=0,
        smoke=SMOKE_CLIENTS,
    )
    participation: str = participation_setting()
    client_weighting: str = setting("examples", "Weight of a client in the average.", choices=("examples", "equal"))
    server_learning_rate: float = setting(1.0, "Factor on the averaged update; 1 is plain averaging.", above=0)
    fine_tuning: FineTuningConfig = group(lambda: FineTuningConfig(steps=0), flag_prefix="fine_tuning_")
    privacy: UpdatePrivacyConfig = group(UpdatePrivacyConfig, flag_prefix="dp_")

    def __post_init__(self):
        super().__post_init__()
        check_equal_weights(self.privacy, "client_weighting", self.client_weighting)

    def check_devices(self, profiles: DeviceProfiles, num_clients: int) -> None:
        check_reachable(self.privacy, profiles)
        check_cohort_size(self.cohort_size, profiles, num_clients)
