"""What a figure and a table of a paper say of the runs: the result and curve of each group, its distance to a baseline.

The page does the same in `statistics.js`. A seed counts once: runs of a group with the same seed are averaged. Imports
no TensorFlow.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from launch.pages.comparison.compared_run import EXPERIMENT, SECONDS, SEED, TOTAL_BYTES, ComparedRun
from launch.pages.comparison.groups import (
    ALGO,
    DATA_VERSION,
    FEDAVG,
    Group,
    are_of_one_data,
    choose_grouping,
    find_differing_data,
    find_versions,
    group_runs,
    list_trivial_groups,
)
from launch.pages.comparison.seed_statistics import (
    LOSS,
    NO_BOUNDS,
    NO_DIFFERENCE,
    WIN,
    Bounds,
    BySeed,
    Difference,
    Estimate,
    average_repeats,
    compare_by_seed,
    compute_mean,
    estimate_mean,
)
from launch.runs.column_titles import TITLES, title_column
from launch.runs.columns import ROUND
from launch.runs.task_columns import TaskColumns, describe_columns, find_bounds, find_directions
from launch.settings.algorithms import ALGORITHMS
from launch.settings.errors import FlagError
from launch.settings.setting_names import find_setting
from launch.settings.suggestions import suggest_value

LAST, BEST = "last", "best"
AXIS_TITLES = {TOTAL_BYTES: "Bytes sent, both ways", SECONDS: "Seconds of training"}
LOW_IS_BETTER = re.compile(r"loss|_std$|bytes|_s$|seconds|drift|rejected|rate|epsilon|energy|joule|age$")


class MetricWords(NamedTuple):
    """A column as a reader needs it.

    Attributes:
      column: its name in metrics.csv.
      title: in words.
      is_low_better: whether a small value is a good one.
      bounds: between which its values lie.
    """

    column: str
    title: str
    is_low_better: bool
    bounds: Bounds


class GroupResult(NamedTuple):
    """A group and its result: the mean over its seeds, and the difference to the baseline by seed.

    `difference` is `NO_DIFFERENCE` for the baseline itself, and for a group that shares no seed or no data with it.
    """

    group: Group
    estimate: Estimate
    difference: Difference


class Ranking(NamedTuple):
    """The groups with a result of one metric, the best mean first, and the one that all are compared with.

    `trivial` are rows that no model was trained for, in an order of their own; they are not ranked.
    """

    metric: MetricWords
    at: str | int
    results: list[GroupResult]
    baseline: str
    trivial: Sequence[GroupResult] = ()


def list_tasks(runs: Sequence[ComparedRun]) -> list[TaskColumns]:
    """The tasks of these runs, each once, the first run's first."""
    return list(dict.fromkeys(run.task for run in runs))


def name_columns(runs: Sequence[ComparedRun]) -> dict[str, str]:
    """{column: title} of all columns of the runs."""
    titles = describe_columns(list_tasks(runs)) | AXIS_TITLES
    return {name: titles.get(name) or title_column(name) for run in runs for name in run.columns}


def bound_columns(runs: Sequence[ComparedRun]) -> dict[str, Bounds]:
    """{column: (least, largest)} of the columns of which this is known; those that have a title count or measure."""
    return {**dict.fromkeys((*TITLES, TOTAL_BYTES, SECONDS), (0.0, None)), **find_bounds(list_tasks(runs))}


def is_low_better(column: str, tasks: Sequence[TaskColumns]) -> bool:
    """Whether a small value is a good one; of a column that no task has, by its name."""
    directions = find_directions(tasks)
    if column in directions:
        return not directions[column]
    return bool(LOW_IS_BETTER.search(column)) and not column.endswith("accuracy")


def list_main_columns(runs: Sequence[ComparedRun]) -> list[str]:
    """The columns of the main metrics that some run has; the first of them is shown unless another is asked for.

    Where clients end with models of their own, or of their cluster, it is their own test data that judge these.
    """
    is_fitted, there = any(run.is_fitted for run in runs), name_columns(runs)
    pairs = ((task.client_test, task.test) if is_fitted else (task.test, task.client_test) for task in list_tasks(runs))
    return [name for pair in pairs for name in pair if name in there]


def describe_metric(runs: Sequence[ComparedRun], column: str) -> MetricWords:
    """The words of a column; of "" those of the runs' main metric.

    Raises:
      FlagError: no run has such a column.
    """
    tasks, titles = list_tasks(runs), name_columns(runs)
    column = column or next(iter(list_main_columns(runs)), "") or next(iter(titles))
    if column not in titles:
        raise FlagError(f"--metric={column}: no run has such a column; expected one of {', '.join(titles)}")
    return MetricWords(column, titles[column], is_low_better(column, tasks), bound_columns(runs).get(column, NO_BOUNDS))


def check_grouping(runs: Sequence[ComparedRun], flags: Sequence[str]) -> list[str]:
    """The flags to group by; those of `choose_grouping` if none are named, and in any case the versions.

    Raises:
      FlagError: no run has such a flag.
    """
    known = dict.fromkeys(flag for run in runs for flag in run.flags)
    asked = {name for run in runs for name in (run.flags.get(ALGO), run.asked.get(ALGO))}
    rows = [ALGORITHMS[name] for name in asked & ALGORITHMS.keys()]
    flags = [find_setting(flag, rows) for flag in flags]
    for flag in flags:
        if flag not in known:
            raise FlagError(f"--group_by={flag}: no run has such a flag{suggest_value(flag, known)}")
    flags = flags or choose_grouping(runs)
    return [*flags, *(name for name in find_versions(runs) if name not in flags)]


def rank_groups(
    runs: Sequence[ComparedRun], metric: MetricWords, flags: Sequence[str], at: str | int = LAST, baseline: str = ""
) -> Ranking:
    """The groups by their mean, the best first.

    Args:
      runs: all.
      metric: what is compared.
      flags: by which the runs are grouped.
      at: LAST, BEST, or the number of a round, whose last value up to it counts.
      baseline: the label of the group that the others are compared with; "" for FedAvg, see `choose_baseline`.

    Raises:
      FlagError: no run has a result, or no group is called like the baseline.
    """
    found = []
    for group in group_runs(runs, flags):
        values = read_seed_results(group.runs, metric.column, at, metric.is_low_better)
        if values:
            found.append((group, values, estimate_mean(values.values(), bounds=metric.bounds)))
    if not found:
        until = "" if at in (LAST, BEST) else f" up to round {at}"
        raise FlagError(f"--metric={metric.column}: was not measured in any run{until}")
    found.sort(key=lambda each: each[2].mean, reverse=not metric.is_low_better)
    labels = [group.label for group, _, _ in found]
    if baseline and baseline not in labels:
        raise FlagError(f"--baseline={baseline}: no group is called so; expected one of {'; '.join(labels)}")
    chosen = labels.index(baseline or choose_baseline(runs, [(group, values) for group, values, _ in found]))
    rival, theirs = found[chosen][:2]

    def compare(group: Group, values: BySeed) -> Difference:
        # Seeds of different data are no pairs, though their numbers are the same.
        is_fair = are_of_one_data([*group.runs, *rival.runs])
        return compare_by_seed(values, theirs) if is_fair else NO_DIFFERENCE

    results = [
        GroupResult(group, estimate, NO_DIFFERENCE if i == chosen else compare(group, values))
        for i, (group, values, estimate) in enumerate(found)
    ]
    trivial = []
    for group in list_trivial_groups(runs, metric.column):
        values = read_seed_results(group.runs, metric.column, at, metric.is_low_better)
        estimate = estimate_mean(values.values(), bounds=metric.bounds)
        trivial.append(GroupResult(group, estimate, compare(group, values)))
    return Ranking(metric, at, results, labels[chosen], trivial)


def choose_baseline(runs: Sequence[ComparedRun], groups: Sequence[tuple[Group, BySeed]]) -> str:
    """The label of FedAvg's group, else of an experiment that is called so, else of any.

    Of several it is the one that most groups have pairs with, runs of the same seed on the same data. Of equals it is
    the one with the most seeds, then that of the first run. So does `baselines.js`.

    Args:
      runs: all, in their order.
      groups: those with a result, and their results by seed.
    """
    data = (SEED, DATA_VERSION, *find_differing_data(runs))

    def list_pairable(group: Group, values: BySeed) -> set[tuple[Any, ...]]:
        return {tuple(map(run.flags.get, data)) for run in group.runs if int(run.flags[SEED]) in values}

    pairable = [list_pairable(*each) for each in groups]

    def rank(each: tuple[Group, BySeed]) -> tuple[int, int, int]:
        own = list_pairable(*each)
        return -sum(not own.isdisjoint(others) for others in pairable), -len(each[1]), places[each[0].runs[0].name]

    tests = (
        lambda run: run.flags.get(ALGO) == FEDAVG,
        lambda run: str(run.flags.get(EXPERIMENT, "")).startswith(FEDAVG),
        lambda run: True,
    )
    kinds = ([each for each in groups if all(map(test, each[0].runs))] for test in tests)
    places = {run.name: place for place, run in reversed(list(enumerate(runs)))}
    return min(next(filter(None, kinds)), key=rank)[0].label


def list_decided(ranking: Ranking) -> list[GroupResult]:
    """The groups that are better than the baseline, and decided; it alone if it is better than all."""
    better, worse = (LOSS, WIN) if ranking.metric.is_low_better else (WIN, LOSS)
    baseline = [result for result in ranking.results if result.group.label == ranking.baseline]
    others = [result for result in ranking.results if result.group.label != ranking.baseline]
    if others and all(worse in result.difference.verdict for result in others):
        return baseline
    return [result for result in others if better in result.difference.verdict]


def describe_time(at: str | int) -> str:
    """When a result was taken, in words."""
    if at == LAST:
        return "after the last round"
    return "in the best round of each run" if at == BEST else f"after round {at}"


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
