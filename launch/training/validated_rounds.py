"""What the clients' validation examples say of the rounds: which is the best, and when `--patience` ends a run.

Both stand in `metrics.csv`, so a run that was killed decides the same when it is resumed. Imports no TensorFlow.
"""

from launch.runs.round_table import RoundTable
from launch.runs.task_columns import TaskColumns
from launch.settings.run_config import RunConfig


def find_best_validated(metrics: RoundTable, task: TaskColumns, last_round: int | None = None) -> int | None:
    """The round, up to `last_round`, with the best `client_validation_accuracy`, or what it is called by the task.

    The first of equals; None if no round was evaluated on validation examples.
    """
    best = task.find_best(metrics.column(task.client_validation)[:last_round])
    return None if best is None else best + 1


def has_lost_patience(config: RunConfig, metrics: RoundTable, task: TaskColumns) -> bool:
    """Whether the last `--patience` evaluations are all no better than one before them.

    Only after a round in which the shared models were evaluated, too, so that the run's last row is whole.
    """
    if not config.patience or not metrics.rows or metrics.column(task.test)[-1] is None:
        return False
    values = metrics.column(task.client_validation)
    best = find_best_validated(metrics, task) or 0  # diverged from the start on: no evaluation counts as the best
    return sum(value is not None for value in values[best:]) >= config.patience


def has_stopped_early(config: RunConfig, metrics: RoundTable, task: TaskColumns) -> bool:
    """Whether `--patience` has ended the run before its last round."""
    return len(metrics.rows) < config.rounds and has_lost_patience(config, metrics, task)
