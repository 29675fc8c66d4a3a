"""How the server steps along the clients' mean update; shared by all algorithms that do. Imports no TensorFlow.

What is done with these settings is in `tff_algos/rounds/server_step.py`.
"""

import dataclasses

from tff_algos.settings.config_fields import Needs, check, setting

SGD, ADAM, YOGI, ADAGRAD, RMSPROP = OPTIMIZERS = ("sgd", "adam", "yogi", "adagrad", "rmsprop")


def needs_optimizer(*names: str, field: str = "optimizer") -> Needs:
    """The need that the field, which names an optimizer, has one of these names."""
    return Needs(field, lambda given: given in names, f"--{{flag}}={' or '.join(names)}")


@dataclasses.dataclass(frozen=True)
class ServerStepConfig:
    """The server's step along the mean update; by default the update, times the learning rate, is added."""

    optimizer: str = setting(
        SGD,
        "Optimizer of the server's step; all but plain sgd is an extension of other papers (Reddi et al. 2021).",
        choices=OPTIMIZERS,
        of_old_runs=SGD,
    )
    learning_rate: float = setting(
        1.0,
        "Factor on the averaged update; 1 is plain averaging, and adam, yogi and adagrad want about 0.03 (paper: eta).",
        above=0,
        of_old_runs=1.0,
    )
    momentum: float = setting(
        0.0,
        "Momentum of the server's step; 0.9 with sgd is FedAvgM.",
        minimum=0,
        below=1,
        needs=needs_optimizer(SGD, RMSPROP),
        of_old_runs=0.0,
    )
    nesterov: bool = setting(
        False,
        "Nesterov's momentum.",
        needs=(needs_optimizer(SGD), Needs("momentum", lambda momentum: momentum > 0, "--{flag}=0.9")),
    )
    beta_1: float = setting(
        0.9, "Decay of the mean of past updates.", minimum=0, below=1, needs=needs_optimizer(ADAM, YOGI)
    )
    beta_2: float = setting(
        0.99, "Decay of the mean of past squared updates.", minimum=0, below=1, needs=needs_optimizer(ADAM, YOGI)
    )
    epsilon: float = setting(
        1e-3,
        "Added to the root by which the step is divided, under it for adagrad; smaller is more adaptive (paper: tau).",
        above=0,
        needs=needs_optimizer(ADAM, YOGI, ADAGRAD, RMSPROP),
    )
    initial_accumulator: float = setting(
        1e-6, "Sum of squares before the first update (paper: tau^2).", minimum=0, needs=needs_optimizer(ADAGRAD)
    )
    decay: float = setting(
        0.9, "Decay of the mean of past squared updates.", minimum=0, below=1, needs=needs_optimizer(RMSPROP)
    )

    def __post_init__(self):
        check(self)

    @property
    def is_plain(self) -> bool:
        """Whether the step only adds the update times the learning rate, and so keeps nothing between rounds."""
        return self.optimizer == SGD and not self.momentum
