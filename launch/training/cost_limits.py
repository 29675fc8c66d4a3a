"""What a run may cost: `--most_bytes` and `--most_virtual_s` end it before the round that would pass one of them."""

import time

from launch.runs.round_table import RoundTable
from launch.runs.tables import format_cell
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
    one counts as the last or not; it is kept, and only that after the last was made for nothing. The answer depends on
    the state and on `metrics.csv` alone, so a resumed run ends in the same round.
    """

    def __init__(self, config: RunConfig, process: FederatedProcess, metrics: RoundTable):
        self._process, self._limits = process, list_limits(config)
        is_asked = metrics.num_rounds and any(self._limits.values())  # else the table is not read for nothing
        # By the rounds that `next` has given, and by those of a run that goes on.
        self._sent_bytes = sum(sum(metrics.column(name)) for name in SENT) if is_asked else 0.0
        self._ahead: tuple[State, RoundOutput, float] | None = None

    @property
    def ahead_s(self) -> float:
        """Seconds that the round took which is made ahead; 0 without one."""
        return self._ahead[2] if self._ahead else 0.0

    def next(self, state: State) -> tuple[RoundOutput, float]:
        """The round after this state, as `FederatedProcess.next` gives it, and the seconds that it took."""
        if self._ahead is None or self._ahead[0] is not state:
            self._make_ahead(state)
        (_, output, took_s), self._ahead = self._ahead, None
        self._sent_bytes += _count_sent(output)
        return output, took_s

    def _make_ahead(self, state: State) -> None:
        start_s = time.perf_counter()
        output = self._process.next(state)
        self._ahead = state, output, time.perf_counter() - start_s

    def are_reached(self, state: State) -> bool:
        """Whether the round after this state, which is that after the last round that `next` gave, passes a limit."""
        return bool(self._find_passed(state))

    def check_first(self, state: State) -> None:
        """Raises FlagError if not even the first round, after this state, is within the limits."""
        for flag, value, limit in self._find_passed(state):
            raise FlagError(f"--{flag}={limit:g}: expected 0 or at least {value:g}, which the first round takes")

    def spell(self) -> str:
        """The limits as they were given."""
        return " or ".join(f"--{flag}={limit:g}" for flag, limit in self._limits.items() if limit)

    def _find_passed(self, state: State) -> list[tuple[str, float, float]]:
        if not any(self._limits.values()):
            return []
        if self._ahead is None or self._ahead[0] is not state:
            self._make_ahead(state)
        ahead = self._ahead[1]
        sent_bytes, virtual_s = self._sent_bytes + _count_sent(ahead), float(ahead.metrics[VIRTUAL_TIME_S])
        costs = zip(self._limits.items(), (sent_bytes, virtual_s), strict=True)
        return [(flag, cost, limit) for (flag, limit), cost in costs if 0 < limit < cost]


def _count_sent(output: RoundOutput) -> float:
    """Bytes of a round, as the table has them, so that a run that goes on counts the same."""
    return sum(float(format_cell(output.metrics[name])) for name in SENT)
