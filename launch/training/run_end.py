"""What ends a run before its last round: what it may cost, and validation examples that get no better.

`--most_bytes` and `--most_virtual_s` end it before the round that would pass one of them; `--patience` after rounds
without a better one. All stands in `metrics.csv` or follows from the state, so a run that was killed decides the same
when it is resumed. Imports no TensorFlow.
"""

import time

from launch.runs.errors import FIRST_ROUND_TAKES
from launch.runs.round_table import RoundTable
from launch.runs.tables import format_cell
from launch.runs.task_columns import TaskColumns
from launch.settings.flags import FlagError
from launch.settings.run_config import RunConfig
from tff_algos.protocol import BYTES_DOWN, BYTES_UP, VIRTUAL_TIME_S, FederatedProcess, RoundOutput, State

SENT = (BYTES_DOWN, BYTES_UP)


def list_limits(config: RunConfig) -> dict[str, float]:
    """The limits by the names of their flags; 0 is none."""
    return {"most_bytes": config.most_bytes, "most_virtual_s": config.most_virtual_s}


class CostLimits:
    """Says whether a run has reached its limits.

    What a round costs is known once it was made. So where there is a limit, the next round is made before the current
    one counts as the last or not; it is used, and only that after the last was made for nothing. The answer depends on
    the state and on `metrics.csv` alone, so a resumed run ends in the same round.
    """

    def __init__(self, config: RunConfig, process: FederatedProcess, metrics: RoundTable):
        self._process, self._limits = process, list_limits(config)
        self._counts_final = config.limit_fine_tuning
        # Without a limit the table is not read for nothing.
        is_asked = metrics.num_rounds and any(self._limits.values())
        # By the rounds that `next` has given, and by those of a run that goes on.
        self._sent_bytes = sum(sum(metrics.column(name)) for name in SENT) if is_asked else 0.0
        self._ahead: tuple[State, RoundOutput, float] | None = None

    @property
    def ahead_s(self) -> float:
        """Seconds that the round took which is made ahead; 0 without one."""
        return self._ahead[2] if self._ahead else 0.0

    def next(self, state: State) -> tuple[RoundOutput, float]:
        """The round after this state, as `FederatedProcess.next` gives it, and the seconds that it took."""
        output, took_s = self._make_ahead(state)
        self._ahead = None
        self._sent_bytes += _count_sent(output)
        return output, took_s

    def _make_ahead(self, state: State) -> tuple[RoundOutput, float]:
        # By identity: what was made ahead belongs to this very state, and to no equal one.
        if self._ahead is None or self._ahead[0] is not state:
            start_s = time.perf_counter()
            output = self._process.next(state)
            self._ahead = state, output, time.perf_counter() - start_s
        return self._ahead[1:]

    def are_reached(self, state: State) -> bool:
        """Whether the round after this state, which is that after the last round that `next` gave, passes a limit."""
        return bool(self._find_passed(state))

    def check_first(self, state: State) -> None:
        """Raises FlagError if not even the first round, after this state, is within the limits."""
        for flag, value, limit in self._find_passed(state):
            raise FlagError(f"--{flag}={limit:g}: expected 0 or at least {value:g}, {FIRST_ROUND_TAKES}")

    def spell(self) -> str:
        """The limits as they were given."""
        return " or ".join(f"--{flag}={limit:g}" for flag, limit in self._limits.items() if limit)

    def _find_passed(self, state: State) -> list[tuple[str, float, float]]:
        if not any(self._limits.values()):
            return []
        ahead, _ = self._make_ahead(state)
        sent_bytes, virtual_s = self._sent_bytes + _count_sent(ahead), float(ahead.metrics[VIRTUAL_TIME_S])
        virtual_s += self._process.compute_final_s(ahead.state) if self._counts_final else 0.0
        costs = zip(self._limits.items(), (sent_bytes, virtual_s), strict=True)
        return [(flag, cost, limit) for (flag, limit), cost in costs if 0 < limit < cost]


def _count_sent(output: RoundOutput) -> float:
    """Bytes of a round, as the table has them, so that a run that goes on counts the same."""
    return sum(float(format_cell(output.metrics[name])) for name in SENT)


class ValidatedRounds:
    """The rounds by their `client_validation_accuracy`, or what it is called by the task.

    Of all the rounds, only those are remembered that were the best so far.

    Args:
      metrics: the table, whose rows of now count.
      task: of the run.
    """

    def __init__(self, metrics: RoundTable, task: TaskColumns):
        self._metrics, self._task = metrics, task
        self._best: float | None = None
        # The rounds that were the best so far.
        self._bests: list[int] = []
        # Evaluations after the last of them.
        self._num_later = 0
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
        if not config.patience or not self._metrics.num_rounds:
            return False
        is_whole = not config.rounds_per_shared_evaluation or self._metrics.last(self._task.test) is not None
        return is_whole and self._num_later >= config.patience

    def has_stopped_early(self, config: RunConfig) -> bool:
        """Whether `--patience` has ended the run before its last round."""
        return self._metrics.num_rounds < config.rounds and self.has_lost_patience(config)
