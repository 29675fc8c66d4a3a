"""Settings of AMFL-P. Imports no TensorFlow."""

import dataclasses

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.aggregation import (
    ADAGRAD,
    ADAM,
    RMSPROP,
    SGD,
    YOGI,
    AggregationConfig,
    ServerStepConfig,
    check_no_privacy,
)
from tff_algos.settings.config_fields import (
    SMOKE_CLIENTS,
    ConfigError,
    Needs,
    group,
    needs_value,
    participation_setting,
    setting,
)
from tff_algos.settings.fine_tuning import MAX_RESOURCE, MIN_RESOURCE, RESOURCES, STEPS, FineTuningConfig
from tff_algos.settings.searched import FINE_TUNING_RATES
from tff_algos.settings.update_privacy import (
    PrivateAlgorithmConfig,
    UpdatePrivacyConfig,
    check_equal_weights,
    check_reachable,
)

USES_QUALITY, USES_RESOURCE = ("adaptive", "quality"), ("adaptive", "resource")  # of the choices of `weighting`
MOMENTUM = "momentum"  # what AMFL-P calls sgd with momentum


@dataclasses.dataclass(frozen=True)
class AMFLPConfig(PrivateAlgorithmConfig):
    """AMFL-P; the paper prints alpha, beta, N_max and the range of R, which the experiments `amfl_p_building_*` have.

    The defaults were chosen by trials (docs/algorithms.md).
    """

    inner_steps: int = setting(1, "Gradient steps on the support batch in a round (paper: K).", minimum=0, maximum=50)
    inner_learning_rate: float = setting(0.1, "Rate of these steps (paper: alpha).", above=0)
    support_size: int = setting(32, "Examples that a device adapts to in a round (paper: D_train).", minimum=1, smoke=3)
    query_size: int = setting(
        32, "Further examples on which the adapted model is judged (paper: D_test).", minimum=1, smoke=3
    )
    query_after_support: bool = setting(
        False,
        "Of the examples drawn, the first support_size in the client's order are the support batch: for data in time.",
    )
    first_order: bool = setting(False, "FOMAML: the gradient at the adapted weights, without second derivatives.")
    reptile: bool = setting(False, "Reptile: the sum of the inner steps' gradients, in place of the meta-gradient.")
    meta_learning_rate: float = setting(0.01, "Rate of the server's step (paper: beta).", above=0)
    server_optimizer: str = setting(
        ADAM,
        "Optimizer of the server's step: sgd is plain, as printed; momentum is sgd with it.",
        choices=(SGD, MOMENTUM, ADAM, YOGI, ADAGRAD, RMSPROP),
    )
    server_momentum: float = setting(
        0.9,
        "Momentum of the server's step.",
        above=0,
        below=1,
        needs=needs_value("server_optimizer", MOMENTUM),
    )
    server_beta_1: float = setting(
        0.9,
        "Decay of the mean of past meta-gradients.",
        minimum=0,
        below=1,
        needs=needs_value("server_optimizer", ADAM, YOGI),
    )
    server_beta_2: float = setting(
        0.999,
        "Decay of the mean of past squares.",
        minimum=0,
        below=1,
        needs=needs_value("server_optimizer", ADAM, YOGI),
    )
    server_epsilon: float = setting(
        1e-7,
        "Added to the root by which the step is divided.",
        above=0,
        needs=needs_value("server_optimizer", ADAM, YOGI, ADAGRAD, RMSPROP),
    )
    weighting: str = setting(
        "adaptive",
        "Weight of a device: quality times resources (adaptive, as in the paper), one of them, its examples, or equal.",
        choices=("adaptive", "resource", "quality", "examples", "equal"),
    )
    quality_model: str = setting(
        "adapted",
        "Quality is that of the model after the inner steps (adapted), or of the fine-tuned one, as printed; costly.",
        choices=("adapted", "fine_tuned"),
        needs=Needs("weighting", lambda name: name in USES_QUALITY, "--{flag}=adaptive"),
    )
    cohort_size: int = setting(
        0,
        "Devices asked in a round; 0 or more than there are means all (paper).",
        minimum=0,
        smoke=SMOKE_CLIENTS,
    )
    participation: str = participation_setting()
    fine_tuning: FineTuningConfig = group(
        lambda: FineTuningConfig(rule=STEPS, steps=200, learning_rate=0.025, batch_size=48),
        flag_prefix="fine_tuning_",
        of_old_runs={"rule": RESOURCES},
    )
    resources: str = setting(
        "static",
        "static: the devices' resources stay (paper); dynamic: batteries and other work change them every round.",
        choices=("static", "dynamic"),
    )
    min_resource: float = setting(MIN_RESOURCE, "Least resource level of a device.", above=0, maximum=1)
    max_resource: float = setting(MAX_RESOURCE, "Largest resource level of a device (paper: 1.0).", above=0, maximum=1)
    resource_floor: float = setting(
        0.05, "With dynamic resources, a device below this level sits out the round.", minimum=0, below=1
    )
    aggregation: AggregationConfig = group(AggregationConfig, flag_prefix="")
    privacy: UpdatePrivacyConfig = group(UpdatePrivacyConfig, flag_prefix="dp_")

    def __post_init__(self):
        super().__post_init__()
        check_no_privacy(self.aggregation, self.privacy)
        if self.reptile and self.first_order:
            raise ConfigError("reptile", True, "either first_order or reptile, not both")
        if self.min_resource > self.max_resource:
            raise ConfigError("min_resource", self.min_resource, f"at most max_resource={self.max_resource}")
        if self.reptile and self.inner_steps == 0:
            raise ConfigError("inner_steps", 0, "at least 1 with reptile, which follows these steps")
        check_equal_weights(self.privacy, "weighting", self.weighting)
        if self.privacy.is_active and self.resources != "static":
            expected = f"static with dp_epsilon={self.privacy.epsilon:g}: who took part would be seen by its battery"
            raise ConfigError("resources", self.resources, expected)

    @property
    def server(self) -> ServerStepConfig:
        """The server's step as the settings of the other algorithms have it."""
        has_momentum = self.server_optimizer == MOMENTUM
        return ServerStepConfig(
            optimizer=SGD if has_momentum else self.server_optimizer,
            learning_rate=self.meta_learning_rate,
            momentum=self.server_momentum if has_momentum else 0.0,
            beta_1=self.server_beta_1,
            beta_2=self.server_beta_2,
            epsilon=self.server_epsilon,
        )

    @property
    def judges_fine_tuned(self) -> bool:
        """Whether each device of a cohort fine-tunes in every round, to judge its data."""
        return self.quality_model == "fine_tuned" and self.weighting in USES_QUALITY

    def check_examples(self, fewest: int) -> None:
        needed = self.support_size + self.query_size
        if fewest < needed:
            expected = (
                f"support_size + query_size of at most {fewest}, the examples of the smallest client, not {needed}"
            )
            raise ConfigError("support_size", self.support_size, expected)

    def check_devices(self, profiles: DeviceProfiles, num_clients: int) -> None:
        check_reachable(self.privacy, profiles)
        from tff_algos.simulation.virtual_clock import check_cohort_size  # here, since it needs NumPy

        check_cohort_size(self.cohort_size, profiles, num_clients)
        if profiles.resources is not None and (self.min_resource, self.max_resource) != (MIN_RESOURCE, MAX_RESOURCE):
            field = "min_resource" if self.min_resource != MIN_RESOURCE else "max_resource"
            expected = "its default with --device_profiles, which gives the resources"
            raise ConfigError(field, getattr(self, field), expected)


SEARCHED = {
    # Alpha: how far a device adapts before it is judged. 0.01 as printed; of 0.03 and 0.1, HAR wants the former.
    "inner_learning_rate": "log(0.01,0.3)",
    # K, which is not printed: "a few".
    "inner_steps": "1|3",
    # Beta: 0.001 as printed for a plain step; Adam's of 0.003 and 0.01 were chosen most.
    "meta_learning_rate": "log(0.0005,0.03)",
    # Alpha_max of the steps at the end, which make the personal models that are judged.
    "fine_tuning_learning_rate": FINE_TUNING_RATES,
}
