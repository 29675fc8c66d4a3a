"""Wins and ties of two settings, paired by seed: a difference that is there, or one that is too small to matter.

- Win: the 95 % interval of the mean difference lies above 0. Loss: it lies below.
- Tie: the 90 % interval lies within the margin, which is two one-sided tests at the level of 5 % (Schuirmann 1987).
- A win or loss that is also a tie is there, but smaller than the margin.
- Undecided: anything else, and always with fewer than three seeds.

Where all seeds give the same difference there is no interval: that number decides.
"""

import statistics
from collections.abc import Mapping
from typing import NamedTuple

from reproductions.engine.intervals import LEAST_SEEDS, Interval, estimate_mean, is_constant

WIN, LOSS, TIE, UNDECIDED = "win", "loss", "tie", "undecided"
MARGIN = 0.01  # a point of accuracy
WIN_LEVEL, TIE_LEVEL = 0.95, 0.90


class Difference(NamedTuple):
    """A paired difference.

    Attributes:
      mean: over the seeds that both have; None without any.
      interval: of the mean, 95 %; None with fewer than two seeds, or where all give the same.
      count: how many seeds.
      verdict: WIN, LOSS, TIE, UNDECIDED, or "win, tie" and "loss, tie".
    """

    mean: float | None
    interval: Interval | None
    count: int
    verdict: str

    def format(self) -> str:
        """In points, for example "+1.20 [+0.40, +2.00]"."""
        if self.mean is None:
            return "not run"
        bounds = "" if self.interval is None else " [{:+.2f}, {:+.2f}]".format(*(100 * end for end in self.interval))
        return f"{100 * self.mean:+.2f}{bounds}"

    def describe(self) -> str:
        """The same with the verdict, for example "+1.20 [+0.40, +2.00] win"."""
        return f"{self.format()} {self.verdict}" if self.count else self.format()


def compare_by_seed(first: Mapping[int, float], second: Mapping[int, float]) -> Difference:
    """The first minus the second, each an accuracy in 0..1 by seed, over the seeds that both have."""
    values = [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
    if not values:
        return Difference(None, None, 0, UNDECIDED)
    mean = statistics.fmean(values)
    if len(values) < 2 or is_constant(values):
        interval, wide, narrow = None, Interval(mean, mean), Interval(mean, mean)
    else:
        interval = wide = estimate_mean(values, WIN_LEVEL)
        narrow = estimate_mean(values, TIE_LEVEL)
    verdict = _judge(wide, narrow) if len(values) >= LEAST_SEEDS else UNDECIDED
    return Difference(mean, interval, len(values), verdict)


def _judge(wide: Interval, narrow: Interval) -> str:
    side = WIN if wide.low > 0 else LOSS if wide.high < 0 else ""
    tie = TIE if narrow.low > -MARGIN and narrow.high < MARGIN else ""
    return ", ".join(filter(None, (side, tie))) or UNDECIDED
