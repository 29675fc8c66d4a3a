"""Settings of asynchronous FL with periodic aggregation. Imports no TensorFlow."""

import dataclasses

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.asynchronous import POLICY_NAMES, TrainingTimesConfig
from tff_algos.settings.config_fields import AlgorithmConfig, group, needs_value, setting
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.searched import SERVER_MOMENTUM, SGD_RATES


@dataclasses.dataclass(frozen=True)
class AsyncPeriodicConfig(AlgorithmConfig):
    """Hu et al. 2021; the paper prints N, R, T, lambda and the learning rates, not E, the batch size or gamma."""

    # Plain SGD with the regulariser of Eq. (8), as in the paper; the number of steps and the rate are the demo's.
    training: LocalTrainingConfig = group(
        lambda: LocalTrainingConfig(steps=20, optimizer="sgd", learning_rate=0.1, proximal_weight=0.02), flag_prefix=""
    )
    times: TrainingTimesConfig = group(TrainingTimesConfig, flag_prefix="")
    waiting: str = setting(
        "periodic",
        "periodic: the server aggregates every period; synchronous: it waits for all devices, as the paper's FedAvg, "
        "which has no proximal term.",
        choices=("periodic", "synchronous"),
    )
    period_fraction: float = setting(
        0.25,
        "Period of the aggregation as a share of T_max (paper: T / T_max).",
        above=0,
        needs=needs_value("waiting", "periodic"),
    )
    max_scheduled: int = setting(3, "Most devices that send their update at an aggregation (paper: R).", minimum=1)
    scheduling: str = setting("random", "Which of the ready devices these are.", choices=POLICY_NAMES)
    weighting: str = setting(
        "equal",
        "equal: by examples, Eq. (13); age_aware: times gamma to the power of the age, Eq. (14).",
        choices=("equal", "age_aware"),
    )
    gamma: float = setting(
        1.0,
        "Base of the age weights: above 1 favours old updates, below 1 fresh ones.",
        above=0,
        needs=needs_value("weighting", "age_aware"),
    )
    averaged_devices: str = setting(
        "scheduled",
        "scheduled: only their updates count; all: the others count with the model they started from, Eq. (10).",
        choices=("scheduled", "all"),
    )
    server: ServerStepConfig = group(ServerStepConfig, flag_prefix="server_")

    def check_devices(self, profiles: DeviceProfiles, num_clients: int) -> None:
        self.times.check_devices(profiles)


SEARCHED = {
    "learning_rate": SGD_RATES,
    # T / T_max: the shorter the period, the more aggregations and bytes. A quarter as printed; trials chose the longest
    # of theirs, a half, and 1 waits for all.
    "period_fraction": "float(0.1,1)",
    # The paper's finding: fresh updates should count more, or old ones where slow devices have data of their own. A
    # gamma of 1, the default, gives equal weights.
    "weighting": "age_aware",
    "gamma": "log(0.25,2)",
    "server_momentum": SERVER_MOMENTUM,
}
