"""The report of an export: its rows, and the Markdown and CSV files made of them. Imports no TensorFlow."""

import pathlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from files.writing import write_text
from launch.runs.columns import REPORT_CLIENTS, REPORT_PAGE, REPORT_TABLE, REPORT_TEACHERS
from launch.runs.shown_text import align_columns, escape_markdown, tabulate_texts
from launch.runs.tables import format_cell, write_table
from launch.runs.task_columns import CLASSIFICATION, TaskColumns, find_task_columns
from launch.tflite.layer_report import EXPLANATION, NOT_OF_QAT, LayerError, tabulate_worst, write_layers

LATENCY = (
    "Latency is the time of one inference of one example after a warm-up, on this machine ({machine}, {threads} "
    "cores) and not on a phone: the median of up to {runs} runs, and the quartiles, between which half of them lie. "
    "How long a single run was disturbed changes none of these. It varies from run to run and with whatever else the "
    "machine does; everything else in this report is the same each time."
)
LEGEND = (
    "{metric}: on the global test set ({examples:,} examples), and as mean over the clients that use the model, each "
    "on its own test split (`report_clients.csv` has a row a client). {compared} compared "
    "on the global test set with the Keras model that the file was converted from: the quantization-aware one for "
    "`qat_int8`, the float one for all others. Bytes: of the file, and of them those of the model card, names "
    "and metadata in it (`card.md` has all cards, and `python -m launch.card <file>` shows one); shares of float32 are "
    "without these."
)


COMPARED_CLASSES = "Agreement (same class) and logits are"
COMPARED_OUTPUTS = "Outputs are"


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
    """A file that cannot be made: its name, its model's, its format, and why, in one line."""

    file: str
    model: str
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
      layers: {name: layers} of the files whose layers were measured.
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
    layers: Mapping[str, Sequence[LayerError]] = {}
    failed: Sequence[FailedFile] = ()
    task: TaskColumns = find_task_columns(CLASSIFICATION)


def format_summary(rows: Sequence[FileRow], task: TaskColumns) -> Iterator[str]:
    """The most important columns, aligned for the terminal."""
    has_classes = task.kind.is_labelled_by_class
    cells = [("file", "bytes", task.title, "Keras", "agreement" if has_classes else "largest difference", "ms")]
    for row in rows:
        compared = task.format(row.agreement) if has_classes else f"{row.largest_difference:.2g}"
        results = task.format(row.test), task.format(row.keras_test), compared
        cells.append((row.file, f"{row.size_bytes:,}", *results, f"{row.median_ms_1_thread:.3f}"))
    return align_columns(cells)


def write_report(report: ExportReport, folder: pathlib.Path) -> None:
    """Writes report.md, report.csv, report_clients.csv and, if there are such, report_teachers.csv and layers."""
    write_text(folder / REPORT_PAGE, format_report(report))
    _write_rows(folder / REPORT_TABLE, FileRow, report.files, report.task)
    _write_rows(folder / REPORT_CLIENTS, ClientRow, report.clients, report.task)
    if report.sizes:
        _write_rows(folder / REPORT_TEACHERS, SizeRow, report.sizes, report.task)
    for name, layers in report.layers.items():
        write_layers((folder / name).with_suffix(".layers.csv"), layers)


def _write_rows(path: pathlib.Path, row_type: Any, rows: Sequence[Any], task: TaskColumns) -> None:
    names = _name_columns(task)
    fields = [field for field in row_type._fields if names.get(field, field)]
    cells = [[format_cell(getattr(row, field)) for field in fields] for row in rows]
    write_table(path, [names.get(field, field) for field in fields], cells)


def _name_columns(task: TaskColumns) -> dict[str, str]:
    """{field: column} of the fields whose column depends on the task; "" for no column."""
    has_classes = task.kind.is_labelled_by_class
    return {
        "test": task.test,
        "client_test": task.client_test,
        "keras_test": f"keras_{task.test}",
        "agreement": "top1_agreement" if has_classes else "",
        "largest_difference": "largest_logit_difference" if has_classes else "largest_output_difference",
    }


def format_report(report: ExportReport) -> str:
    """The report as Markdown."""
    task = report.task
    compared = COMPARED_CLASSES if task.kind.is_labelled_by_class else COMPARED_OUTPUTS
    parts = [
        f"# Exported models: {escape_markdown(report.title)}, round {report.rounds}",
        LEGEND.format(metric=task.heading, compared=compared, examples=report.num_test),
        tabulate_texts(_tabulate_files(report.files, task), 2),
        *_describe_representatives(report.files),
        *_describe_problems(report),
        "## Latency",
        LATENCY.format(runs=report.timed_runs, machine=platform.machine(), threads=report.threads),
        tabulate_texts(_tabulate_latency(report), 1),
        "## Operators",
        tabulate_texts([("file", "operators"), *((row.file, row.operators) for row in report.files)], 2),
    ]
    if report.sizes:
        parts += ["## Student and teacher", *_describe_sizes(report.sizes, task)]
    if report.layers:
        parts += ["## Quantization, layer by layer", EXPLANATION, tabulate_texts(tabulate_worst(report.layers), 3)]
        parts += [NOT_OF_QAT] if any(row.format == "qat_int8" for row in report.files) else []
    if report.training_files:
        parts += ["## On-device training", *_describe_training_files(report.training_files)]
    return "\n\n".join(parts) + "\n"


def _tabulate_files(rows: Sequence[FileRow], task: TaskColumns) -> list[tuple[str, ...]]:
    has_classes = task.kind.is_labelled_by_class
    headings = (
        *("file", "input", "bytes", "of them card", "share of float32", "parameters", "multiply-accumulates"),
        *(f"test {task.title}", f"clients' test {task.title}", f"Keras test {task.title}"),
        *(("agreement", "largest logit difference") if has_classes else ("largest output difference",)),
    )
    return [headings, *(_format_file(row, task) for row in rows)]


def _format_file(row: FileRow, task: TaskColumns) -> tuple[str, ...]:
    own = row.client_test
    return (
        row.file,
        row.input_dtype,
        f"{row.size_bytes:,}",
        f"{row.card_bytes:,}",
        "" if row.share_of_float32 is None else f"{row.share_of_float32:.2f}",
        f"{row.parameters:,}",
        f"{row.multiply_accumulates:,}",
        task.format(row.test),
        "" if own is None else f"{task.format(own)} ({row.num_clients})",
        task.format(row.keras_test),
        *(() if row.agreement is None else (f"{row.agreement:.4f}",)),
        f"{row.largest_difference:.2g}",
    )


def _describe_representatives(rows: Sequence[FileRow]) -> list[str]:
    sources = [
        f"{row.representative_client or f'{row.representative_clients:,} clients'} ({row.file})"
        for row in rows
        if row.representative_clients
    ]
    text = f"Activation ranges of int8 are from the train splits of {', '.join(sources)}."
    return [escape_markdown(text)] if sources else []


def _describe_problems(report: ExportReport) -> list[str]:
    """What to know before a file is used: what cannot be made, and what has lost much."""
    lines = [f"- {row.file} cannot be made: {row.reason}." for row in report.failed]
    lines += [f"- {row.file} {row.warning}." for row in report.files if row.warning]
    return ["## Warnings", "\n".join(lines)] if lines else []


def _tabulate_latency(report: ExportReport) -> list[tuple[str, ...]]:
    rows = [("file", "median, 1 thread (ms)", "quartiles", f"median, {report.threads} threads (ms)", "quartiles")]
    for row in report.files:
        one, every = row.median_ms_1_thread, row.median_ms_all_threads
        spread = f"{row.lower_quartile_ms_1_thread:.3f} to {row.upper_quartile_ms_1_thread:.3f}"
        spread_of_all = f"{row.lower_quartile_ms_all_threads:.3f} to {row.upper_quartile_ms_all_threads:.3f}"
        rows.append((row.file, f"{one:.3f}", spread, f"{every:.3f}", spread_of_all))
    return rows


def _describe_sizes(rows: Sequence[SizeRow], task: TaskColumns) -> list[str]:
    headings = ("model", "format", "parameters", "multiply-accumulates", "bytes", "times smaller", f"test {task.title}")
    cells = [
        (
            *(row.model, row.format, f"{row.parameters:,}", f"{row.multiply_accumulates:,}", f"{row.size_bytes:,}"),
            *(f"{row.times_smaller:.2f}", task.format(row.test), f"{row.median_ms_1_thread:.3f}"),
        )
        for row in rows
    ]
    teacher, student = rows[0], rows[-1]
    ratios = (
        f"The teacher has {teacher.parameters / student.parameters:.2f} times the student's parameters and "
        f"{teacher.multiply_accumulates / student.multiply_accumulates:.2f} times its multiply-accumulates. "
        "Times smaller: the size of the teacher's float32 file divided by that of the file, both without cards. "
        "ms: median on 1 thread. Teachers were converted for this table only; launch.export --model=<teacher> exports "
        "one."
    )
    return [ratios, tabulate_texts([(*headings, "ms"), *cells], 2)]


def _describe_training_files(rows: Sequence[TrainingRow]) -> list[str]:
    note = (
        "These hold the float model with the signatures train, infer, get_weights and set_weights; they are not "
        "measured here. head: the last dense layers are trained; full: all layers. Where operators of TensorFlow are "
        "named, the file needs a runtime that has them, the select operators. step: what train does, built into the "
        "file; set_weights begins a round, as a client did."
    )
    headings = ("file", "trained", "step", "operators", "operators of TensorFlow", "bytes")
    cells = [
        (row.file, row.trained, row.step, row.operators, row.select_operators or "none", f"{row.size_bytes:,}")
        for row in rows
    ]
    return [note, tabulate_texts([headings, *cells], 5)]
