"""How a client personalises the shared model at the end; shared by all algorithms that do. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import check, setting


@dataclasses.dataclass(frozen=True)
class FineTuningConfig:
    """Gradient steps on a client's own train split, plain SGD on mini-batches of `--batch_size`."""

    steps: int = setting(
        100, "Steps of a client, or of the strongest (paper: N_max); 0: no fine-tuning.", minimum=0, smoke=1
    )
    learning_rate: float = setting(0.05, "Rate of a client, or of the strongest (paper: alpha_max).", above=0)
    batch_size: int = setting(16, "Examples in a mini-batch.", minimum=1, shared=True)

    def __post_init__(self):
        check(self)
