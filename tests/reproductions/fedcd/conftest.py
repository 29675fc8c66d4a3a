"""Made-up runs of FedCD and FedAvg, a run a seed."""

import pytest

from launch.runs.columns import CLIENT, EVENTS_FILE, MODEL, PREFERS, ROUND, WHAT
from launch.runs.tables import write_table
from reproductions.engine.counted_runs import collect_runs
from reproductions.registry import PAPERS


@pytest.fixture
def write_seeds(tmp_path, write_archetype_run):
    """(experiment, accuracies, seeds 0 to 2, ...) writes a run a seed and returns the folder of all.

    A function of the seed, or a tuple, gives accuracies or a setting that differ.
    """

    def write(experiment, accuracies, seeds=range(3), **settings):
        for seed in seeds:
            given = {"accuracies": accuracies, **settings}
            of_seed = {name: value[seed] if isinstance(value, tuple) else value for name, value in given.items()}
            of_seed = {name: value(seed) if callable(value) else value for name, value in of_seed.items()}
            write_archetype_run(tmp_path, experiment, seed=seed, **of_seed)
        return tmp_path

    return write


@pytest.fixture
def write_preferences():
    """(run folder, each device's model by round) writes the log of what devices prefer."""

    def write(run_dir, models):
        rows = [
            [str(number), str(device), PREFERS, str(model)]
            for number, each in enumerate(models, 1)
            for device, model in enumerate(each)
        ]
        write_table(run_dir / EVENTS_FILE, [ROUND, CLIENT, WHAT, MODEL], rows)

    return write


@pytest.fixture
def build_report():
    """(folder of runs) -> Report."""
    return lambda runs_dir: PAPERS["fedcd"].build_report(collect_runs(runs_dir)[0])


@pytest.fixture
def find_claim():
    """(report, words of one claim) -> its row, {column: cell}."""

    def find(report, *words):
        (row,) = [row for row in report.tables["claims"].records if all(word in row["claim"] for word in words)]
        return row

    return find
