"""What results are called, and numbers of a run that several papers look at.

A paper says where a run stands (`Place`) and what is measured in it; everything after that is the same for all.

Its folder has the data that reports are made from.
"""

import functools
import itertools
import math
import pathlib
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from launch.runs.columns import BYTES_DOWN, BYTES_UP, CLIENT_TEST_ACCURACY, TEST_ACCURACY
from launch.runs.run_records import RunRecord

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


def find_first_round(accuracies: Mapping[int, float], target: float, last_round: int) -> float:
    """The first round up to `last_round` with the target accuracy or more; infinite if there is none."""
    return min((r for r, accuracy in accuracies.items() if r <= last_round and accuracy >= target), default=math.inf)


def list_bytes(run: RunRecord) -> list[float]:
    """What all clients have moved by the end of each round, from the first on; nothing if a round does not say it."""
    rows = [run.rounds.get(number, {}) for number in range(1, len(run.rounds) + 1)]
    if not all({BYTES_DOWN, BYTES_UP} <= row.keys() for row in rows):
        return []
    return list(itertools.accumulate(row[BYTES_DOWN] + row[BYTES_UP] for row in rows))


FOLDER = pathlib.Path(__file__).parents[1]  # a folder a paper


@functools.cache
def read_toml(paper: str, name: str) -> Mapping[str, Any]:
    """A TOML file of a paper's folder."""
    return tomllib.loads((FOLDER / paper / name).read_text(encoding="utf-8"))


WORDS = read_toml("engine", "words.toml")  # what the pages of all papers say
