"""The one run that the authors' published notebook prints, by the measures of our runs. Imports no TensorFlow.

FedCD on hierarchical archetypes with 8 bits, 53 rounds, the test accuracy of each of the 30 devices in per cent
(github.com/jessijzhao/FedCD, commit cea256a). The devices of an archetype are side by side, three of each. In this
commit models are cloned after rounds 2, 15, 25 and 30, where the paper prints 5, 15, 25 and 30.
"""

import functools
import itertools
import statistics
from typing import NamedTuple

from launch.papers.engine.folder import FOLDER
from launch.papers.engine.markdown import Table
from launch.papers.fedcd.measures import (
    CALM_FROM,
    COMPARED_ROUNDS,
    HIERARCHICAL,
    LAST_ROUNDS,
    META_ARCHETYPES,
    find_convergence,
)
from launch.runs.run_records import read_rows

FILE = FOLDER / "fedcd" / "authors_run.csv"
DEVICES_PER_ARCHETYPE = 3
COLUMNS = {  # as those of our runs
    "final": "final accuracy",
    "mean_of_last": "last",
    "change": "change",
    "last_change": "last change",
    "swing": "swing of a meta-archetype",
}


class AuthorsRun(NamedTuple):
    """By round: each device's accuracy, their mean, and the mean size of a device's change, 0 in the first round."""

    devices: list[list[float]]
    accuracies: list[float]
    changes: list[float]


@functools.cache
def read_authors_run() -> AuthorsRun:
    """The printed run; accuracies in per cent, changes in points."""
    devices = [[float(row[name]) for name in row if name != "round"] for row in read_rows(FILE)]
    changes = [
        statistics.fmean(abs(new - old) for old, new in zip(before, after, strict=True))
        for before, after in itertools.pairwise(devices)
    ]
    return AuthorsRun(devices, [statistics.fmean(row) for row in devices], [0.0, *changes])


def measure_authors_run() -> dict[str, float]:
    """The measures of `measures.measure` that need no more than accuracies."""
    run, last = read_authors_run(), COMPARED_ROUNDS[HIERARCHICAL]
    swings = []
    for archetypes in META_ARCHETYPES:
        first, end = DEVICES_PER_ARCHETYPE * archetypes[0], DEVICES_PER_ARCHETYPE * (archetypes[-1] + 1)
        means = [statistics.fmean(row[first:end]) for row in run.devices]
        swings += [abs(after - before) for before, after in itertools.pairwise(means[CALM_FROM - 1 : last])]
    return {
        "final": run.accuracies[last - 1],
        "mean_of_last": statistics.fmean(run.accuracies[last - LAST_ROUNDS : last]),
        "change": statistics.fmean(run.changes[CALM_FROM - 1 : last]),
        "last_change": statistics.fmean(run.changes[last - LAST_ROUNDS : last]),
        "swing": statistics.fmean(swings),
        "convergence": find_convergence(run.accuracies, run.changes),
    }


def tabulate_authors_run() -> Table:
    """One row: what that run has by our rules."""
    measured = measure_authors_run()
    row = [str(len(read_authors_run().accuracies)), *(f"{measured[name]:.2f}" for name in COLUMNS)]
    return Table(["rounds", *COLUMNS.values(), "converges at round"], [[*row, str(measured["convergence"])]])
