"""What is computed of a group of runs: its mean with an interval, its curve, its differences to another group by seed.

The page does the same in `groups.js`. A seed counts once: runs of a group with the same seed are averaged. Imports no
TensorFlow.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from launch.comparison.compared_run import SEED, ComparedRun
from launch.runs.columns import ROUND

LEVEL = 0.95
LAST, BEST = "last", "best"
ROUNDING = 1e-9  # a spread this small, as a share of the numbers, is that of rounding

Bounds = tuple[float | None, float | None]
NO_BOUNDS: Bounds = (None, None)


class Estimate(NamedTuple):
    """A mean over seeds with Student's t interval; `low` and `high` are None where there is none, as for one seed."""

    mean: float
    low: float | None
    high: float | None
    count: int


class CurvePoint(NamedTuple):
    """The mean of a group at one round: `x` is the mean on the other axis, the ends are those of the interval."""

    round: int
    x: float
    mean: float
    low: float | None
    high: float | None
    lowest: float
    highest: float

    def find_ends(self) -> tuple[float, float]:
        """What a chart has to show of it: of the interval what lies within the seeds, for that of two is very wide."""
        if self.low is None:
            return self.mean, self.mean
        return max(self.low, self.lowest), min(self.high, self.highest)


def compute_t_quantiles(most: int) -> list[float]:
    """Of Student's t, what a two-sided interval of `LEVEL` takes: for 1, 2, ... degrees of freedom up to `most`."""
    from scipy import special  # quicker to import than scipy.stats, which asks it for the same

    return [float(value) for value in special.stdtrit(np.arange(1, most + 1), (1 + LEVEL) / 2)]


def estimate_mean(values: Sequence[float], bounds: Bounds = NO_BOUNDS) -> Estimate:
    """The mean of at least one number with its interval, cut at the bounds of what the numbers can be."""
    numbers = np.asarray(values, np.float64)
    mean, count = float(numbers.mean()), len(numbers)
    if count < 2 or np.ptp(numbers) <= ROUNDING * max(1.0, float(np.abs(numbers).max())):
        return Estimate(mean, None, None, count)
    half = compute_t_quantiles(count - 1)[-1] * float(numbers.std(ddof=1)) / count**0.5
    low, high = bounds
    cut_low = mean - half if low is None else max(low, mean - half)
    return Estimate(mean, cut_low, mean + half if high is None else min(high, mean + half), count)


def read_result(run: ComparedRun, metric: str, at: str | int, is_low_better: bool) -> float | None:
    """A run's value of a column: the last measured one, the best one, or the last up to a round; None without any."""
    values = run.columns.get(metric)
    if values is None:
        return None
    known = ~np.isnan(values)
    if isinstance(at, int):
        known &= run.columns[ROUND] <= at
    measured = values[known]
    if not measured.size:
        return None
    if at == BEST:
        return float(measured.min() if is_low_better else measured.max())
    return float(measured[-1])


def read_seed_results(runs: Sequence[ComparedRun], metric: str, at: str | int, is_low_better: bool) -> dict[int, float]:
    """{seed: result}, the mean over the runs with that seed; in the order of the seeds."""
    by_seed: dict[int, list[float]] = {}
    for run in runs:
        result = read_result(run, metric, at, is_low_better)
        if result is not None:
            by_seed.setdefault(int(run.flags[SEED]), []).append(result)
    return {seed: float(np.mean(by_seed[seed])) for seed in sorted(by_seed)}


def estimate_difference(ours: dict[int, float], theirs: dict[int, float]) -> Estimate | None:
    """Ours minus theirs over the seeds that both have; None if they share none."""
    differences = [value - theirs[seed] for seed, value in ours.items() if seed in theirs]
    return estimate_mean(differences) if differences else None


def compute_curve(runs: Sequence[ComparedRun], metric: str, axis: str, bounds: Bounds = NO_BOUNDS) -> list[CurvePoint]:
    """The mean curve: at the rounds at which all runs that have the metric were measured."""
    runs = [run for run in runs if metric in run.columns and axis in run.columns]
    by_round: dict[int, list[tuple[int, float, float]]] = {}
    for run in runs:
        places, values = run.columns[axis], run.columns[metric]
        for i in np.flatnonzero(np.isfinite(places) & np.isfinite(values)):
            entry = (int(run.flags[SEED]), float(places[i]), float(values[i]))
            by_round.setdefault(int(run.columns[ROUND][i]), []).append(entry)
    points = []
    for round_num, entries in sorted(by_round.items()):
        if len(entries) < len(runs):
            continue
        by_seed: dict[int, list[float]] = {}
        for seed, _, value in entries:
            by_seed.setdefault(seed, []).append(value)
        means = [float(np.mean(each)) for each in by_seed.values()]
        found = estimate_mean(means, bounds)
        x = float(np.mean([place for _, place, _ in entries]))
        points.append(CurvePoint(round_num, x, found.mean, found.low, found.high, min(means), max(means)))
    return points
