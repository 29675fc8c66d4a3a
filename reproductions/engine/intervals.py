"""The statistics of the verdicts: confidence intervals, tests, and Holm's correction. SciPy does the sums.

The numbers are one a seed: a difference between two runs with the same seed, which share the split and the first
weights, or a single result. An interval covers other splits and starts on the same test set, not other data.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# A spread this small, as a share of the numbers, is that of rounding: Student's t says nothing about it.
RELATIVE_ROUNDING = 1e-9
LEAST_SEEDS = 3  # fewer decide nothing


class Interval(NamedTuple):
    """From `low` to `high`."""

    low: float
    high: float


def is_constant(values: Sequence[float]) -> bool:
    """Whether all values are equal but for rounding; infinite ones are equal if their signs are."""
    if not all(map(math.isfinite, values)):
        return len(set(values)) == 1
    return float(np.ptp(values)) <= RELATIVE_ROUNDING * max(1.0, float(np.max(np.abs(values))))


def estimate_mean(values: Sequence[float], level: float) -> Interval:
    """Student's t interval of the mean of at least two finite numbers that are not all equal.

    Args:
      values: one a seed.
      level: for example 0.95.
    """
    from scipy import stats

    return Interval(*map(float, stats.t.interval(level, len(values) - 1, np.mean(values), stats.sem(values))))


def predict_one(values: Sequence[float], level: float) -> Interval:
    """The interval in which one further number is expected: mean +- t s sqrt(1 + 1/n)."""
    from scipy import stats

    scale = float(np.std(values, ddof=1)) * math.sqrt(1 + 1 / len(values))
    return Interval(*map(float, stats.t.interval(level, len(values) - 1, np.mean(values), scale)))


def compute_p_value(values: Sequence[float], bound: float) -> float:
    """Two-sided p-value of the mean being `bound`, by Student's t."""
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
