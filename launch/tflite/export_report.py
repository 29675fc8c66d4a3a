"""The report of an export: its rows, and the Markdown and CSV files made of them; quantization, layer by layer.

Layers are the rows of TFLite's QuantizationDebugger. Imports no TensorFlow.
"""

import math
import pathlib
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from files.writing import write_text
from launch.console.shown_text import align_columns
from launch.pages.templates import render
from launch.runs.columns import REPORT_CLIENTS, REPORT_PAGE, REPORT_TABLE, REPORT_TEACHERS
from launch.runs.tables import format_cell, write_table
from launch.runs.task_columns import CLASSIFICATION, TaskColumns, find_task_columns

NUM_WORST = 3


class FileRow(NamedTuple):
    """One exported file; its fields are the columns of `report.csv`, which are named after the task's main metric.

    Attributes:
      file: its name.
      model: the name of the model, or of the client whose personal model it is.
      format: of EXPORT_FORMATS.
      input_dtype: "float32" or "int8"; the output's is the same.
      size_bytes: its size, with the model card in it.
      card_bytes: how many of these are the card's, those of the names beside it, and of the metadata.
      share_of_float32: its size as a share of the float32 file's, both without these; None if there can be none.
      parameters: weights of the float model.
      multiply_accumulates: of one inference.
      test: the main metric on the global test set.
      client_test: mean over its clients, each on its own test split; None without any.
      num_clients: how many these are.
      keras_test: of the Keras model that it was converted from.
      agreement: share of the test set on which both choose the same class; None where the labels are no classes.
      largest_difference: largest absolute difference of their outputs.
      median_ms_1_thread: latency.
      lower_quartile_ms_1_thread: a quarter of the runs took less.
      upper_quartile_ms_1_thread: a quarter of the runs took more.
      median_ms_all_threads: latency on all cores, like the next two.
      lower_quartile_ms_all_threads: see above.
      upper_quartile_ms_all_threads: see above.
      representative_client: whose examples set the ranges of int8, if it is one client; "" for others.
      operators: such as "CONV_2D 2, RESHAPE 1".
      representative_clients: how many clients' examples set the ranges of int8; 0 for others.
      warning: how much it has lost by its format, with the way out; "" of a good one.
    """

    file: str
    model: str
    format: str
    input_dtype: str
    size_bytes: int
    card_bytes: int
    share_of_float32: float | None
    parameters: int
    multiply_accumulates: int
    test: float
    client_test: float | None
    num_clients: int
    keras_test: float
    agreement: float | None
    largest_difference: float
    median_ms_1_thread: float
    lower_quartile_ms_1_thread: float
    upper_quartile_ms_1_thread: float
    median_ms_all_threads: float
    lower_quartile_ms_all_threads: float
    upper_quartile_ms_all_threads: float
    representative_client: str
    operators: str
    representative_clients: int = 0
    warning: str = ""


class ClientRow(NamedTuple):
    """The result of a file on one client's own test split; its fields are the columns of `report_clients.csv`."""

    file: str
    client: str
    examples: int
    test: float


class SizeRow(NamedTuple):
    """A teacher, or a file of its student; its fields are the columns of `report_teachers.csv`.

    Attributes:
      model: its name.
      format: of EXPORT_FORMATS.
      parameters: weights of the float model.
      multiply_accumulates: of one inference.
      size_bytes: of the file in that format, without a card.
      test: the main metric of that file on the global test set.
      median_ms_1_thread: its latency.
      times_smaller: size of the first teacher's file in float32 divided by this one's.
    """

    model: str
    format: str
    parameters: int
    multiply_accumulates: int
    size_bytes: int
    test: float
    median_ms_1_thread: float
    times_smaller: float = 1.0


class TrainingRow(NamedTuple):
    """A file for on-device training.

    Attributes:
      file: its name.
      trained: what of the model it trains, of TRAINED_PARTS.
      size_bytes: its size, with the model card in it.
      select_operators: the operators of TensorFlow that it needs, such as "Restore, Save"; "" if TFLite's are enough.
      operators: of all its signatures, such as "CONV_2D 2, RESHAPE 1".
      step: the optimizer, and what of the clients' training is not in the file, in words.
    """

    file: str
    trained: str
    size_bytes: int
    select_operators: str
    operators: str
    step: str


class FailedFile(NamedTuple):
    """A file that cannot be made: its name, its format, and why, in one line."""

    file: str
    format: str
    reason: str


class ExportReport(NamedTuple):
    """Everything that was measured.

    Attributes:
      title: the run in a few words.
      rounds: rounds of training.
      num_test: examples of the global test set.
      timed_runs: runs behind each latency.
      threads: number of all cores.
      files: a row for each file.
      clients: a row for each file and client.
      sizes: the teachers, then the files of the students; empty without teachers.
      training_files: a row for each file for on-device training.
      layers: {name: layers, as from `read_layers`} of the files whose layers were measured.
      failed: what cannot be made.
      task: what the results are called.
    """

    title: str
    rounds: int
    num_test: int
    timed_runs: int
    threads: int
    files: Sequence[FileRow]
    clients: Sequence[ClientRow]
    sizes: Sequence[SizeRow]
    training_files: Sequence[TrainingRow]
    layers: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    failed: Sequence[FailedFile] = ()
    task: TaskColumns = find_task_columns(CLASSIFICATION)


def format_summary(report: ExportReport) -> Iterator[str]:
    """The most important columns, aligned for the terminal, then the files for on-device training."""
    task, has_classes = report.task, report.task.kind.is_labelled_by_class
    cells = [("file", "bytes", task.title, "Keras", "agreement" if has_classes else "largest difference", "ms")]
    for row in report.files:
        compared = task.format(row.agreement) if has_classes else f"{row.largest_difference:.2g}"
        results = task.format(row.test), task.format(row.keras_test), compared
        cells.append((row.file, f"{row.size_bytes:,}", *results, f"{row.median_ms_1_thread:.3f}"))
    yield from align_columns(cells)
    yield from (f"{row.file}  {row.size_bytes:,}" for row in report.training_files)


def write_report(report: ExportReport, folder: pathlib.Path) -> None:
    """Writes report.md, report.csv, report_clients.csv and, if there are such, report_teachers.csv and layers."""
    task, has_classes = report.task, report.task.kind.is_labelled_by_class
    columns = {  # of the fields whose column depends on the task; "" for no column
        "test": task.test,
        "client_test": task.client_test,
        "keras_test": f"keras_{task.test}",
        "agreement": "top1_agreement" if has_classes else "",
        "largest_difference": "largest_logit_difference" if has_classes else "largest_output_difference",
    }

    def write_rows(name: str, row_type: Any, rows: Sequence[Any]) -> None:
        fields = [field for field in row_type._fields if columns.get(field, field)]
        cells = [[format_cell(getattr(row, field)) for field in fields] for row in rows]
        write_table(folder / name, [columns.get(field, field) for field in fields], cells)

    write_text(folder / REPORT_PAGE, format_report(report))
    write_rows(REPORT_TABLE, FileRow, report.files)
    write_rows(REPORT_CLIENTS, ClientRow, report.clients)
    if report.sizes:
        write_rows(REPORT_TEACHERS, SizeRow, report.sizes)
    for name, layers in report.layers.items():
        rows = [list(map(format_cell, layer.values())) for layer in layers]
        write_table((folder / name).with_suffix(".layers.csv"), list(layers[0]), rows)


def format_report(report: ExportReport) -> str:
    """The report as Markdown."""
    sources = [
        f"{row.representative_client or f'{row.representative_clients:,} clients'} ({row.file})"
        for row in report.files
        if row.representative_clients
    ]
    failed = [f"{row.file} cannot be made: {row.reason}" for row in report.failed]
    return render(
        "tflite/report.md.j2",
        report=report,
        task=report.task,
        has_classes=report.task.kind.is_labelled_by_class,
        machine=platform.machine(),
        sources=", ".join(sources),
        warnings=[*failed, *(f"{row.file} {row.warning}" for row in report.files if row.warning)],
        worst_layers=[(file, layer) for file, layers in report.layers.items() for layer in list_worst(layers)],
        has_qat=any(row.format == "qat_int8" for row in report.files),
    )


def read_layers(rows: Iterable[Mapping[str, str]]) -> list[dict[str, Any]]:
    """What quantization does to the output of each layer: the rows of `<model>.int8.layers.csv`.

    Of a layer: "layer", its name as far as the converter retains it, "operator", such as "CONV_2D", and "tensor", the
    converter's whole name of the output. Of its output: "elements", how many numbers it has, "scale", its step, and
    "zero_point". Of its error, in integers as real numbers minus in floats: "mean_error", "standard_deviation",
    "largest_error" (of the absolute values) and "mean_squared_error", means over the examples, and "error_in_steps",
    the root of the last divided by the scale.

    Args:
      rows: as `models.tflite_export.debug_quantization` returns them, in the order of the layers.
    """
    layers = []
    for row in rows:
        mean_squared_error, scale = float(row["mean_squared_error"]), float(row["scale"])
        # A tensor is called such as "sequential/convolution_1/BiasAdd;sequential/convolution_1/Conv2D".
        parts = row["tensor_name"].partition(";")[0].split("/")
        layers.append(
            {
                # The converter calls the last tensor after the signature.
                "layer": "output" if len(parts) == 1 else "/".join(parts[1:-1]) or parts[0],
                "operator": row["op_name"],
                "error_in_steps": math.sqrt(mean_squared_error) / scale if scale else math.nan,
                # The debugger writes whole numbers as 64.0.
                "elements": round(float(row["num_elements"])),
                "mean_error": float(row["mean_error"]),
                "standard_deviation": float(row["stddev"]),
                "largest_error": float(row["max_abs_error"]),
                "mean_squared_error": mean_squared_error,
                "scale": scale,
                "zero_point": round(float(row["zero_point"])),
                "tensor": row["tensor_name"],
            }
        )
    return layers


def list_worst(layers: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The layers with the largest errors in steps, the worst first."""
    known = [layer for layer in layers if math.isfinite(layer["error_in_steps"])]
    return sorted(known, key=lambda layer: -layer["error_in_steps"])[:NUM_WORST]
