"""The median rule: which run is behind the complete trials, after which round; and the mark in its folder."""

import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.runs.columns import PRUNED_FILE
from launch.runs.tables import write_json

MIN_TRIALS = 5  # complete ones, before whose median no run is stopped


class Behind(NamedTuple):
    """Where a run was found to be behind.

    Attributes:
      round_num: after this round.
      value: its objective then.
      median: that of the complete trials after the same round, with the same seed.
    """

    round_num: int
    value: float
    median: float

    def __str__(self) -> str:
        side = "above" if self.value > self.median else "below"
        return f"stopped after round {self.round_num}: {self.value:.4f} is {side} the median {self.median:.4f}"


def find_behind(
    curve: Mapping[int, float], complete: Sequence[Mapping[int, float]], rounds: range, sign: int = 1
) -> Behind | None:
    """The first of these rounds after which the curve is worse than the median of the complete ones.

    After the last round of a run there is nothing left to save, so it is no use to ask for that one.

    Args:
      curve: the objective by round.
      complete: those of the complete trials with the same seed. Only those with a value after a round count there, and
        fewer than `MIN_TRIALS` judge nothing.
      rounds: to look at.
      sign: 1 if a larger objective is better, -1 if a lower one is.
    """
    for round_num, value in sorted(curve.items()):
        others = [each[round_num] for each in complete if round_num in each]
        if round_num in rounds and len(others) >= MIN_TRIALS:
            median = statistics.median(others)
            if sign * value < sign * median:
                return Behind(round_num, value, median)
    return None


def mark_pruned(run_dir: pathlib.Path, reason: str, behind: Behind) -> None:
    """Notes in a run's folder that the search has stopped it. The run can be resumed like any other."""
    write_json(
        run_dir / PRUNED_FILE,
        {"reason": reason, **behind._asdict()},
    )
