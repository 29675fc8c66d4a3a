"""Few readings a sensor, and sensors that are new: accuracy after few steps, by the start."""

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.papers.amfl_p.claims import (
    CLAIMED_READINGS,
    CLAIMED_STARTS,
    CLAIMED_STEPS,
    make_few_shot_cell,
)
from launch.papers.amfl_p.experiments import (
    FEW_SHOT_RUNS,
    FEW_SHOT_STARTS,
    LOCAL,
    RANDOM,
    READINGS,
    START_TITLES,
    BySeed,
    CurveRow,
    format_accuracy,
    group_by_name,
    read_curve,
    read_local,
    read_majority,
)
from launch.papers.engine.collection import Cell
from launch.papers.engine.equivalence import compare_by_seed
from launch.papers.engine.markdown import Section, Table, format_table
from launch.runs.columns import MEMBERS, NEW, NEW_CLIENTS
from launch.runs.run_records import RunRecord

FIGURE = "amfl_p_few_shot.png"
GROUPS = {MEMBERS: "members", NEW: "new sensors"}
STARTS = {**FEW_SHOT_STARTS, RANDOM: START_TITLES[RANDOM]}
BASE = "fedavg"  # whose runs also have the random start: it is the same in all runs of a seed with the same finish
COMPARED = tuple((start, other) for other in (RANDOM, BASE) for start in FEW_SHOT_STARTS if start != other)
SHOWN_STEPS = (0, 1, 5, 20, 100)
SHOWN_PAIRS = tuple(pair for pair in COMPARED if pair[1] == BASE or pair == ("maml1", RANDOM))
ON_FEW_READINGS = """\
One finish for all starts: the same steps, rate (0.1) and batch size (16), chosen by no trial. What trains a start was
tuned with all readings and one inner step, with batches of 16 as here, and not again for these runs. Local training has
its own tuned settings and all its rounds. The CSV has more numbers of steps.
"""
HOW_JUDGED = """\
Differences are between runs of one seed, which share the building, each sensor's readings, the first weights, and the
rate, the batches and the order of the examples in fine-tuning: the starts alone differ, in all of their training. MAML
is AMFL-P's, with adaptive weights and the server's Adam; FedAvg weighs by examples, and its clients have Adam. *Win* or
*loss*: the paired 95 % interval excludes 0. *Tie*: the 90 % interval lies within 1 point either side. *Undecided*:
neither. These verdicts are exploratory. They are not corrected for their number: of {number} in the CSV, which has all
pairs and steps, about {chance} would be wins or losses by chance if no start differed from another. Only the claim on
limited local data is decided, by six comparisons that were fixed before the runs; it stands with the paper's claims
above.
"""


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
    accuracies, gains = tabulate_accuracies(curves), tabulate_gains(curves)
    table = format_table(shorten(accuracies, curves.steps))
    text = f"{ON_FEW_READINGS}\n{table}\n\n![Few readings: accuracy against steps]({FIGURE})"
    return {
        "few_shot": Section("Few readings: accuracy (%) by fine-tuning steps", accuracies, text),
        "few_shot_gains": Section(
            "Few readings: what a start gains on another, points", gains, describe_gains(gains, curves.steps)
        ),
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
    columns = ["readings", "sensors", "start", "seeds", *map(name_steps, curves.steps)]
    return Table(columns, rows)


def tabulate_gains(curves: Curves) -> Table:
    """For each number of readings and group, each of COMPARED: seeds, the differences by steps and their verdicts."""
    rows = []
    for readings in READINGS:
        for group, group_title in GROUPS.items():
            for compared in COMPARED:
                found = [
                    compare_by_seed(*(curves.by_place.get((each, readings, group, steps), {}) for each in compared))
                    for steps in curves.steps
                ]
                cells = [f"{each.format()} {each.verdict}" if each.count else "not run" for each in found]
                counts = " to ".join(map(str, sorted({each.count for each in found})))
                rows.append([readings, group_title, _name_pair(*compared), counts, *cells])
    return Table(["readings", "sensors", "starts", "seeds", *map(name_steps, curves.steps)], rows)


def _name_pair(first: str, second: str) -> str:
    return f"{STARTS[first]} minus {STARTS[second]}"


def name_steps(steps: int) -> str:
    """The heading of a column."""
    return "1 step" if steps == 1 else f"{steps} steps"


def shorten(table: Table, steps: Sequence[int]) -> Table:
    """The table without columns of other steps than SHOWN_STEPS; if none of them was measured, the whole table."""
    hidden = {name_steps(each) for each in steps if each not in SHOWN_STEPS}
    if len(hidden) == len(steps):
        return table
    kept = [i for i, name in enumerate(table.columns) if name not in hidden]
    return Table([table.columns[i] for i in kept], [[row[i] for i in kept] for row in table.rows])


def describe_gains(gains: Table, steps: Sequence[int]) -> str:
    """How the gains are judged, and those of them that a reader needs first."""
    shown = {_name_pair(*pair) for pair in SHOWN_PAIRS}
    short = shorten(gains._replace(rows=[row for row in gains.rows if row[2] in shown]), steps)
    number = sum(cell != "not run" for row in gains.rows for cell in row[-len(steps) :])
    return f"{HOW_JUDGED.format(number=number, chance=round(number / 20))}\n{format_table(short)}"


def select_curve(curves: Curves, start: str, readings: str, group: str) -> dict[int, BySeed]:
    """{steps: {seed: accuracy}} of one line; without accuracies where there are no runs."""
    return {steps: curves.by_place.get((start, readings, group, steps), {}) for steps in curves.steps}


def collect_claimed(runs: Sequence[RunRecord]) -> dict[Cell, BySeed]:
    """What the claim on limited data is decided by: members after CLAIMED_STEPS, by start and readings."""
    curves = collect_curves(runs)
    found = {
        make_few_shot_cell(start, readings): curves.by_place.get((start, readings, MEMBERS, CLAIMED_STEPS), {})
        for start in CLAIMED_STARTS
        for readings in CLAIMED_READINGS
    }
    return {cell: by_seed for cell, by_seed in found.items() if by_seed}
