"""How a client personalises the shared model at the end; shared by all algorithms that do. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import ConfigError, check, setting

RULES = SAME, STEPS, RESOURCES = ("same", "steps", "resources")
MIN_RESOURCE, MAX_RESOURCE = 0.1, 1.0  # of R_i, as AMFL-P draws it (section 4.1)
TRAINED, INITIAL = STARTS = ("trained", "initial")


@dataclasses.dataclass(frozen=True)
class FineTuningConfig:
    """Gradient steps on a client's own train split, plain SGD on mini-batches of `--batch_size`."""

    steps: int = setting(
        100, "Steps of a client, or of the strongest (paper: N_max); 0: no fine-tuning.", minimum=0, smoke=1
    )
    learning_rate: float = setting(0.05, "Rate of a client, or of the strongest (paper: alpha_max).", above=0)
    batch_size: int = setting(16, "Examples in a mini-batch.", minimum=1, shared=True)
    rule: str = setting(
        SAME,
        "Steps and rate in proportion to a device's resources (resources, AMFL-P's), the steps alone, or the same.",
        choices=RULES,
    )
    start: str = setting(
        TRAINED,
        "What clients personalise: the model that was trained, or the random weights before the first round.",
        choices=STARTS,
    )
    curve: tuple[int, ...] = setting(
        (),
        "Steps after which accuracy is measured at the end, with commas between, from both starts; or empty.",
        minimum=0,
    )

    def __post_init__(self):
        check(self)
        if list(self.curve) != sorted(set(self.curve)):
            raise ConfigError("curve", self.curve, "numbers of steps in ascending order, such as 0,1,5,20,50,100")
        if self.curve and not self.steps:
            raise ConfigError("curve", self.curve, "none with steps=0, which is no fine-tuning")
