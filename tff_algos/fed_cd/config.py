"""Settings of FedCD. Imports no TensorFlow."""

import dataclasses
from typing import Self

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.aggregation import AggregationConfig, CompressionConfig, ServerStepConfig, check_no_privacy
from tff_algos.settings.config_fields import (
    ASCENDING,
    SMOKE_CLIENTS,
    ConfigError,
    check_ascending,
    check_enough_clients,
    format_value,
    group,
    participation_setting,
    setting,
)
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.searched import ADAM_RATES, SERVER_MOMENTUM
from tff_algos.settings.update_privacy import (
    PrivateAlgorithmConfig,
    UpdatePrivacyConfig,
    check_equal_weights,
    check_reachable,
)

MOST_MILESTONES = 10  # 1,024 models
ALL, COHORT = "all", "cohort"


@dataclasses.dataclass(frozen=True)
class FedCDConfig(PrivateAlgorithmConfig):
    """FedCD (Kopparapu et al. 2020, Algorithm 1); the paper prints no optimizer, learning rate, batch size or noise."""

    training: LocalTrainingConfig = group(lambda: LocalTrainingConfig(epochs=3), flag_prefix="")
    compression: CompressionConfig = group(CompressionConfig, flag_prefix="compression_")
    cohort_size: int = setting(
        15, "Devices that train in a round, at most all (paper: K).", minimum=1, smoke=SMOKE_CLIENTS
    )
    participation: str = participation_setting()
    milestones: tuple[int, ...] = setting(
        (5, 15, 25, 30),
        "Rounds after which all models are cloned, with commas between; or empty.",
        minimum=1,
        expected=ASCENDING,
    )
    clone_schedule: str = setting(
        "shared",
        "Learning rate of a clone: the round's, or its schedule anew, counted by the rounds in which it was trained.",
        choices=("shared", "anew"),
    )
    clone_score: str = setting(
        "complement_of_score",
        "First score of a clone: 1 - its parent's score (as printed), or 1 - its parent's latest accuracy.",
        choices=("complement_of_score", "complement_of_accuracy"),
    )
    clone_history: str = setting(
        "none",
        "Accuracies that a clone begins with: none, or 1 - its parent's latest, which stays among its last ones.",
        choices=("none", "complement"),
    )
    weighting: str = setting(
        "scores",
        "A device's weight in the mean of a model: its score of it, Eq. (1), or equal, as Algorithm 1 reads.",
        choices=("scores", "equal"),
    )
    score_noise: float = setting(0.01, "Standard deviation of the noise on a score that is sent.", minimum=0)
    score_rounds: int = setting(3, "Evaluations in a score, the latest included (paper: l in Eq. (2)).", minimum=1)
    short_history: str = setting(
        "mean",
        "Score of a model with fewer evaluations than score_rounds: the mean of those that there are, or the latest.",
        choices=("mean", "latest"),
    )
    evaluated_devices: str = setting(
        ALL,
        "Who evaluates its models after a round, and may delete some: all devices, or those that trained in it.",
        choices=(ALL, COHORT),
    )
    deletion: str = setting(
        "below_best",
        "A device deletes models that score a deviation below its best, Eq. (4) as printed, or more than a deviation "
        "below the mean of its scores.",
        choices=("below_best", "below_mean"),
    )
    protected_models: int = setting(
        2,
        "A device's best models, which neither rule of deletion takes: 2, as the text promises, or 1, as printed.",
        minimum=1,
    )
    normalize_after_deletion: bool = setting(
        True, "Whether a device's scores sum to 1 again when it has deleted models; Algorithm 1 does not print it."
    )
    late_round: int = setting(
        20, "From this round on, a device with two models deletes the lower one if its score is low.", minimum=1
    )
    late_score: float = setting(0.3, "The highest score that counts as low.", minimum=0, maximum=0.5)
    aggregation: AggregationConfig = group(AggregationConfig, flag_prefix="")
    server: ServerStepConfig = group(ServerStepConfig, flag_prefix="server_")
    privacy: UpdatePrivacyConfig = group(UpdatePrivacyConfig, flag_prefix="dp_")

    def __post_init__(self):
        super().__post_init__()
        check_no_privacy(self.aggregation, self.privacy)
        check_ascending("milestones", self.milestones)
        if len(self.milestones) > MOST_MILESTONES:
            raise ConfigError(
                "milestones", self.milestones, f"at most {MOST_MILESTONES} rounds: each doubles the models"
            )
        check_equal_weights(self.privacy, "weighting", self.weighting)
        if self.privacy.is_active and self.clone_schedule != "shared":
            expected = f"shared with dp_epsilon={self.privacy.epsilon:g}: who trained a clone would be seen by its rate"
            raise ConfigError("clone_schedule", self.clone_schedule, expected)

    @property
    def capacity(self) -> int:
        """Slots for models: each milestone doubles them, and none is used twice."""
        return 2 ** len(self.milestones)

    def count_slots(self, round_num: int) -> int:
        """M in round `round_num`, before its milestone: slots given out so far, those of deleted models included."""
        return 2 ** sum(milestone < round_num for milestone in self.milestones)

    def check_run(self, rounds: int) -> None:
        """Raises ConfigError if a milestone lies beyond the last round."""
        fitting = tuple(milestone for milestone in self.milestones if milestone <= rounds)
        if fitting != self.milestones:
            wanted = format_value(fitting or max(1, rounds // 2))
            expected = f"rounds up to the last one, --rounds={rounds}; give --milestones={wanted} beside it"
            raise ConfigError("milestones", self.milestones, expected)

    def check_clients(self, num_clients: int) -> None:
        """Raises ConfigError if a round asks for more devices than there are, or its privacy means nothing."""
        check_enough_clients("cohort_size", self.cohort_size, num_clients)
        super().check_clients(num_clients)

    def shrink_to_smoke(self) -> Self:
        """Clones once, after the first round, if at all: a smoke run is over before the other milestones."""
        return dataclasses.replace(super().shrink_to_smoke(), milestones=(1,) if self.milestones else ())

    def check_devices(self, profiles: DeviceProfiles, num_clients: int) -> None:
        from tff_algos.simulation.virtual_clock import check_cohort_size  # here, since it needs NumPy

        check_reachable(self.privacy, profiles)
        check_cohort_size(self.cohort_size, profiles, num_clients)


SEARCHED = {
    "learning_rate": ADAM_RATES,
    # When models are cloned, and into how many: 5, 15, 25 and 30 as printed, which 45 rounds have room for. One model
    # more early on, or three, were better than four and eight later within what FedAvg takes.
    "milestones": "2|2,5",
    # From when a device may be left with one model; before that it trains and sends two. 20 as printed, of 45 rounds.
    "late_round": "int(5,20)",
    "server_momentum": SERVER_MOMENTUM,
}
