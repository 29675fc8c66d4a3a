"""The report's tables, from made-up rows."""

import csv
import re

import pytest

from launch.runs.task_columns import find_task_columns
from launch.tflite.export_report import (
    ClientRow,
    ExportReport,
    FailedFile,
    FileRow,
    LayerError,
    SizeRow,
    TrainingRow,
    format_report,
    format_summary,
    write_report,
)

ROW = FileRow(
    file="global.int8.tflite", model="global", format="int8", input_dtype="float32", size_bytes=12345, card_bytes=1345,
    share_of_float32=0.34, parameters=17194, multiply_accumulates=35200, test=0.75, client_test=0.8,
    num_clients=4, keras_test=0.76, agreement=0.99, largest_difference=0.0123,
    median_ms_1_thread=0.5, lower_quartile_ms_1_thread=0.4, upper_quartile_ms_1_thread=0.6,
    median_ms_all_threads=0.3, lower_quartile_ms_all_threads=0.2, upper_quartile_ms_all_threads=0.4,
    representative_client="client_2", operators="CONV_2D 2, RESHAPE 1", representative_clients=1,
)  # fmt: skip
COLUMNS = [  # of classification, as other tools know them
    *("file", "model", "format", "input_dtype", "size_bytes", "card_bytes", "share_of_float32", "parameters"),
    *("multiply_accumulates", "test_accuracy", "client_test_accuracy", "num_clients", "keras_test_accuracy"),
    *("top1_agreement", "largest_logit_difference"),
    *("median_ms_1_thread", "lower_quartile_ms_1_thread", "upper_quartile_ms_1_thread"),
    *("median_ms_all_threads", "lower_quartile_ms_all_threads", "upper_quartile_ms_all_threads"),
    *("representative_client", "operators", "representative_clients", "warning"),
]
LAYER = LayerError("dense", "FULLY_CONNECTED", 0.25, 10, 0.0, 0.1, 0.2, 0.01, 0.4, 3, "dense/MatMul")
SIZES = [
    SizeRow("teacher_0", "float32", 50000, 70400, 200000, 0.9, 1.0),
    SizeRow("global", "int8", 25000, 35200, 50000, 0.8, 0.5, 4.0),
]
TRAINING = TrainingRow("global.training.tflite", "head", 99999, "", "MUL 3", "adam")


@pytest.fixture
def report():
    clients = [ClientRow(ROW.file, "client_2", 10, 0.8)]
    return ExportReport("FedSiKD on digits", 3, 359, 200, 2, [ROW], clients, SIZES, [TRAINING])


def test_report_says_what_was_measured(report):
    text = format_report(report)
    assert text.startswith("# Exported models: FedSiKD on digits, round 3\n")
    cells = "float32 | 12,345 | 1,345 | 0.34 | 17,194 | 35,200 | 0.7500 | 0.8000 (4) | 0.7600 | 0.9900 | 0.012"
    assert f"| global.int8.tflite | {cells} |" in text
    assert "| global.int8.tflite | 0.500 | 0.400 to 0.600 | 0.300 | 0.200 to 0.400 |" in text
    assert "| global.int8.tflite | CONV_2D 2, RESHAPE 1 |" in text
    assert "from the train splits of client_2 (global.int8.tflite)" in text
    assert "It varies from run to run" in text
    assert "2.00 times the student's parameters and 2.00 times its multiply-accumulates" in text
    assert "| global | int8 | 25,000 | 35,200 | 50,000 | 4.00 | 0.8000 | 0.500 |" in text
    assert "| global.training.tflite | head | adam | MUL 3 | none | 99,999 |" in text


def test_ranges_of_several_clients_and_warnings_are_said(report):
    row = ROW._replace(representative_client="", representative_clients=12, warning="has lost much; take dynamic")
    failed = FailedFile("global.float16.tflite", "global", "float16", "the TFLite converter crashed with SIGSEGV")
    text = format_report(report._replace(files=[row], failed=[failed]))
    assert "from the train splits of 12 clients (global.int8.tflite)" in text
    assert "- global.float16.tflite cannot be made: the TFLite converter crashed with SIGSEGV." in text
    assert "- global.int8.tflite has lost much; take dynamic." in text
    assert "## Warnings" not in format_report(report)


def test_every_table_has_cells_for_its_columns(report):
    tables = [block.splitlines() for block in format_report(report).split("\n\n") if block.startswith("|")]
    assert len(tables) == 5
    for lines in tables:
        assert len({line.count("|") for line in lines}) == 1


def test_operators_of_tensorflow_are_named(report):
    row = TRAINING._replace(select_operators="Restore, Save")
    assert "| MUL 3 | Restore, Save | 99,999 |" in format_report(report._replace(training_files=[row]))


def test_names_are_text_in_the_report(report):
    name = "<b>|[x](http://a.b)"
    row = ROW._replace(file=name, representative_client=name)
    text = format_report(report._replace(title=name, files=[row], sizes=[SIZES[0]._replace(model=name), SIZES[1]]))
    assert "<b>" not in text and "](" not in text.replace("\\](", "")
    for block in text.split("\n\n"):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_what_there_is_not_is_left_out(report):
    row = ROW._replace(client_test=None, representative_clients=0)
    text = format_report(report._replace(files=[row], sizes=[], training_files=[]))
    assert "Student and teacher" not in text and "On-device" not in text and "Activation ranges" not in text
    assert "| 0.7500 |  | 0.7600 |" in text


def test_the_worst_layers_are_named(report, tmp_path):
    layers = {ROW.file: [LAYER, LAYER._replace(layer="conv", error_in_steps=1.5), LAYER, LAYER]}
    report = report._replace(layers=layers)
    text = format_report(report)
    rows = [line for line in text.splitlines() if line.startswith(f"| {ROW.file} | conv")]
    assert rows == [f"| {ROW.file} | conv | FULLY_CONNECTED | 1.50 | 0.2 |"]
    assert text.count(f"| {ROW.file} | dense |") == 2 and "cannot look into `qat_int8`" not in text
    qat = ROW._replace(format="qat_int8")
    assert "cannot look into `qat_int8`" in format_report(report._replace(files=[ROW, qat]))
    write_report(report, tmp_path)
    with open(tmp_path / "global.int8.layers.csv", newline="") as file:
        assert [row["layer"] for row in csv.DictReader(file)] == ["dense", "conv", "dense", "dense"]


def test_csv_files_have_the_fields_as_columns(report, tmp_path):
    write_report(report, tmp_path)
    with open(tmp_path / "report.csv", newline="") as file:
        [row] = csv.DictReader(file)
    assert list(row) == COLUMNS
    assert (row["size_bytes"], row["test_accuracy"], row["operators"]) == ("12345", "0.75", "CONV_2D 2, RESHAPE 1")
    assert (tmp_path / "report_clients.csv").read_text().splitlines()[1] == "global.int8.tflite,client_2,10,0.8"
    assert len((tmp_path / "report_teachers.csv").read_text().splitlines()) == 3
    write_report(report._replace(sizes=[]), tmp_path / "without")
    assert not (tmp_path / "without" / "report_teachers.csv").exists()


def test_summary_is_aligned():
    assert list(format_summary([ROW], find_task_columns("classification"))) == [
        "file                 bytes  accuracy   Keras  agreement     ms",
        "global.int8.tflite  12,345    0.7500  0.7600     0.9900  0.500",
    ]


def test_an_error_has_its_own_columns_and_no_class_to_agree_on(report, tmp_path):
    row = ROW._replace(test=54.321, client_test=60.0, keras_test=54.0, agreement=None, largest_difference=1.25)
    report = report._replace(files=[row], task=find_task_columns("regression"))
    write_report(report, tmp_path)
    with open(tmp_path / "report.csv", newline="") as file:
        [cells] = csv.DictReader(file)
    kept = [
        name
        for name in COLUMNS
        if "accuracy" not in name and name not in ("top1_agreement", "largest_logit_difference")
    ]
    own = ["test_rmse", "client_test_rmse", "keras_test_rmse", "largest_output_difference"]
    assert sorted(cells) == sorted([*kept, *own])
    assert [cells[name] for name in own] == ["54.321", "60", "54", "1.25"]
    text = format_report(report)
    assert text.count("accuracy") == 0 and "| 54.32 | 60.00 (4) | 54.00 | 1.2 |" in text
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert all(len({line.count("|") for line in lines}) == 1 for lines in tables)
    [head, line] = format_summary([row], report.task)
    assert head.split() == ["file", "bytes", "RMSE", "Keras", "largest", "difference", "ms"]
    assert line.split() == ["global.int8.tflite", "12,345", "54.32", "54.00", "1.2", "0.500"]
