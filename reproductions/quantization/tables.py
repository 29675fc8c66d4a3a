"""What quantization costs: the exported files of float runs and of quantization-aware runs, over the seeds.

An experiment `<name>_qat` is compared with the experiment `<name>`, its float twin, over the seeds that both have; both
are runs that `launch.export` has exported. Imports no TensorFlow.
"""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from launch.pages.comparison.seed_statistics import compute_mean
from launch.runs.columns import EXPORT_REPORT, MODEL, TEST_ACCURACY
from launch.runs.run_records import RunRecord, read_rows
from models.model_names import EXPORT_FORMATS
from reproductions.engine.collection import read_toml
from reproductions.engine.page import compose_report
from reproductions.engine.paper import Paper
from reproductions.engine.tables import Report, Table, describe, show, show_range

QAT_SUFFIX = "_qat"
QAT_FORMAT = "qat_int8"
SHARED_MODEL = "global"
TEXTS = read_toml("quantization", "tables.toml")
FILE_COLUMNS = ("experiment", "format", "seeds", *TEXTS["file_columns"])
RUN_COLUMNS = ("experiment", "seeds", "rounds", "float_accuracy", "qat_accuracy", "difference")
TARGET_COLUMNS = ("experiment", "target", "measured", "verdict")


def make_runs(runs: Iterable[RunRecord]) -> pd.DataFrame:
    """A row a run that has its twin: name of both, seed, whether it is quantization-aware, rounds, accuracy (%)."""
    rows = [
        (run.experiment.removesuffix(QAT_SUFFIX), run.flags["seed"], run.experiment.endswith(QAT_SUFFIX), run, last)
        for run in runs
        for last in [max(run.rounds)]
    ]
    frame = pd.DataFrame(rows, columns=["experiment", "seed", "is_qat", "run", "rounds"])
    frame["percent"] = [
        100 * run.rounds[last][TEST_ACCURACY] for run, last in zip(frame.run, frame.rounds, strict=True)
    ]
    has_twin = frame.groupby(["experiment", "seed"]).is_qat.transform("nunique") == 2
    return frame[has_twin]


def make_files(runs: pd.DataFrame) -> pd.DataFrame:
    """A row a file that is compared: all of the float runs, and the one that their twins were trained for."""
    rows = [
        {"experiment": each.experiment, **row, **read_file(row)}
        for each in runs.itertuples()
        for path in [each.run.path / EXPORT_REPORT]
        for row in (read_rows(path) if path.is_file() else ())
        if row[MODEL] == SHARED_MODEL and (not each.is_qat or row["format"] == QAT_FORMAT)
    ]
    return pd.DataFrame(rows, columns=None if rows else ["experiment", "format"])


def read_file(row: Mapping[str, str]) -> dict[str, float]:
    """The numbers of a row of `export/report.csv`, and how far the file is from its Keras model, in points."""
    numbers = {}
    for name, cell in row.items():
        with contextlib.suppress(ValueError):  # a name, or a cell that this format leaves empty
            numbers[name] = float(cell)
    # Earlier exports had no cards in their files.
    numbers["size_bytes"] -= numbers.pop("card_bytes", 0.0)
    if "keras_test_accuracy" in numbers:
        numbers |= {"percent": 100 * numbers[TEST_ACCURACY], "keras_percent": 100 * numbers["keras_test_accuracy"]}
        numbers["difference"] = 100 * (numbers[TEST_ACCURACY] - numbers["keras_test_accuracy"])
        numbers["agreement"] = 100 * numbers["top1_agreement"]
    return numbers


def build_quantization_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """What was aimed at, and the tables of files and of runs."""
    frame = make_runs(runs)
    files = make_files(frame)
    tables = {
        "targets": Table(TARGET_COLUMNS, judge_targets(frame, files)),
        "files": Table(FILE_COLUMNS, list_files(files)),
        "runs": Table(RUN_COLUMNS, list_runs(frame)),
    }
    return compose_report(paper, describe("quantization", tables), list(frame.run), {})


def list_files(files: pd.DataFrame) -> list[list[str]]:
    """A row for each experiment and format, with the columns of `tables.toml`."""
    takes = {"mean": compute_mean, "worst": min}
    rows = []
    for (experiment, name), found in files.groupby(["experiment", "format"]):
        shown = [f"{takes[take](found[number]):{digits}}" for number, take, digits in TEXTS["file_columns"].values()]
        rows.append([experiment, name, str(len(found)), *shown])
    formats = list(EXPORT_FORMATS)
    return sorted(rows, key=lambda row: (row[0], formats.index(row[1])))


def compute_lead(runs: pd.DataFrame) -> float:
    """Mean accuracy of the quantization-aware runs minus that of the float runs, in points."""
    of_float, of_qat = (compute_mean(runs.percent[runs.is_qat == is_qat]) for is_qat in (False, True))
    return of_qat - of_float


def list_runs(frame: pd.DataFrame) -> list[list[str]]:
    """A row for each pair of experiments, the columns of RUN_COLUMNS."""
    rows = []
    for experiment, runs in frame.groupby("experiment"):
        of_float, of_qat = (runs.percent[runs.is_qat == is_qat] for is_qat in (False, True))
        lead, accuracies = compute_lead(runs), (show(each, "percent") for each in (of_float, of_qat))
        rows.append([experiment, str(len(of_float)), show_range(runs.rounds), *accuracies, f"{lead:+.2f}"])
    return rows


def judge_targets(frame: pd.DataFrame, files: pd.DataFrame) -> list[list[str]]:
    """A row for each experiment and target, the columns of TARGET_COLUMNS."""
    rows = []
    for experiment, runs in frame.groupby("experiment"):
        for target in TEXTS["target"]:
            found = files[(files.experiment == experiment) & (files.format == target["format"])]
            judged = judge(target, found[target["number"]] if len(found) else ())
            rows.append([experiment, f"{target['format']}: {target['words']}", *judged])
        target = TEXTS["run_target"]
        rows.append([experiment, target["words"], *judge(target, [abs(compute_lead(runs))])])
    return rows


def judge(target: Mapping[str, Any], numbers: Sequence[float]) -> list[str]:
    """The number that is nearest to the bound or farthest past it, and the verdict."""
    if not len(numbers):
        return ["", "not run"]
    worst = min(numbers) if "least" in target else max(numbers)
    is_reached = target.get("least", -math.inf) <= worst <= target.get("most", math.inf)
    return [f"{worst:.2f} {target.get('unit', '')}".strip(), "reached" if is_reached else "not reached"]


PAPER = Paper("quantization", build_quantization_report, kept_files=(EXPORT_REPORT,))
