"""How a client trains in one round; shared by every algorithm. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import ASCENDING, ConfigError, Needs, check, check_ascending, setting


@dataclasses.dataclass(frozen=True)
class LocalTrainingConfig:
    """Settings of the local training loop (`tff_algos/client/local_training.py`)."""

    epochs: int = setting(
        5,
        "Passes over the client's train split in a round (paper: E).",
        minimum=1,
        smoke=1,
        needs=Needs("steps", lambda steps: steps == 0, "0 steps"),
    )
    steps: int = setting(0, "Mini-batch steps in a round instead of epochs; 0 means epochs.", minimum=0, smoke=1)
    batch_size: int = setting(
        16, "Examples in a mini-batch; the last one of an epoch may be smaller.", minimum=1, shared=True
    )
    optimizer: str = setting("adam", "Local optimizer, started afresh each round.", choices=("adam", "sgd"))
    learning_rate: float = setting(3e-3, "Step size of the local optimizer in the first round.", above=0)
    momentum: float = setting(0.0, "Momentum of sgd.", minimum=0, below=1)
    learning_rate_decay: float = setting(
        1.0, "Factor on the learning rate after every learning_rate_decay_rounds rounds.", above=0, maximum=1
    )
    learning_rate_decay_rounds: int = setting(
        1,
        "Rounds between two decays of the learning rate.",
        minimum=1,
        needs=Needs("learning_rate_decay", lambda factor: factor != 1, "a factor below 1"),
    )
    learning_rate_steps: tuple[int, ...] = setting(
        (),
        "Rounds after which the learning rate falls by learning_rate_step_factor, with commas between; or empty.",
        minimum=1,
        expected=ASCENDING,
    )
    learning_rate_step_factor: float = setting(
        0.1,
        "Factor on the learning rate after each of learning_rate_steps.",
        above=0,
        maximum=1,
        needs=Needs("learning_rate_steps", bool, "rounds, such as --{flag}=25,50,75"),
    )
    weight_decay: float = setting(
        0.0,
        "L2 decay of kernels (trained weights of two or more axes): weight_decay * kernel is added to the gradient.",
        minimum=0,
    )
    proximal_weight: float = setting(
        0.0, "Weight mu of mu/2 * squared distance to the start weights, added to the loss (FedProx).", minimum=0
    )

    def __post_init__(self):
        check(self)
        if self.momentum and self.optimizer == "adam":
            raise ConfigError("momentum", self.momentum, "0 with the optimizer adam, which has no such setting")

        check_ascending("learning_rate_steps", self.learning_rate_steps)
        if self.learning_rate_steps and self.learning_rate_decay != 1:
            raise ConfigError(
                "learning_rate_steps",
                self.learning_rate_steps,
                f"none beside learning_rate_decay={self.learning_rate_decay:g}; give one schedule or the other",
            )

    def round_learning_rate(self, round_num: int) -> float:
        """The learning rate of round `round_num` (1-based)."""
        # Both schedules multiply, but the settings allow one of them only.
        decayed = self.learning_rate * self.learning_rate_decay ** ((round_num - 1) // self.learning_rate_decay_rounds)
        return decayed * self.learning_rate_step_factor ** sum(step < round_num for step in self.learning_rate_steps)


def build_sgd_training() -> LocalTrainingConfig:
    """The defaults of algorithms whose maths are those of plain SGD."""
    return LocalTrainingConfig(optimizer="sgd", learning_rate=0.05)
