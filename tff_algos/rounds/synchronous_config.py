"""The settings that synchronous algorithms share: cohort, local training, and the parts of a round. No TensorFlow."""

import dataclasses

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.aggregation import (
    AggregationConfig,
    CompressionConfig,
    ServerStepConfig,
    check_cohort,
    check_no_privacy,
)
from tff_algos.settings.config_fields import SMOKE_CLIENTS, group, participation_setting, setting
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import (
    PrivateAlgorithmConfig,
    UpdatePrivacyConfig,
    check_equal_weights,
    check_reachable,
)


@dataclasses.dataclass(frozen=True)
class SynchronousConfig(PrivateAlgorithmConfig):
    """What an algorithm's config extends if `SynchronousProcess` runs it; a row can leave groups out by `unused`."""

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
    aggregation: AggregationConfig = group(AggregationConfig, flag_prefix="")
    server: ServerStepConfig = group(ServerStepConfig, flag_prefix="server_")
    privacy: UpdatePrivacyConfig = group(UpdatePrivacyConfig, flag_prefix="dp_")

    def __post_init__(self):
        super().__post_init__()
        check_equal_weights(self.privacy, "client_weighting", self.client_weighting)
        check_no_privacy(self.aggregation, self.privacy)

    def check_clients(self, num_clients: int) -> None:
        """Raises ConfigError if the privacy asked for, or the aggregator, means nothing for so many clients."""
        super().check_clients(num_clients)
        check_cohort(self.aggregation, min(self.cohort_size or num_clients, num_clients))

    def check_devices(self, profiles: DeviceProfiles, num_clients: int) -> None:
        check_reachable(self.privacy, profiles)
        from tff_algos.simulation.virtual_clock import check_cohort_size  # here, since it needs NumPy

        check_cohort_size(self.cohort_size, profiles, num_clients)
