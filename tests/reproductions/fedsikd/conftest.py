"""Runs of FedSiKD's experiments, made up by hand."""

import pathlib

import pytest

from launch.runs.run_records import RunRecord
from reproductions.fedsikd.measures import read_printed
from reproductions.fedsikd.tables import PAPER


@pytest.fixture
def make_run():
    """(experiment, seed, accuracies by round, ...) -> RunRecord; `loss` and `drift` are numbers or one a round."""

    def make(experiment, seed, accuracies, megabytes=10, loss=1.0, drift=0.5, path=pathlib.Path("nowhere")):
        rounds = {}
        for i, accuracy in enumerate(accuracies):
            row = {"test_accuracy": accuracy, "client_test_accuracy": accuracy + 0.1}
            row |= {"test_loss": loss[i] if isinstance(loss, list) else loss}
            row |= {"bytes_down": 0.6e6 * megabytes, "bytes_up": 0.4e6 * megabytes}
            row |= {"within_cluster_drift": 2 * (drift[i] if isinstance(drift, list) else drift), "total_drift": 2.0}
            rounds[i + 1] = row
        return RunRecord(path, {"seed": seed, "dataset": "mnist"}, experiment, rounds)

    return make


@pytest.fixture(scope="session")
def printed():
    """The printed numbers as a frame."""
    return read_printed(PAPER.read_printed_rows())


@pytest.fixture
def report():
    """(runs) -> Report."""
    return PAPER.build_report


@pytest.fixture
def verdicts(report):
    """(runs, part of a claim's text, column of the presets) -> verdict, numbers."""

    def find(runs, text, preset="printed"):
        columns, rows = report(runs).tables["claims"]
        (row,) = [row for row in rows if text in row[columns.index("claim")]]
        return row[columns.index(preset)], row[columns.index(f"{preset}_numbers")]

    return find
