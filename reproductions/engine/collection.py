"""Collects results: what was measured in runs, by place and seed, then its mean and deviation over the seeds.

A paper says where a run stands (`Place`) and what is measured in it; everything after that is the same for all.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.comparison.seed_statistics import compute_deviation
from launch.runs.columns import BYTES_DOWN, BYTES_UP, CLIENT_TEST_ACCURACY, TEST_ACCURACY
from launch.runs.run_records import RunRecord
from reproductions.engine.counted_runs import choose_runs

PRINTED, TUNED = PRESETS = ("printed", "tuned")
# Shares, shown in per cent. What a report measures in per cent itself goes by names of its own.
PERCENT_METRICS = frozenset({TEST_ACCURACY, CLIENT_TEST_ACCURACY})


class Cell(NamedTuple):
    """One result: a metric of an algorithm after a round, on a data set in a setting (for example an alpha)."""

    dataset: str
    setting: str
    algo: str
    round_num: int
    metric: str


class Place(NamedTuple):
    """Where a run stands.

    Attributes:
      preset: which runs are compared with each other: one of PRESETS, or for FedCD a size.
      dataset: the data, or what a paper calls its case.
      setting: what is varied on it, "" for nothing.
      algo: the algorithm, or what takes its part.
    """

    preset: str
    dataset: str
    setting: str
    algo: str

    def make_cell(self, metric: str, round_num: int) -> Cell:
        return Cell(self.dataset, self.setting, self.algo, round_num, metric)


class PrintedValue(NamedTuple):
    """A number in a table of the paper."""

    table: str
    cell: Cell
    value: float


SeedResults = dict[str, dict[Cell, dict[int, float]]]  # by preset, cell and seed


def group_runs(runs: Iterable[RunRecord], find_place: Callable[[str], Place | None]) -> dict[Place, list[RunRecord]]:
    """The runs of each place in the order of their seeds, of each seed only the longest.

    Args:
      runs: any.
      find_place: (name of an experiment) -> its place, None for another paper's, whose runs are left out.
    """
    placed = [run for run in runs if find_place(run.experiment) is not None]
    chosen, _ = choose_runs(placed, lambda run: (find_place(run.experiment), run.flags["seed"]))
    by_place: dict[Place, list[RunRecord]] = {}
    for run in sorted(chosen, key=lambda run: (find_place(run.experiment), run.flags["seed"])):
        by_place.setdefault(find_place(run.experiment), []).append(run)
    return by_place


def find_first_round(accuracies: Mapping[int, float], target: float, last_round: int) -> float:
    """The first round up to `last_round` with the target accuracy or more; infinite if there is none."""
    return min((r for r, accuracy in accuracies.items() if r <= last_round and accuracy >= target), default=math.inf)


def list_bytes(run: RunRecord) -> list[float]:
    """What all clients have moved by the end of each round, from the first on; nothing if a round does not say it."""
    rows = [run.rounds.get(number, {}) for number in range(1, len(run.rounds) + 1)]
    if not all({BYTES_DOWN, BYTES_UP} <= row.keys() for row in rows):
        return []
    return list(itertools.accumulate(row[BYTES_DOWN] + row[BYTES_UP] for row in rows))


def compute_deviation_of_changes(levels: Sequence[float]) -> float:
    """Sample deviation of the changes from each of at least three levels to the next: 0 in a steady climb."""
    return compute_deviation([after - before for before, after in itertools.pairwise(levels)])
