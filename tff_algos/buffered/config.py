"""Settings of FedBuff. Imports no TensorFlow."""

import dataclasses

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.asynchronous import (
    CONCURRENCY_HELP,
    DECAY_NEEDS,
    GRACE_NEEDS,
    STALENESS_NAMES,
    TrainingTimesConfig,
)
from tff_algos.settings.config_fields import AlgorithmConfig, group, setting
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.searched import SERVER_MOMENTUM, SGD_RATES


@dataclasses.dataclass(frozen=True)
class BufferedConfig(AlgorithmConfig):
    """FedBuff (Nguyen et al. 2022), without its secure aggregation; a round is one aggregation."""

    training: LocalTrainingConfig = group(
        lambda: LocalTrainingConfig(steps=20, optimizer="sgd", learning_rate=0.1), flag_prefix=""
    )
    times: TrainingTimesConfig = group(TrainingTimesConfig, flag_prefix="")
    buffer_size: int = setting(3, "Updates that the server waits for before it aggregates (paper: K).", minimum=1)
    concurrency: int = setting(0, CONCURRENCY_HELP, minimum=0)
    server: ServerStepConfig = group(ServerStepConfig, flag_prefix="server_")
    staleness: str = setting("polynomial", "How an update's weight falls with staleness.", choices=STALENESS_NAMES)
    staleness_decay: float = setting(
        0.5,
        "Exponent of polynomial, slope of hinge.",
        minimum=0,
        needs=DECAY_NEEDS,
    )
    staleness_grace: float = setting(
        4.0,
        "Staleness up to which hinge is 1.",
        minimum=0,
        needs=GRACE_NEEDS,
    )

    def check_devices(self, profiles: DeviceProfiles, num_clients: int) -> None:
        self.times.check_devices(profiles)


SEARCHED = {
    "learning_rate": SGD_RATES,
    # Eta_g, and a momentum beside it. Trials chose 1.5, the highest of theirs.
    "server_learning_rate": "log(0.3,3)",
    "server_momentum": SERVER_MOMENTUM,
    # K: a small buffer makes many steps of few updates each.
    "buffer_size": "int(2,10)",
}
