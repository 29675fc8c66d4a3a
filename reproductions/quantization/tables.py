"""What quantization costs: the exported files of float runs and of quantization-aware runs, over the seeds.

An experiment `<name>_qat` is compared with the experiment `<name>`, its float twin, over the seeds that both have; both
are runs that `launch.export` has exported. Imports no TensorFlow.
"""

import contextlib
import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from launch.runs.columns import EXPORT_REPORT, MODEL, TEST_ACCURACY
from launch.runs.run_records import RunRecord, read_rows
from models.model_names import EXPORT_FORMATS
from reproductions.engine.folder import read_toml
from reproductions.engine.markdown import Report, Table
from reproductions.engine.paper import Paper
from reproductions.engine.report import compose_report
from reproductions.engine.tables import BySeed, Values, collect, count, describe, show, show_range

QAT_SUFFIX = "_qat"
QAT_FORMAT = "qat_int8"
SHARED_MODEL = "global"
ROUND, PERCENT = "rounds", "percent"
TEXTS = read_toml("quantization", "tables.toml")
TAKES = {"mean": statistics.fmean, "worst": min}
FILE_COLUMNS = ("experiment", "format", "seeds", *TEXTS["file_columns"])
RUN_COLUMNS = ("experiment", "seeds", "rounds", "float_accuracy", "qat_accuracy", "difference")
TARGET_COLUMNS = ("experiment", "target", "measured", "verdict")


def measure(run: RunRecord) -> dict[Hashable, float]:
    """The accuracy of a run, and the numbers of its exported shared model by (format, number)."""
    last = max(run.rounds)
    numbers: dict[Hashable, float] = {ROUND: float(last), PERCENT: 100 * run.rounds[last][TEST_ACCURACY]}
    path = run.path / EXPORT_REPORT
    for row in read_rows(path) if path.is_file() else ():
        if row[MODEL] == SHARED_MODEL:
            numbers |= {(row["format"], name): number for name, number in read_file(row).items()}
    return numbers


def read_file(row: Mapping[str, str]) -> dict[str, float]:
    """The numbers of a row of `export/report.csv`, and how far the file is from its Keras model, in points."""
    numbers = {}
    for name, cell in row.items():
        with contextlib.suppress(ValueError):  # a name, or a cell that this format leaves empty
            numbers[name] = float(cell)
    # Earlier exports had no cards in their files.
    numbers["size_bytes"] -= numbers.pop("card_bytes", 0.0)
    if "keras_test_accuracy" in numbers:
        numbers |= {PERCENT: 100 * numbers[TEST_ACCURACY], "keras_percent": 100 * numbers["keras_test_accuracy"]}
        numbers["difference"] = 100 * (numbers[TEST_ACCURACY] - numbers["keras_test_accuracy"])
        numbers["agreement"] = 100 * numbers["top1_agreement"]
    return numbers


def find_pairs(runs: Sequence[RunRecord]) -> dict[str, set[int]]:
    """The seeds of each float experiment that its twin has, too."""
    seeds: dict[str, set[int]] = {}
    for run in runs:
        seeds.setdefault(run.experiment, set()).add(run.flags["seed"])
    pairs = {name: each & seeds.get(name + QAT_SUFFIX, set()) for name, each in sorted(seeds.items())}
    return {name: each for name, each in pairs.items() if each}


def find_file(values: Values, experiment: str, format_name: str, number: str) -> BySeed:
    """A number of the files that are compared: all of the float run's, and the one that its twin was trained for."""
    owner = experiment + QAT_SUFFIX if format_name == QAT_FORMAT else experiment
    return values.get((owner, (format_name, number)), {})


def build_quantization_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """What was aimed at, and the tables of files and of runs."""
    pairs = find_pairs(runs)
    counted = [run for run in runs if run.flags["seed"] in pairs.get(run.experiment.removesuffix(QAT_SUFFIX), ())]
    values = collect(counted, measure)
    tables = {
        "targets": Table(TARGET_COLUMNS, [row for name in pairs for row in judge_targets(values, name)]),
        "files": Table(FILE_COLUMNS, [row for name in pairs for row in list_files(values, name)]),
        "runs": Table(RUN_COLUMNS, [list_run(values, name) for name in pairs]),
    }
    return compose_report(paper, describe("quantization", tables), counted, {})


def list_files(values: Values, experiment: str) -> list[list[str]]:
    """A row for each format, with the columns of `tables.toml`."""
    rows = []
    for name in EXPORT_FORMATS:
        if seeds := len(find_file(values, experiment, name, "size_bytes")):
            columns = TEXTS["file_columns"].values()
            found = [find_file(values, experiment, name, number).values() for number, _, _ in columns]
            shown = [f"{TAKES[take](each):{form}}" for each, (_, take, form) in zip(found, columns, strict=True)]
            rows.append([experiment, name, str(seeds), *shown])
    return rows


def find_runs(values: Values, experiment: str, number: str = PERCENT) -> list[BySeed]:
    """A number of the float runs, and of the quantization-aware ones."""
    return [values[name, number] for name in (experiment, experiment + QAT_SUFFIX)]


def compute_difference(values: Values, experiment: str) -> float:
    """Mean accuracy of the quantization-aware runs minus that of the float runs, in points."""
    of_float, of_qat = (statistics.fmean(by_seed.values()) for by_seed in find_runs(values, experiment))
    return of_qat - of_float


def list_run(values: Values, experiment: str) -> list[str]:
    """The columns of RUN_COLUMNS."""
    accuracies = find_runs(values, experiment)
    rounds = show_range(number for by_seed in find_runs(values, experiment, ROUND) for number in by_seed.values())
    shown = [show(by_seed, PERCENT) for by_seed in accuracies]
    return [experiment, count(*accuracies), rounds, *shown, f"{compute_difference(values, experiment):+.2f}"]


def judge_targets(values: Values, experiment: str) -> list[list[str]]:
    """A row for each target, the columns of TARGET_COLUMNS."""
    rows = []
    for target in TEXTS["target"]:
        found = find_file(values, experiment, target["format"], target["number"])
        rows.append([experiment, f"{target['format']}: {target['words']}", *judge(target, list(found.values()))])
    target = TEXTS["run_target"]
    return [*rows, [experiment, target["words"], *judge(target, [abs(compute_difference(values, experiment))])]]


def judge(target: Mapping[str, Any], numbers: Sequence[float]) -> list[str]:
    """The number that is nearest to the bound or farthest past it, and the verdict."""
    if not numbers:
        return ["", "not run"]
    worst = min(numbers) if "least" in target else max(numbers)
    is_reached = target.get("least", -math.inf) <= worst <= target.get("most", math.inf)
    return [f"{worst:.2f} {target.get('unit', '')}".strip(), "reached" if is_reached else "not reached"]


PAPER = Paper("quantization", build_quantization_report, kept_files=(EXPORT_REPORT,))
