"""Runs of FedSiKD's experiments, made up by hand."""

import pathlib

import pytest

from launch.runs.run_records import RunRecord
from reproductions.engine.judge import decide
from reproductions.fedsikd.claims import CLAIMS
from reproductions.fedsikd.measures import find_targets, measure_runs, read_printed
from reproductions.fedsikd.tables import PAPER, list_judged


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
def verdicts(printed):
    """(runs, part of a claim's text, preset) -> verdict, numbers."""

    def find(runs, text, preset="printed"):
        (claim,) = [claim for claim in CLAIMS if text in claim.text]
        return decide(claim, list_judged(measure_runs(runs, find_targets(printed)))[preset], preset)

    return find
