"""Statistics over seeds, in one place: means, their intervals and tests, paired differences, and Holm's correction.

The numbers are one a seed: a result, or a difference between two runs with the same seed, which share the split and the
first weights. An interval covers other splits and starts on the same test set, not other data. The page of
`launch.compare` computes the same in `statistics.js`.

Wins and ties of two settings, paired by seed, say whether a difference is there, or too small to matter:
- Win: the 95 % interval of the mean difference lies above 0. Loss: it lies below.
- Tie: the 90 % interval lies within the margin, which is two one-sided tests at the level of 5 % (Schuirmann 1987).
- A win or loss that is also a tie is there, but smaller than the margin.
- Undecided: anything else, and always with fewer than three seeds.

Where all seeds give the same there is no interval: that number decides. Imports no TensorFlow, and SciPy only inside
functions, since that takes longer than most commands.
"""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

LEVEL, TIE_LEVEL = 0.95, 0.90
ERROR_RATE = 0.05
# Of two seeds the interval is 12.7 standard errors either side, so fewer than three decide nothing.
LEAST_SEEDS = 3
MARGIN = 0.01  # a point of accuracy
ROUNDING = 1e-9  # a spread this small, as a share of the numbers, is that of rounding
WIN, LOSS, TIE, UNDECIDED = "win", "loss", "tie", "undecided"

BySeed = Mapping[int, float]
Bounds = tuple[float | None, float | None]
NO_BOUNDS: Bounds = (None, None)


class Estimate(NamedTuple):
    """A mean over `count` seeds with an interval; `low` and `high` are None where there is none, as for one seed."""

    mean: float
    low: float | None
    high: float | None
    count: int

    @property
    def ends(self) -> tuple[float, float]:
        """Those of the interval; without one, the mean is both."""
        return (self.mean, self.mean) if self.low is None else (self.low, self.high)

    @property
    def half_width(self) -> float:
        """Of the interval; 0 without one."""
        low, high = self.ends
        return (high - low) / 2


class Difference(NamedTuple):
    """A paired difference: as an `Estimate` over the seeds that both have, without any a mean of None.

    `verdict` is WIN, LOSS, TIE, UNDECIDED, or "win, tie" and "loss, tie"; it is about accuracies.
    """

    mean: float | None
    low: float | None
    high: float | None
    count: int
    verdict: str

    def format(self) -> str:
        """In points, for example "+1.20 [+0.40, +2.00]"."""
        if self.mean is None:
            return "not run"
        bounds = "" if self.low is None else f" [{100 * self.low:+.2f}, {100 * self.high:+.2f}]"
        return f"{100 * self.mean:+.2f}{bounds}"

    def describe(self) -> str:
        """The same with the verdict, for example "+1.20 [+0.40, +2.00] win"."""
        return f"{self.format()} {self.verdict}" if self.count else self.format()


NO_DIFFERENCE = Difference(None, None, None, 0, UNDECIDED)


def is_constant(values: Collection[float]) -> bool:
    """Whether all values are equal but for rounding; infinite ones are equal if their signs are."""
    if not all(map(math.isfinite, values)):
        return len(set(values)) == 1
    return max(values) - min(values) <= ROUNDING * max(1.0, *map(abs, values))


def compute_mean(values: Iterable[float]) -> float:
    """Of at least one number, whatever their order."""
    return statistics.fmean(values)


def compute_deviation(values: Collection[float]) -> float | None:
    """Sample deviation; None of fewer than two numbers, or where one of them is infinite."""
    has_deviation = len(values) > 1 and all(map(math.isfinite, values))
    return float(np.std(list(values), ddof=1)) if has_deviation else None


def compute_t_quantile(degrees: int, level: float = LEVEL) -> float:
    """What a two-sided interval takes of Student's t with so many degrees of freedom."""
    # Quicker to import than scipy.stats, which asks it for the same.
    from scipy import special

    return float(special.stdtrit(degrees, (1 + level) / 2))


def estimate_mean(values: Collection[float], level: float = LEVEL, bounds: Bounds = NO_BOUNDS) -> Estimate:
    """The mean of at least one number with Student's t interval, which single and equal ones have not.

    Args:
      values: one a seed.
      level: of the interval.
      bounds: the least and the largest that a value can be, at which the interval is cut; None for neither.
    """
    mean, count, deviation = compute_mean(values), len(values), compute_deviation(values)
    if deviation is None or is_constant(values):
        return Estimate(mean, None, None, count)
    half = compute_t_quantile(count - 1, level) * deviation / math.sqrt(count)
    least, most = bounds
    low = mean - half if least is None else max(least, mean - half)
    return Estimate(mean, low, mean + half if most is None else min(most, mean + half), count)


def predict_one(values: Collection[float], level: float = LEVEL) -> Estimate:
    """The mean with the interval in which one further number is expected: mean +- t s sqrt(1 + 1/n)."""
    found = estimate_mean(values, level)
    half = found.half_width * math.sqrt(found.count + 1)
    return found._replace(low=found.mean - half, high=found.mean + half)


def compute_p_value(values: Sequence[float], bound: float = 0.0) -> float:
    """Two-sided p-value of the mean being `bound`, by Student's t; of equal numbers 0, or 1 just at the bound."""
    if is_constant(values):
        return float(is_constant((values[0], bound)))
    from scipy import stats

    return float(stats.ttest_1samp(values, bound).pvalue)


def compute_sign_p_value(successes: int, number: int) -> float:
    """Two-sided p-value of the exact sign test; 1 without any pair."""
    from scipy import stats

    return float(stats.binomtest(successes, number).pvalue) if number else 1.0


def correct_by_holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values of a family, in the order given: each is compared with the level of the family."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def average_repeats(measured: Iterable[tuple[int, float]]) -> dict[int, float]:
    """{seed: mean of its values} of (seed, value), in the order of the seeds: runs with the same seed count as one."""
    by_seed: dict[int, list[float]] = {}
    for seed, value in measured:
        by_seed.setdefault(seed, []).append(value)
    return {seed: compute_mean(by_seed[seed]) for seed in sorted(by_seed)}


def subtract_by_seed(first: BySeed, second: BySeed) -> dict[int, float]:
    """The first minus the second, in the order of the seeds that both have; series of pandas by seed will do, too."""
    # The keys of a series are an index, of which & is another operation.
    first, second = dict(first), dict(second)
    return {seed: first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())}


def compare_by_seed(first: BySeed, second: BySeed) -> Difference:
    """The first minus the second over the seeds that both have; `NO_DIFFERENCE` if they share none."""
    values = subtract_by_seed(first, second).values()
    if not values:
        return NO_DIFFERENCE
    found, narrow = estimate_mean(values), estimate_mean(values, TIE_LEVEL).ends
    low, high = found.ends
    side = WIN if low > 0 else LOSS if high < 0 else ""
    tie = TIE if narrow[0] > -MARGIN and narrow[1] < MARGIN else ""
    verdict = ", ".join(filter(None, (side, tie))) if found.count >= LEAST_SEEDS else ""
    return Difference(*found, verdict or UNDECIDED)
