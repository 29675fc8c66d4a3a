"""Settings of FedAsync. Imports no TensorFlow."""

import dataclasses

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.asynchronous import (
    CONCURRENCY_HELP,
    DECAY_NEEDS,
    GRACE_NEEDS,
    STALENESS_NAMES,
    TrainingTimesConfig,
)
from tff_algos.settings.config_fields import SMOKE_CLIENTS, AlgorithmConfig, group, setting
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.searched import SGD_RATES


@dataclasses.dataclass(frozen=True)
class FedAsyncConfig(AlgorithmConfig):
    """FedAsync (Xie et al. 2019); a round here is a number of updates, for evaluation and checkpoints."""

    # The paper's regulariser has rho = 0.005.
    training: LocalTrainingConfig = group(
        lambda: LocalTrainingConfig(steps=20, optimizer="sgd", learning_rate=0.1, proximal_weight=0.005), flag_prefix=""
    )
    times: TrainingTimesConfig = group(TrainingTimesConfig, flag_prefix="")
    mixing_weight: float = setting(
        0.6, "Weight of a fresh update in the global model (paper: alpha).", above=0, maximum=1
    )
    staleness: str = setting("polynomial", "How the weight falls with staleness (paper: s).", choices=STALENESS_NAMES)
    staleness_decay: float = setting(
        0.5,
        "Exponent of polynomial, slope of hinge (paper: a).",
        minimum=0,
        needs=DECAY_NEEDS,
    )
    staleness_grace: float = setting(
        4.0,
        "Staleness up to which hinge is 1 (paper: b).",
        minimum=0,
        needs=GRACE_NEEDS,
    )
    concurrency: int = setting(0, CONCURRENCY_HELP, minimum=0)
    updates_per_round: int = setting(10, "Updates mixed in between two evaluations.", minimum=1, smoke=SMOKE_CLIENTS)

    def check_devices(self, profiles: DeviceProfiles, num_clients: int) -> None:
        self.times.check_devices(profiles)


SEARCHED = {
    "learning_rate": SGD_RATES,
    # Alpha: how far the model follows one update. Between 0.2 and 0.6 data differ in which they want.
    "mixing_weight": "float(0.1,0.9)",
    # A: how much less stale updates count; 0 is the paper's constant.
    "staleness_decay": "float(0,1)",
}
