"""The replay of FedSiKD's published scripts: its numbers in a CSV file, and how they stand to the printed rows.

`launch.published_code` computes the numbers and writes the page. Imports no TensorFlow.
"""

import pathlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from launch.runs.columns import ROUND, TEST_ACCURACY, TEST_LOSS
from launch.runs.run_records import read_rows
from launch.runs.tables import write_table

REPLAY_FILE = pathlib.Path(__file__).with_name("published_code.csv")
COLUMNS = ("dataset", "dirichlet_alpha", "arm", "split", ROUND, TEST_ACCURACY, TEST_LOSS, "cpu_s")
ROUNDS = (1, 2, 3, 4, 5)
DATASETS = ("mnist", "har")
ALPHAS = ("0.1", "0.5", "1", "2")
CLIENT_0, LEADERS, FEDAVG = ARMS = ("client_0", "leaders", "fedavg")


class Place(NamedTuple):
    """What is replayed: an arm on a data set at an alpha, spelled as in ALPHAS."""

    dataset: str
    alpha: str
    arm: str


class Run(NamedTuple):
    """One split of a place: after each of ROUNDS the test accuracy (0 to 1) and loss, and the CPU seconds of all."""

    accuracies: tuple[float, ...]
    losses: tuple[float, ...]
    cpu_s: float


Replay = Mapping[Place, Mapping[int, Run]]  # by place and split


def read_replay(path: pathlib.Path = REPLAY_FILE) -> dict[Place, dict[int, Run]]:
    """The runs of a CSV file; empty if there is no such file.

    Raises:
      ValueError: the file is not one that `write_replay` wrote.
    """
    if not path.is_file():
        return {}
    found: dict[tuple[Place, int], dict[int, tuple[float, float, float]]] = {}
    for row in read_rows(path):
        if tuple(row) != COLUMNS:
            raise ValueError(f"{path}: expected the columns {', '.join(COLUMNS)}")
        dataset, alpha, arm, split, round_num, *numbers = row.values()
        accuracy, loss, cpu_s = map(float, numbers)
        found.setdefault((Place(dataset, alpha, arm), int(split)), {})[int(round_num)] = (accuracy, loss, cpu_s)
    replay: dict[Place, dict[int, Run]] = {}
    for (place, split), rounds in found.items():
        if tuple(rounds) != ROUNDS:
            raise ValueError(f"{path}: {', '.join(place)}, split {split}: expected rounds 1 to {ROUNDS[-1]}")
        accuracies, losses, seconds = zip(*rounds.values(), strict=True)
        replay.setdefault(place, {})[split] = Run(accuracies, losses, sum(seconds))
    return replay


def write_replay(replay: Replay, path: pathlib.Path) -> None:
    """Writes all runs, a row a round, in the order of data sets, alphas, arms and splits."""
    order = {name: position for names in (DATASETS, ALPHAS, ARMS) for position, name in enumerate(names)}
    rows = []
    for place in sorted(replay, key=lambda place: [order[name] for name in place]):
        for split, run in sorted(replay[place].items()):
            for round_num, accuracy, loss in zip(ROUNDS, run.accuracies, run.losses, strict=True):
                numbers = (f"{accuracy:.6f}", f"{loss:.6f}", f"{run.cpu_s / len(ROUNDS):.3f}")
                rows.append([*place, str(split), str(round_num), *numbers])
    write_table(path, COLUMNS, rows)


def list_missing(replay: Replay, places: Iterable[Place], splits: int) -> list[tuple[Place, int]]:
    """The cells that are still to be computed, in the order of the places."""
    return [(place, split) for place in places for split in range(splits) if split not in replay.get(place, {})]
