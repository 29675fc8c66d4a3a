"""The one run that the authors' published notebook prints, as if it were one of ours. Imports no TensorFlow.

FedCD on hierarchical archetypes with 8 bits, 53 rounds, the test accuracy of each of the 30 devices in per cent
(github.com/jessijzhao/FedCD, commit cea256a). The devices of an archetype are side by side, three of each. In this
commit models are cloned after rounds 2, 15, 25 and 30, where the paper prints 5, 15, 25 and 30.
"""

import functools
import statistics

from launch.runs.archetype_metrics import CHANGE, name_accuracy
from launch.runs.columns import ROUND
from launch.runs.run_records import RunRecord, read_rows
from reproductions.engine.folder import FOLDER
from reproductions.engine.markdown import Table
from reproductions.fedcd.measures import ACCURACY, HIERARCHICAL, NUM_ARCHETYPES, TEXTS, measure_accuracy

FILE = FOLDER / "fedcd" / "authors_run.csv"
DEVICES_PER_ARCHETYPE = 3
EXPECTED_MAJORITY = 65.0  # biases are from U(0.6, 0.7), in per cent


@functools.cache
def read_authors_run() -> RunRecord:
    """The printed run, with the columns of metrics.csv that follow from the devices' accuracies."""
    rounds: dict[int, dict[str, float]] = {}
    before: list[float] = []
    for row in read_rows(FILE):
        devices = [float(cell) / 100 for name, cell in row.items() if name != ROUND]
        found = {ACCURACY: statistics.fmean(devices)}
        if before:
            found[CHANGE] = statistics.fmean(abs(new - old) for old, new in zip(before, devices, strict=True))
        for archetype in range(NUM_ARCHETYPES[HIERARCHICAL]):
            first = DEVICES_PER_ARCHETYPE * archetype
            found[name_accuracy(archetype)] = statistics.fmean(devices[first : first + DEVICES_PER_ARCHETYPE])
        rounds[int(row[ROUND])], before = found, devices
    return RunRecord(FILE, {}, "fedcd_cifar10_hierarchical_authors_full", rounds)


def tabulate_authors_run() -> Table:
    """One row: what that run has by our rules."""
    run, columns = read_authors_run(), TEXTS["authors_columns"]
    measured = measure_accuracy(run)
    measured["majority"] = EXPECTED_MAJORITY
    cells = [f"{measured[name]:.2f}" for name in columns]
    row = [str(len(run.rounds)), *cells, f"{measured['convergence']:.0f}"]
    return Table(["rounds", *columns.values(), "converges at round"], [row])
