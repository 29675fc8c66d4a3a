"""What the clients' validation examples say of the rounds: which is the best, and when `--patience` ends a run.

Both stand in `metrics.csv`, so a run that was killed decides the same when it is resumed. Imports no TensorFlow.
"""

from launch.runs.round_table import RoundTable
from launch.runs.task_columns import TaskColumns
from launch.settings.run_config import RunConfig


class ValidatedRounds:
    """The rounds by their `client_validation_accuracy`, or what it is called by the task.

    Of all the rounds, only those are kept that were the best so far.

    Args:
      metrics: the table, whose rows of now count.
      task: of the run.
    """

    def __init__(self, metrics: RoundTable, task: TaskColumns):
        self._metrics, self._task = metrics, task
        self._best: float | None = None
        self._bests: list[int] = []  # the rounds that were the best so far
        self._num_later = 0  # evaluations after the last of them
        if metrics.num_rounds:
            for round_num, value in enumerate(metrics.column(task.client_validation), start=1):
                self._add(round_num, value)

    def update(self) -> None:
        """Counts the table's last row, which is new."""
        self._add(self._metrics.num_rounds, self._metrics.last(self._task.client_validation))

    def _add(self, round_num: int, value: float | None) -> None:
        if value is None:
            return
        if self._task.find_best([self._best, value]) == 1:
            self._best, self._num_later = value, 0
            self._bests.append(round_num)
        else:
            self._num_later += 1

    def find_best(self, last_round: int | None = None) -> int | None:
        """The round, up to `last_round`, with the best value.

        The first of equals; None if no round was evaluated on validation examples.
        """
        rounds = self._bests if last_round is None else [each for each in self._bests if each <= last_round]
        return rounds[-1] if rounds else None

    def has_lost_patience(self, config: RunConfig) -> bool:
        """Whether the last `--patience` evaluations are all no better than one before them.

        Only after a round in which the shared models were evaluated, too, so that the run's last row is whole. In a run
        that diverged from the start on no evaluation counts as the best.
        """
        if not config.patience or not self._metrics.num_rounds or self._metrics.last(self._task.test) is None:
            return False
        return self._num_later >= config.patience

    def has_stopped_early(self, config: RunConfig) -> bool:
        """Whether `--patience` has ended the run before its last round."""
        return self._metrics.num_rounds < config.rounds and self.has_lost_patience(config)
