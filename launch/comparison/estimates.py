"""What is computed of a group of runs: its results by seed, and its mean curve.

The page does the same in `statistics.js`. A seed counts once: runs of a group with the same seed are averaged. Imports
no TensorFlow.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from launch.comparison.compared_run import SEED, ComparedRun
from launch.comparison.seed_statistics import NO_BOUNDS, Bounds, average_repeats, compute_mean, estimate_mean
from launch.runs.columns import ROUND

LAST, BEST = "last", "best"


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
    results = ((int(run.flags[SEED]), read_result(run, metric, at, is_low_better)) for run in runs)
    return average_repeats((seed, result) for seed, result in results if result is not None)


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
        if len(entries) == len(runs):
            means = average_repeats((seed, value) for seed, _, value in entries).values()
            found = estimate_mean(means, bounds=bounds)
            x = compute_mean(place for _, place, _ in entries)
            points.append(CurvePoint(round_num, x, found.mean, found.low, found.high, min(means), max(means)))
    return points
