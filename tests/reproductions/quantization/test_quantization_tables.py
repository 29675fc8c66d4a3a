"""The comparison of exported files over seeds, from made-up exports.

The experiments of quantization are FedSiKD's, once in floats and once trained for 8-bit integers.
"""

import pytest
from experiment_flags import read_flags

from launch.runs.tables import format_cell, write_table
from launch.tflite.export_report import FileRow
from reproductions.engine.counted_runs import collect_runs
from reproductions.quantization.tables import make_runs, read_file
from reproductions.registry import PAPERS

FLOAT, QAT = "fedsikd_mnist_quantization", "fedsikd_mnist_quantization_qat"


def write_export(run_dir, **formats):
    """A report.csv with (file accuracy, Keras accuracy, agreement, share) for each format."""
    rows = []
    for name, (accuracy, keras_accuracy, agreement, share) in formats.items():
        values = dict.fromkeys(FileRow._fields, 1.0) | {"file": "f", "model": "global", "format": name}
        values |= {"test": accuracy, "keras_test": keras_accuracy, "agreement": agreement}
        values |= {"share_of_float32": share, "representative_client": "", "operators": "ADD 1", "input_dtype": "x"}
        rows.append([format_cell(value) for value in values.values()])
        rows.append([*rows[-1][:1], "client_7", *rows[-1][2:]])  # a client's file is not compared
    columns = {"test": "test_accuracy", "keras_test": "keras_test_accuracy", "agreement": "top1_agreement"}
    write_table(run_dir / "export" / "report.csv", [columns.get(field, field) for field in FileRow._fields], rows)


@pytest.fixture
def runs(tmp_path, write_run):
    """Two seeds of a float run and its twin, with exports; and a third seed without a twin."""
    for seed, loss in enumerate((0.001, 0.004)):
        run_dir = write_run(tmp_path, FLOAT, seed, 10, accuracy=0.80)
        write_export(run_dir, float32=(0.90, 0.90, 1.0, 1.0), int8=(0.90 - 2 * loss, 0.90, 0.99, 0.3))
        run_dir = write_run(tmp_path, QAT, seed, 10, accuracy=0.78 + seed / 100)
        write_export(
            run_dir, float32=(0.5, 0.5, 1.0, 1.0), qat_int8=(0.89 - 2 * loss, 0.89, 0.98 + loss, 0.3 + 30 * loss)
        )
    write_run(tmp_path, FLOAT, 2, 10)
    return collect_runs(tmp_path)[0]


def test_runs_are_paired_by_seed(runs):
    frame = make_runs(runs)
    assert set(zip(frame.experiment, frame.seed, strict=True)) == {(FLOAT, 0), (FLOAT, 1)}
    assert len(PAPERS["quantization"].build_report(runs).runs) == 4


def test_files_are_means_and_worst_seeds(runs):
    rows = PAPERS["quantization"].build_report(runs).tables["files"].records
    assert [(row["format"], row["seeds"]) for row in rows] == [("float32", "2"), ("int8", "2"), ("qat_int8", "2")]
    int8 = rows[1]
    assert (int8["file_accuracy"], int8["worst_difference"]) == ("89.50", "-0.80")  # 89.8 and 89.2 against 90
    assert (rows[2]["worst_agreement"], rows[2]["share_of_float32"]) == ("98.10", "0.375")


def test_targets_are_judged_by_the_worst_seed_and_stand_first(runs):
    report = PAPERS["quantization"].build_report(runs)
    assert list(report.tables)[:3] == ["targets", "files", "runs"]
    rows = report.tables["targets"].records
    assert [(row["measured"], row["verdict"]) for row in rows] == [
        ("-0.80 points", "not reached"),
        ("98.10 %", "not reached"),
        ("0.42", "not reached"),
        ("-0.80 points", "reached"),
        ("99.00 %", "reached"),
        ("1.50 points", "reached"),  # 0.90 against the mean of 0.88 and 0.89
    ]


def test_without_exports_the_files_are_not_run(tmp_path, write_run):
    for experiment in (FLOAT, QAT):
        write_run(tmp_path, experiment, 0, 10)
    report = PAPERS["quantization"].build_report(collect_runs(tmp_path)[0])
    assert report.tables["files"][1] == []
    assert [row[-1] for row in report.tables["targets"][1]] == ["not run"] * 5 + ["reached"]
    assert "not run" in report.markdown


@pytest.mark.parametrize(("cells", "expected"), [({"card_bytes": "1300"}, 42700), ({}, 44000)])
def test_sizes_are_without_the_cards_in_the_files(cells, expected):
    """Exports that were made before there were cards have no such column."""
    row = {"model": "global", "format": "int8", "size_bytes": "44000", **cells}
    assert read_file(row)["size_bytes"] == expected


@pytest.mark.parametrize("dataset", ["mnist", "har"])
def test_a_quantized_run_differs_from_its_twin_in_quantization_alone(dataset):
    quantized = read_flags(f"quantization/fedsikd_{dataset}_quantization_qat")
    twin = read_flags(f"quantization/fedsikd_{dataset}_quantization", f"--rounds={quantized['rounds']}")
    assert quantized == twin | {"quantize": "qat"}


@pytest.mark.parametrize("dataset", ["mnist", "har"])
def test_it_clusters_and_distils_and_trains_as_long_as_fedavg(dataset):
    values = read_flags(f"quantization/fedsikd_{dataset}_quantization")
    assert values["num_clusters"] != 1 and values["label_weight"] <= 0.8
    fedavg = read_flags(f"fedsikd/fedavg_{dataset}_alpha{values['dirichlet_alpha']}")
    for name in ("epochs", "steps", "optimizer", "learning_rate", "momentum"):
        assert values[f"student_{name}"] == fedavg[name], name
    shared = values.keys() & fedavg.keys() - {"algo", "rounds"}
    assert {name for name in shared if values[name] != fedavg[name]} == set()
