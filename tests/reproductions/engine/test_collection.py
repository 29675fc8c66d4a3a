"""Results over the seeds, on runs with numbers by hand: which runs count, their means and deviations."""

import math
import pathlib

from launch.runs.run_records import RunRecord
from reproductions.engine.collection import (
    Place,
    choose_runs,
    find_first_round,
)
from reproductions.engine.counted_runs import read_runs

CELL = "fedsikd_mnist_alpha0.1"
PLACE = Place("printed", "mnist", "0.1", "fedsikd")


def read_all(runs_dir):
    return [record for record, _ in read_runs(runs_dir) if record]


def test_a_seed_counts_once_with_its_longest_run(tmp_path, write_run):
    short = write_run(tmp_path / "a", "fedsikd_mnist_alpha0.1", 0, rounds=2)
    long = write_run(tmp_path / "b", "fedsikd_mnist_alpha0.1", 0, rounds=5)
    chosen, left_out = choose_runs(read_all(tmp_path))
    assert [run.path for run in chosen] == [long]
    assert len(left_out) == 1
    assert left_out[0].startswith(str(short)) and left_out[0].endswith("as many rounds or more")


def test_a_shorter_run_with_other_results_is_told_from_a_repeated_one():
    def run(name, *accuracies):
        rounds = {number: {"test_accuracy": accuracy} for number, accuracy in enumerate(accuracies, 1)}
        return RunRecord(pathlib.Path(name), {"seed": 0}, CELL, rounds)

    chosen, left_out = choose_runs([run("short", 0.5, 0.7), run("long", 0.5, 0.6, 0.8)])
    assert [each.path.name for each in chosen] == ["long"]
    assert left_out[0].startswith("short") and left_out[0].endswith("and other accuracies in those that both have")


def test_the_first_round_with_an_accuracy():
    accuracies = {1: 0.5, 2: 0.8, 3: 0.7, 6: 0.9}
    assert find_first_round(accuracies, 0.8, 5) == 2
    assert find_first_round(accuracies, 0.85, 5) == math.inf
    assert find_first_round(accuracies, 0.85, 6) == 6
