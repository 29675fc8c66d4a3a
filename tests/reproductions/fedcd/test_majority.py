"""What always saying a device's most frequent class gets: by hand, in kept runs that measured it, and in the tables."""

import pathlib

import numpy as np
import pytest
from small_formats import format_of

from datasets.archetypes import draw_clients
from datasets.arrays import make_array_dataset
from datasets.partition_settings import ArchetypeSettings
from launch.runs.columns import MAJORITY_ACCURACY
from launch.runs.run_archive import open_runs
from launch.runs.run_records import read_summary
from reproductions.engine.counted_runs import collect_runs
from reproductions.fedcd.measures import compute_majority, measure_majority

ARCHIVE = pathlib.Path(__file__).parents[3] / "docs" / "results" / "fedcd.zip"
BIASED = {
    "partition": "hierarchical",
    "clients_per_archetype": 2,
    "train_per_client": 20,
    "test_per_client": 10,
    "validation_per_client": 5,
    "bias_min": 0.6,
    "bias_max": 0.6,
    "seed": 1,
}


def test_a_device_has_its_bias_right():
    accuracy = compute_majority(BIASED)
    assert accuracy.tolist() == pytest.approx([60] * 20) and accuracy.index.tolist() == [i // 2 for i in range(20)]
    assert measure_majority(BIASED) == pytest.approx({"majority": 60, **{f"majority_{i}": 60 for i in range(10)}})
    even = measure_majority(BIASED | {"bias_min": 0.2, "bias_max": 0.2})
    assert even["majority"] == pytest.approx(20), "each label of a meta-archetype is as frequent"


def test_images_of_a_label_are_as_many_as_the_settings_say():
    y = np.repeat(np.arange(10), 60).astype(np.int64)
    x = np.zeros((600, 1), np.float32)
    names = tuple(map(str, range(10)))
    arrays = make_array_dataset("even", (x, y), (x, y), format_of(x, names))
    flags = BIASED | {"bias_max": 0.7}
    settings = ArchetypeSettings(**{name: value for name, value in flags.items() if name not in ("partition", "seed")})
    drawn = draw_clients(arrays, "hierarchical", settings, 1)
    usual = [np.bincount(y[client["train"]]).argmax() for client in drawn]
    right = [100 * np.mean(y[client["test"]] == label) for client, label in zip(drawn, usual, strict=True)]
    assert compute_majority(flags).tolist() == pytest.approx(right)


def test_kept_runs_that_measured_it_say_the_same():
    measured = {}
    for run in collect_runs(open_runs(ARCHIVE))[0]:
        if (share := read_summary(run).get("clients", {}).get(MAJORITY_ACCURACY)) is not None:
            measured[run.experiment, run.flags["seed"]] = (measure_majority(run.flags)["majority"], 100 * share)
    assert len(measured) > 50
    assert [pair[0] for pair in measured.values()] == pytest.approx([pair[1] for pair in measured.values()])


def test_tables_have_it_beside_the_accuracy(write_seeds, build_report):
    """Bias 0.8: FedCD's 60 % are 20 points below it in every seed."""
    report = build_report(
        write_seeds("fedcd_cifar10_hierarchical_cpu_bias0.8", [0.6] * 45, live_models=6, preferred_models=2)
    )
    (row,) = report.tables["majority"].records
    assert list(row.values())[1:] == [
        "hierarchical",
        "bias 0.8",
        "FedCD",
        "3",
        "60.00 ± 0.00",
        "80.00 ± 0.00",
        "-20.00",
        "loss",
    ]
    (row,) = [row for row in report.tables["cpu_results"].records if row["variant"] == "bias 0.8"]
    assert (row["last"], row["majority class"]) == ("60.00 ± 0.00", "80.00 ± 0.00")
    assert report.tables["authors_run"].records[0]["majority class (expected)"] == "65.00"


def test_archetypes_have_it_below_the_algorithms(write_seeds, build_report):
    report = build_report(write_seeds("fedavg_cifar10_hypergeometric_cpu", [0.4] * 80, seeds=[0]))
    rows = [row for row in report.tables["cpu_archetypes"].records if row["algorithm"] == "majority class"]
    assert [row["archetypes"] for row in rows] == ["hierarchical", "hypergeometric"]
    assert rows[0]["archetype 0"] == "not run" and rows[1]["archetype 0"] == rows[1]["archetype 5"] != "not run"
