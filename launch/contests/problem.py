"""What methods are tried on, and what a run of one may spend. Imports no TensorFlow."""

from typing import NamedTuple

from launch.runs.task_columns import TaskColumns

# Whose examples say how good a run is: each client's own, or those that all have in common.
OWN, COMMON = "own", "common"


class Problem(NamedTuple):
    """The data, their splits, the model, and how all runs are evaluated.

    Attributes:
      name: of the folder, and for lines on the terminal.
      arguments: flags of all runs, which every algorithm has; none of `OWN_FLAGS` of sweeps or of `Limits`.
      task: what the results are called, and which way they are better.
      judged: by what: `OWN` or `COMMON`.
    """

    name: str
    arguments: tuple[str, ...]
    task: TaskColumns
    judged: str = OWN

    @property
    def objective(self) -> str:
        """The column of metrics.csv that trials are scored by: never one on test examples."""
        return self.task.validation if self.judged == COMMON else self.task.client_validation

    @property
    def result(self) -> str:
        """The column of metrics.csv with what counts at the end, on fresh seeds."""
        return self.task.test if self.judged == COMMON else self.task.client_test


class Limits(NamedTuple):
    """What a run may spend; 0 is no limit.

    Attributes:
      rounds: at most.
      most_bytes: both ways, of all clients together.
      most_virtual_s: virtual seconds, from the first round on, with those of fine-tuning at the end.
    """

    rounds: int
    most_bytes: float = 0.0
    most_virtual_s: float = 0.0

    @property
    def arguments(self) -> tuple[str, ...]:
        """As flags of a run."""
        counted = ("--limit_fine_tuning",) if self.most_virtual_s else ()
        return (*(f"--{name}={value!r}" for name, value in self._asdict().items()), *counted)
