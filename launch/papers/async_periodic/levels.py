"""Which settings differ, and which are level: pairs of combinations by seed, with two one-sided tests for ties."""

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from launch.papers.async_periodic.claims import (
    AT_TIME,
    CASES,
    COMPARED_CASES,
    CYCLE_MEAN,
    FEDAVG,
    FEDAVG_PROXIMAL,
    FINAL,
    FLUCTUATION,
    KINDS,
    LAST_MEAN,
    MEASURES,
    OLDER,
    POLICIES,
    WEIGHTINGS,
    make_cell,
)
from launch.papers.async_periodic.shares import CYCLE
from launch.papers.engine.collection import Cell
from launch.papers.engine.equivalence import LOSS, MARGIN, TIE, WIN, compare_by_seed
from launch.papers.engine.markdown import Section, Table, format_table

# Of weightings, with which policies are compared; the claims on scheduling compare the mean.
GROUPS = {(kind,): name for kind, name in WEIGHTINGS.items()} | {tuple(WEIGHTINGS): "mean over the weightings"}
# Where slow devices have digits of their own, the window of the claims is not a whole cycle.
NAMES = MEASURES | {CYCLE_MEAN: f"mean over the last {CYCLE} aggregations, a whole cycle"}
WORDS = {WIN: "higher", LOSS: "lower", TIE: "level"}
HOW_JUDGED = f"""\
Differences are between runs of one seed, in points, with their 95 % intervals, each for itself, so that of settings
without any difference one in twenty would show one. *Higher* or *lower*: the interval excludes 0. *Level*: the 90 %
interval lies within {100 * MARGIN:g} point either side (two one-sided tests). Both: the difference is there, but below
a point. *Undecided*: neither. Of accuracies, higher is better; of the fluctuation, lower. On IID data accuracies
fluctuate by a tenth of a point, so that *level* says little of it there.
"""


class Pair(NamedTuple):
    """Two groups of results that differ in one thing, with what each is called; means over a group are compared."""

    first: tuple[Cell, ...]
    second: tuple[Cell, ...]
    names: tuple[str, str]


def list_pairs() -> Iterator[Pair]:
    """Policies by GROUPS, weightings with each policy, FedAvg with and without Eq. (8); weightings at kept speeds."""
    for case in COMPARED_CASES:
        for metric in (LAST_MEAN, FLUCTUATION):
            for kinds, name in GROUPS.items():
                for pair in itertools.combinations(POLICIES, 2):
                    cells = (tuple(make_cell(case, policy, kind, metric) for kind in kinds) for policy in pair)
                    yield Pair(*cells, (f"{pair[0]}, {name}", pair[1]))
        for policy in POLICIES:
            for pair in itertools.combinations(WEIGHTINGS, 2):
                cells = ((make_cell(case, policy, kind, LAST_MEAN),) for kind in pair)
                yield Pair(*cells, (f"{policy}, {WEIGHTINGS[pair[0]]}", WEIGHTINGS[pair[1]]))
        for metric in (AT_TIME, FINAL):
            for policy in POLICIES:
                cells = ((make_cell(case, policy, kind, metric),) for kind in (FEDAVG_PROXIMAL, FEDAVG))
                yield Pair(*cells, (f"{policy}, {KINDS[FEDAVG_PROXIMAL]}", "without"))
    for metric in (LAST_MEAN, CYCLE_MEAN, AT_TIME):
        cells = ((make_cell("persistent", "random", kind, metric),) for kind in ("equal", "fresh"))
        yield Pair(*cells, (f"random, {WEIGHTINGS['equal']}", WEIGHTINGS["fresh"]))
    for metric, older, kind in itertools.product((LAST_MEAN, CYCLE_MEAN), OLDER, ("equal", "fresh")):
        cells = ((make_cell("persistent", "random", each, metric),) for each in (older, kind))
        yield Pair(*cells, (f"random, {WEIGHTINGS['old']}, gamma {OLDER[older]:g}", WEIGHTINGS[kind]))


def average_by_seed(cells: Sequence[Cell], results: Mapping[Cell, Mapping[int, float]]) -> dict[int, float]:
    """The mean over the cells, of each seed that all of them have."""
    values = [results.get(cell, {}) for cell in cells]
    seeds = set.intersection(*map(set, values))
    return {seed: statistics.fmean(each[seed] for each in values) for seed in seeds}


def build_levels(results: Mapping[Cell, Mapping[int, float]]) -> dict[str, Section]:
    """The table of all pairs that have runs, by its name; nothing without any.

    Args:
      results: in per cent and points, by cell and seed.
    """
    rows = []
    for first, second, names in list_pairs():
        means = (average_by_seed(cells, results) for cells in (first, second))
        difference = compare_by_seed(*({seed: value / 100 for seed, value in each.items()} for each in means))
        if difference.count:
            words = ", ".join(WORDS.get(word, word) for word in difference.verdict.split(", "))
            place = [CASES[first[0].dataset], NAMES[first[0].metric], f"{names[0]} minus {names[1]}"]
            rows.append([*place, difference.format(), str(difference.count), words])
    table = Table(["data", "measure", "comparison", "difference", "seeds", "verdict"], rows)
    text = f"{HOW_JUDGED}\n{format_table(table)}"
    return {"levels": Section("What differs and what is level", table, text)} if rows else {}
