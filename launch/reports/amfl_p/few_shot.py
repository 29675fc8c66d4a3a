"""Few readings a sensor, and sensors that are new: accuracy after few steps, by the start."""

import functools
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.reports.amfl_p.experiments import (
    FEW_SHOT_RUNS,
    FEW_SHOT_STARTS,
    LOCAL,
    RANDOM,
    READINGS,
    START_TITLES,
    CurveRow,
    format_accuracy,
    group_by_name,
    read_curve,
    read_local,
    read_majority,
)
from launch.reports.equivalence import compare_by_seed
from launch.reports.markdown import Section, Table, format_table
from launch.runs.columns import MEMBERS, NEW, NEW_CLIENTS
from launch.runs.run_records import RunRecord

FIGURE = "amfl_p_few_shot.png"
GROUPS = {MEMBERS: "members", NEW: "new sensors"}
STARTS = {**FEW_SHOT_STARTS, RANDOM: START_TITLES[RANDOM]}
BASE = "fedavg"  # whose runs also have the random start: it is the same in all runs of a seed with the same finish
COMPARED = tuple((start, other) for other in (RANDOM, BASE) for start in FEW_SHOT_STARTS if start != other)


class Curves(NamedTuple):
    """What few-shot runs gave.

    Attributes:
      by_place: {(start, readings, group, steps): {seed: accuracy}}.
      local: {(readings, group): {seed: accuracy}} of local training on the same sensors.
      majority: {(readings, group): {seed: accuracy}}.
      steps: the numbers of steps, in order.
    """

    by_place: Mapping[tuple[str, str, str, int], Mapping[int, float]]
    local: Mapping[tuple[str, str], Mapping[int, float]]
    majority: Mapping[tuple[str, str], Mapping[int, float]]
    steps: Sequence[int]


def collect_curves(runs: Sequence[RunRecord]) -> Curves:
    """The few-shot runs among `runs`, by place and seed."""
    by_place: dict[tuple[str, str, str, int], dict[int, float]] = {}
    local: dict[tuple[str, str], dict[int, float]] = {}
    curves: dict = group_by_name(runs, FEW_SHOT_RUNS, read_curve)
    for (start, readings), by_seed in curves.items():
        for seed, rows in by_seed.items():
            for row in rows:
                _add(by_place, start, readings, seed, row)
    for (start, readings), by_seed in group_by_name(runs, FEW_SHOT_RUNS, read_local).items():
        if start == LOCAL:
            for seed, pair in by_seed.items():
                for group, accuracy in zip(GROUPS, pair, strict=True):
                    local.setdefault((readings, group), {})[seed] = accuracy
    majority: dict[tuple[str, str], dict[int, float]] = {}
    for group, whose in zip(GROUPS, ("clients", NEW_CLIENTS), strict=True):
        found: dict = group_by_name(runs, FEW_SHOT_RUNS, functools.partial(read_majority, whose=whose))
        majority |= {(readings, group): found.get((BASE, readings), {}) for readings in READINGS}
    return Curves(by_place, local, majority, sorted({place[3] for place in by_place}))


def _add(by_place: dict, start: str, readings: str, seed: int, row: CurveRow) -> None:
    by_place.setdefault((start, readings, row.group, row.steps), {})[seed] = row.trained
    if start == BASE:
        by_place.setdefault((RANDOM, readings, row.group, row.steps), {})[seed] = row.random


def tabulate_few_shot(runs: Sequence[RunRecord]) -> dict[str, Section]:
    """Two tables by name, none without runs: accuracies, and differences between starts."""
    curves = collect_curves(runs)
    if not curves.by_place:
        return {}
    accuracies = tabulate_accuracies(curves)
    text = f"{format_table(accuracies)}\n\n![Few readings: accuracy against steps]({FIGURE})"
    return {
        "few_shot": Section("Few readings: accuracy (%) by fine-tuning steps", accuracies, text),
        "few_shot_gains": Section("Few readings: what a start gains on another, points", tabulate_gains(curves)),
    }


def tabulate_accuracies(curves: Curves) -> Table:
    """A row for each number of readings, group and start, a column a number of steps."""
    rows = []
    for readings in READINGS:
        for group, group_title in GROUPS.items():
            place = [readings, group_title]
            for start, title in STARTS.items():
                found = [curves.by_place.get((start, readings, group, steps), {}) for steps in curves.steps]
                if any(found):
                    rows.append([*place, title, str(max(map(len, found))), *map(format_accuracy, found)])
            alone = curves.local.get((readings, group), {})
            blank = [""] * (len(curves.steps) - 1)
            rows.append([*place, "local training", str(len(alone)), *blank, format_accuracy(alone)])
            known = curves.majority[readings, group]
            rows.append([*place, "majority class", str(len(known)), *blank, format_accuracy(known)])
    columns = ["readings", "sensors", "start", "seeds", *(f"{steps} steps" for steps in curves.steps)]
    return Table(columns, rows)


def tabulate_gains(curves: Curves) -> Table:
    """For each number of readings and group, each of COMPARED: the difference after so many steps, and its verdict."""
    rows = []
    for readings in READINGS:
        for group, group_title in GROUPS.items():
            for compared in COMPARED:
                cells = []
                for steps in curves.steps:
                    pair = (curves.by_place.get((each, readings, group, steps), {}) for each in compared)
                    difference = compare_by_seed(*pair)
                    cells.append(f"{difference.format()} {difference.verdict}" if difference.count else "not run")
                rows.append([readings, group_title, " minus ".join(STARTS[each] for each in compared), *cells])
    return Table(["readings", "sensors", "starts", *(f"{steps} steps" for steps in curves.steps)], rows)


def average_curve(curves: Curves, start: str, readings: str, group: str) -> tuple[list[int], list[float]]:
    """Numbers of steps and the mean accuracy over the seeds after each; both empty without runs."""
    found = [(steps, curves.by_place.get((start, readings, group, steps), {})) for steps in curves.steps]
    known = [(steps, statistics.fmean(by_seed.values())) for steps, by_seed in found if by_seed]
    return [steps for steps, _ in known], [mean for _, mean in known]
