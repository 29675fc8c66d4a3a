"""The report's tables, from made-up rows, and the rows of the quantization debugger against numbers by hand."""

import csv
import re

import pytest

from launch.runs.task_columns import find_task_columns
from launch.tflite.export_report import (
    ClientRow,
    ExportReport,
    FailedFile,
    FileRow,
    SizeRow,
    TrainingRow,
    format_report,
    format_summary,
    list_worst,
    read_layers,
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
SIZES = [
    SizeRow("teacher_0", "float32", 50000, 70400, 200000, 0.9, 1.0),
    SizeRow("global", "int8", 25000, 35200, 50000, 0.8, 0.5, 4.0),
]
TRAINING = TrainingRow("global.training.tflite", "head", 99999, "", "MUL 3", "adam")
NAME = "<b>|[x](http://a.b)"


@pytest.fixture
def report():
    clients = [ClientRow(ROW.file, "client_2", 10, 0.8)]
    return ExportReport("FedSiKD on digits", 3, 359, 200, 2, [ROW], clients, SIZES, [TRAINING])


def check_tables(text):
    """That each row of a table has a cell for each of its columns; how many tables there are."""
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    for lines in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    return len(tables)


def test_report_says_what_was_measured(report):
    text = format_report(report)
    assert text.startswith("# Exported models: FedSiKD on digits, round 3\n") and check_tables(text) == 5
    cells = "float32 | 12,345 | 1,345 | 0.34 | 17,194 | 35,200 | 0.7500 | 0.8000 (4) | 0.7600 | 0.9900 | 0.012"
    expected = (
        f"| global.int8.tflite | {cells} |",
        "| global.int8.tflite | 0.500 | 0.400 to 0.600 | 0.300 | 0.200 to 0.400 |",
        "| global.int8.tflite | CONV_2D 2, RESHAPE 1 |",
        "from the train splits of client_2 (global.int8.tflite)",
        "It varies from run to run",
        "2.00 times the student's parameters and 2.00 times its multiply-accumulates",
        "| global | int8 | 25,000 | 35,200 | 50,000 | 4.00 | 0.8000 | 0.500 |",
        "| global.training.tflite | head | adam | MUL 3 | none | 99,999 |",
    )
    assert [part for part in expected if part not in text] == []


LAYER = {"layer": "dense", "operator": "FULLY_CONNECTED", "error_in_steps": 0.25, "largest_error": 0.2}


@pytest.mark.parametrize(
    ("changes", "there", "missing"),
    [
        (
            {
                "files": [ROW._replace(representative_client="", representative_clients=12, warning="is bad; take it")],
                "failed": [FailedFile("global.float16.tflite", "float16", "the TFLite converter crashed")],
            },
            (
                "from the train splits of 12 clients (global.int8.tflite)",
                "- global.float16.tflite cannot be made: the TFLite converter crashed.",
                "- global.int8.tflite is bad; take it.",
            ),
            (),
        ),
        ({}, (), ("## Warnings",)),
        (
            {"training_files": [TRAINING._replace(select_operators="Restore, Save")]},
            ("| MUL 3 | Restore, Save | 99,999 |",),
            (),
        ),
        (
            {"files": [ROW._replace(client_test=None, representative_clients=0)], "sizes": [], "training_files": []},
            ("| 0.7500 |  | 0.7600 |",),
            ("Student and teacher", "On-device", "Activation ranges"),
        ),
        (
            {"layers": {ROW.file: [LAYER, {**LAYER, "layer": "conv", "error_in_steps": 1.5}, LAYER, LAYER]}},
            (
                f"| {ROW.file} | conv | FULLY_CONNECTED | 1.50 | 0.2 |\n"
                + 2
                * f"| {ROW.file} | dense | FULLY_CONNECTED | "
                "0.25 | 0.2 |\n",
            ),
            ("cannot look into `qat_int8`",),
        ),
        (
            {"layers": {ROW.file: [LAYER]}, "files": [ROW, ROW._replace(format="qat_int8")]},
            ("cannot look into `qat_int8`",),
            (),
        ),
        (
            {
                "title": NAME,
                "files": [ROW._replace(file=NAME, representative_client=NAME)],
                "sizes": [SIZES[0]._replace(model=NAME), SIZES[1]],
            },
            ("\\](",),
            ("<b>", "[x]("),
        ),
    ],
)
def test_report_says_what_there_is(report, changes, there, missing):
    text = format_report(report._replace(**changes))
    assert [part for part in there if part not in text] == [part for part in missing if part in text] == []
    check_tables(text)


def test_csv_files_have_the_fields_as_columns(report, tmp_path):
    write_report(report._replace(layers={ROW.file: [LAYER, {**LAYER, "layer": "conv"}]}), tmp_path)
    with open(tmp_path / "report.csv", newline="") as file:
        [row] = csv.DictReader(file)
    assert list(row) == COLUMNS
    assert (row["size_bytes"], row["test_accuracy"], row["operators"]) == ("12345", "0.75", "CONV_2D 2, RESHAPE 1")
    lines = {path.name: path.read_text().splitlines() for path in tmp_path.glob("*.csv")}
    assert lines["report_clients.csv"][1] == "global.int8.tflite,client_2,10,0.8"
    assert len(lines["report_teachers.csv"]) == 3
    assert lines["global.int8.layers.csv"] == [
        "layer,operator,error_in_steps,largest_error",
        "dense,FULLY_CONNECTED,0.25,0.2",
        "conv,FULLY_CONNECTED,0.25,0.2",
    ]
    write_report(report._replace(sizes=[]), tmp_path / "without")
    assert not (tmp_path / "without" / "report_teachers.csv").exists()


def test_summary_is_aligned(report):
    assert list(format_summary(report)) == [
        "file                 bytes  accuracy   Keras  agreement     ms",
        "global.int8.tflite  12,345    0.7500  0.7600     0.9900  0.500",
        "global.training.tflite  99,999",
    ]


def test_an_error_has_its_own_columns_and_no_class_to_agree_on(report, tmp_path):
    row = ROW._replace(test=54.321, client_test=60.0, keras_test=54.0, agreement=None, largest_difference=1.25)
    report = report._replace(files=[row], training_files=[], task=find_task_columns("regression"))
    write_report(report, tmp_path)
    with open(tmp_path / "report.csv", newline="") as file:
        [cells] = csv.DictReader(file)
    own = {
        "test_rmse": "54.321",
        "client_test_rmse": "60",
        "keras_test_rmse": "54",
        "largest_output_difference": "1.25",
    }
    assert {name: cells[name] for name in cells.keys() - set(COLUMNS)} == own
    assert {name for name in COLUMNS if name not in cells} == {
        *("test_accuracy", "client_test_accuracy", "keras_test_accuracy", "top1_agreement", "largest_logit_difference")
    }
    text = format_report(report)
    assert "accuracy" not in text and "| 54.32 | 60.00 (4) | 54.00 | 1.2 |" in text and check_tables(text) == 4
    assert [line.split() for line in format_summary(report)] == [
        ["file", "bytes", "RMSE", "Keras", "largest", "difference", "ms"],
        ["global.int8.tflite", "12,345", "54.32", "54.00", "1.2", "0.500"],
    ]


def measure_layer(tensor="sequential/conv/BiasAdd;sequential/conv/Conv2D", squared="0.04", scale="0.5"):
    """A row as the debugger has it."""
    return {
        "op_name": "CONV_2D", "tensor_idx": "7", "num_elements": "64.0", "stddev": "0.2", "mean_error": "-0.01",
        "max_abs_error": "0.3", "mean_squared_error": squared, "scale": scale, "zero_point": "-3",
        "tensor_name": tensor,
    }  # fmt: skip


def test_errors_of_layers_are_in_steps_of_the_scale():
    assert read_layers([measure_layer()]) == [
        {
            "layer": "conv", "operator": "CONV_2D", "error_in_steps": pytest.approx(0.4),  # 0.2 / 0.5
            "elements": 64, "mean_error": -0.01, "standard_deviation": 0.2, "largest_error": 0.3,
            "mean_squared_error": 0.04, "scale": 0.5, "zero_point": -3, "tensor": measure_layer()["tensor_name"],
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tensor", "name"),
    [
        ("StatefulPartitionedCall:0", "output"),
        ("model/block_1/conv/Relu", "block_1/conv"),
        ("sequential/flatten", "sequential"),
    ],
)
def test_layers_have_short_names(tensor, name):
    assert read_layers([measure_layer(tensor)])[0]["layer"] == name


def test_the_worst_layers_come_first_and_what_is_no_number_not_at_all():
    squares = ("0.01", "0.09", "0.04", "nan", "0.16")
    layers = read_layers([*(measure_layer(squared=squared) for squared in squares), measure_layer(scale="0")])
    assert [layer["mean_squared_error"] for layer in list_worst(layers)] == [0.16, 0.09, 0.04]
