"""The replay of FedSiKD's published scripts: its numbers in a CSV file, and how they stand to the printed rows.

`launch.published_code` computes the numbers; `published_code_page` shows them. Imports no TensorFlow.
"""

import csv
import itertools
import pathlib
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.papers.fedsikd.measures import ALPHAS, FIRST_ROUNDS, spell_alpha
from launch.runs.columns import ROUND, TEST_ACCURACY, TEST_LOSS
from launch.runs.run_records import read_rows
from launch.runs.tables import write_table

REPLAY_FILE = pathlib.Path(__file__).with_name("published_code.csv")
PRINTED_FILES = tuple(pathlib.Path(__file__).with_name(name) for name in ("table_v.csv", "tables_vi_to_ix.csv"))
COLUMNS = ("dataset", "dirichlet_alpha", "arm", "split", ROUND, TEST_ACCURACY, TEST_LOSS, "cpu_s")
ROUNDS = FIRST_ROUNDS
DATASETS = ("mnist", "har")
CLIENT_0, LEADERS, FL_HC, FEDAVG = ARMS = ("client_0", "leaders", "fl_hc", "fedavg")
PLANNED_SPLITS = {CLIENT_0: 10, LEADERS: 10, FL_HC: 10, FEDAVG: 3}
# Which arm does what the scripts do for a printed row; of FL+HC it is one reading of several.
ARM_OF_ROW = {"FedAvg": CLIENT_0, "FedSiKD": LEADERS, "RandomCluster": LEADERS, "FL+HC": FL_HC}


class Place(NamedTuple):
    """What is replayed: an arm on a data set at an alpha, spelled as in ALPHAS."""

    dataset: str
    alpha: str
    arm: str


class Run(NamedTuple):
    """One split of a place: after each of ROUNDS the test accuracy (0 to 1) and loss, and the CPU seconds of all."""

    accuracies: tuple[float, ...]
    losses: tuple[float, ...]
    cpu_s: float = 0.0


Replay = Mapping[Place, Mapping[int, Run]]  # by place and split


class PrintedRow(NamedTuple):
    """An algorithm's rounds 1 to 5 on a data set at an alpha, as the paper prints them; `name` is the paper's."""

    dataset: str
    alpha: str
    name: str
    values: Run

    @property
    def place(self) -> Place:
        """Where its replay stands."""
        return Place(self.dataset, self.alpha, ARM_OF_ROW[self.name])


class Summary(NamedTuple):
    """Rounds 1 to 5 as one unit.

    Attributes:
      level: mean accuracy, 0 to 1.
      change: accuracy after round 5 minus that after round 1.
      loss_trend: loss after round 5 minus that after round 1, in nats.
    """

    level: float
    change: float
    loss_trend: float


# What the printed digits leave open: accuracies have two decimals of a per cent, losses two decimals.
PRINTED_WITHIN = Summary(level=0.00005, change=0.0001, loss_trend=0.01)


class Range(NamedTuple):
    """Least, middle and greatest value of `count` splits."""

    low: float
    median: float
    high: float
    count: int

    def exceed_by(self, value: float, within: float = 0.0) -> float:
        """How far a value lies above (positive) or below (negative) the range; 0 inside, on its ends and `within`."""
        gap = max(value - self.high, 0.0) + min(value - self.low, 0.0)
        return gap if abs(gap) > within else 0.0


def get_runs(replay: Replay, place: Place) -> list[Run]:
    """The runs of a place in the order of their splits; [] if there are none."""
    return [run for _, run in sorted(replay.get(place, {}).items())]


def summarize(run: Run) -> Summary:
    """A row or a split as one unit."""
    return Summary(
        statistics.fmean(run.accuracies), run.accuracies[-1] - run.accuracies[0], run.losses[-1] - run.losses[0]
    )


def find_range(values: Sequence[float]) -> Range | None:
    """The range of the splits' values; None without any."""
    return Range(min(values), statistics.median(values), max(values), len(values)) if values else None


def list_ranges(runs: Iterable[Run]) -> list[Range | None]:
    """The ranges of each part of `Summary` over the splits."""
    summaries = [summarize(run) for run in runs]
    return [find_range([summary[part] for summary in summaries]) for part in range(len(Summary._fields))]


def list_gaps(row: PrintedRow, runs: Iterable[Run], allowed: Summary = PRINTED_WITHIN) -> list[float]:
    """How far each part of a printed row's summary lies outside of the splits' ranges; [] without splits.

    No further than `allowed` counts as inside.
    """
    ranges = list_ranges(runs)
    parts = zip(summarize(row.values), ranges, allowed, strict=True)
    return [found.exceed_by(value, within) for value, found, within in parts if found]


def list_round_ranges(runs: Sequence[Run], metric: str) -> list[Range | None]:
    """The range of a metric (TEST_ACCURACY or TEST_LOSS) after each round."""
    return [find_range([get_values(run, metric)[i] for run in runs]) for i in range(len(ROUNDS))]


def get_values(run: Run, metric: str) -> tuple[float, ...]:
    """The values of a metric (TEST_ACCURACY or TEST_LOSS) after each round."""
    return run.accuracies if metric == TEST_ACCURACY else run.losses


def count_inside(row: PrintedRow, runs: Sequence[Run], metric: str) -> tuple[int, int]:
    """Of a printed row's rounds: how many values lie within the range of the splits, and how many have one."""
    pairs = zip(get_values(row.values, metric), list_round_ranges(runs, metric), strict=True)
    found = [each.exceed_by(value) == 0 for value, each in pairs if each]
    return sum(found), len(found)


def share_of_pairs(difference: float, levels: Sequence[float]) -> float | None:
    """Of all pairs of splits, the share whose levels differ by at least as much; None with fewer than two splits."""
    apart = [abs(first - second) >= abs(difference) for first, second in itertools.combinations(levels, 2)]
    return sum(apart) / len(apart) if apart else None


def read_printed_values(metric: str) -> dict[tuple[str, str, str], dict[int, float]]:
    """The paper's values of a metric: {(data set, alpha, algorithm): {round: value}}, in the order of its tables."""
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in itertools.chain.from_iterable(map(read_rows, PRINTED_FILES)):
        if row["metric"] == metric:
            key = (row["dataset"], spell_alpha(row["dirichlet_alpha"]), row["algorithm"])
            found.setdefault(key, {})[int(row[ROUND])] = float(row["value"])
    return found


def read_printed_rows() -> list[PrintedRow]:
    """Every printed row of rounds 1 to 5, by data set, alpha and algorithm."""
    accuracies, losses = (read_printed_values(metric) for metric in (TEST_ACCURACY, TEST_LOSS))
    rows = []
    for key in itertools.product(DATASETS, ALPHAS, ARM_OF_ROW):
        series = [tuple(values[key][round_num] for round_num in ROUNDS) for values in (accuracies, losses)]
        rows.append(PrintedRow(*key, Run(*series)))
    return rows


def read_replay(path: pathlib.Path = REPLAY_FILE) -> dict[Place, dict[int, Run]]:
    """The runs of a CSV file; empty if there is no such file.

    Raises:
      ValueError: the file is not one that `write_replay` wrote.
    """
    rounds: dict[tuple[Place, int], dict[int, tuple[float, float, float]]] = {}
    try:
        rows = read_rows(path) if path.is_file() else []
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: no text of a table ({error})") from None
    for line, row in enumerate(rows, 2):
        try:
            dataset, alpha, arm, split, round_num, *numbers = (row[column] for column in COLUMNS)
            place = Place(dataset, alpha, arm)
            if dataset not in DATASETS or alpha not in ALPHAS or arm not in ARMS:
                raise ValueError
            accuracy, loss, cpu_s = map(float, numbers)
            rounds.setdefault((place, int(split)), {})[int(round_num)] = (accuracy, loss, cpu_s)
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{path}, line {line}: no numbers of a replay") from None
    replay: dict[Place, dict[int, Run]] = {}
    for (place, split), numbers in rounds.items():
        if tuple(numbers) != ROUNDS:
            raise ValueError(f"{path}: {' '.join(place)}, split {split}: expected the rounds 1 to {ROUNDS[-1]}")
        accuracies, losses, seconds = zip(*numbers.values(), strict=True)
        replay.setdefault(place, {})[split] = Run(accuracies, losses, sum(seconds))
    return replay


def write_replay(replay: Replay, path: pathlib.Path) -> None:
    """Writes all runs, a row a round, in the order of data sets, alphas, arms and splits."""
    rows = []
    for place in map(Place._make, itertools.product(DATASETS, ALPHAS, ARMS)):
        for split, run in sorted(replay.get(place, {}).items()):
            for round_num, accuracy, loss in zip(ROUNDS, run.accuracies, run.losses, strict=True):
                numbers = (f"{accuracy:.6f}", f"{loss:.6f}", f"{run.cpu_s / len(ROUNDS):.3f}")
                rows.append([*place, str(split), str(round_num), *numbers])
    write_table(path, COLUMNS, rows)


def list_missing(replay: Replay, place: Place, splits: int) -> list[int]:
    """The splits of a place that are still to be computed."""
    return [split for split in range(splits) if split not in replay.get(place, {})]
