"""What quantization costs: the exported files of float runs and of quantization-aware runs, over the seeds.

An experiment `<name>_qat` is compared with the experiment `<name>`, its float twin, over the seeds that both have; both
are runs that `launch.export` has exported. Imports no TensorFlow.
"""

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from launch.papers.engine.markdown import Report, Table
from launch.papers.engine.paper import Paper
from launch.papers.engine.tables import BySeed, Values, collect, count, describe, read_texts, show, show_range
from launch.runs.columns import EXPORT_REPORT, MODEL, TEST_ACCURACY
from launch.runs.run_records import RunRecord, read_rows
from models.model_names import EXPORT_FORMATS

QAT_SUFFIX = "_qat"
QAT_FORMAT = "qat_int8"
QUANTIZATION_RUNS = rf"fedsikd_(mnist|har)_quantization({QAT_SUFFIX})?"
SHARED_MODEL = "global"
ROUND, PERCENT = "rounds", "percent"
SIZE, SHARE, LATENCY = "size_bytes", "share_of_float32", "median_ms_1_thread"
DIFFERENCE, AGREEMENT = "difference", "agreement"  # of a file and its Keras model, in points and in per cent
KERAS_ACCURACY = "keras_test_accuracy"
FILE_COLUMNS = (
    *("experiment", "format", "seeds", SIZE, SHARE, "keras_accuracy", "file_accuracy"),
    *("worst_difference", "worst_agreement", LATENCY),
)
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
    """The numbers of a row of `export/report.csv`, with those of the file and its Keras model."""
    numbers = {}
    for name, cell in row.items():
        try:
            numbers[name] = float(cell)
        except ValueError:  # a name, or a cell that this format leaves empty
            continue
    # Earlier exports had no cards in their files.
    numbers[SIZE] -= numbers.pop("card_bytes", 0.0)
    if KERAS_ACCURACY in numbers:
        numbers[DIFFERENCE] = 100 * (numbers[TEST_ACCURACY] - numbers[KERAS_ACCURACY])
        numbers[AGREEMENT] = 100 * numbers["top1_agreement"]
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
        "files": Table(FILE_COLUMNS, [row for name in pairs for row in tabulate_files(values, name)]),
        "runs": Table(RUN_COLUMNS, [tabulate_runs(values, name) for name in pairs]),
    }
    return paper.compose_report(describe("quantization", tables), [], {}, counted)


def tabulate_files(values: Values, experiment: str) -> list[list[str]]:
    """A row for each format, the columns of FILE_COLUMNS."""
    rows = []
    for name in EXPORT_FORMATS:
        numbers = (SIZE, SHARE, KERAS_ACCURACY, TEST_ACCURACY, LATENCY)
        found = {number: list(find_file(values, experiment, name, number).values()) for number in numbers}
        if found[SIZE]:
            mean = {number: statistics.fmean(each) for number, each in found.items()}
            worst = [min(find_file(values, experiment, name, number).values()) for number in (DIFFERENCE, AGREEMENT)]
            shown = [f"{mean[SIZE]:.0f}", f"{mean[SHARE]:.3f}"]
            shown += [f"{100 * mean[number]:.2f}" for number in (KERAS_ACCURACY, TEST_ACCURACY)]
            shown += [f"{worst[0]:+.2f}", f"{worst[1]:.2f}", f"{mean[LATENCY]:.3f}"]
            rows.append([experiment, name, str(len(found[SIZE])), *shown])
    return rows


def find_runs(values: Values, experiment: str, number: str = PERCENT) -> list[BySeed]:
    """A number of the float runs, and of the quantization-aware ones."""
    return [values[name, number] for name in (experiment, experiment + QAT_SUFFIX)]


def compute_difference(values: Values, experiment: str) -> float:
    """Mean accuracy of the quantization-aware runs minus that of the float runs, in points."""
    means = [statistics.fmean(by_seed.values()) for by_seed in find_runs(values, experiment)]
    return means[1] - means[0]


def tabulate_runs(values: Values, experiment: str) -> list[str]:
    """The columns of RUN_COLUMNS."""
    accuracies = find_runs(values, experiment)
    rounds = show_range(number for by_seed in find_runs(values, experiment, ROUND) for number in by_seed.values())
    shown = [show(by_seed, PERCENT) for by_seed in accuracies]
    return [experiment, count(*accuracies), rounds, *shown, f"{compute_difference(values, experiment):+.2f}"]


def judge_targets(values: Values, experiment: str) -> list[list[str]]:
    """A row for each target, the columns of TARGET_COLUMNS."""
    texts = read_texts("quantization")
    rows = []
    for target in texts["target"]:
        found = find_file(values, experiment, target["format"], target["number"])
        rows.append([experiment, f"{target['format']}: {target['words']}", *judge(target, list(found.values()))])
    target = texts["run_target"]
    return [*rows, [experiment, target["words"], *judge(target, [abs(compute_difference(values, experiment))])]]


def judge(target: Mapping[str, Any], numbers: Sequence[float]) -> list[str]:
    """The number that is nearest to the bound or farthest past it, and the verdict."""
    if not numbers:
        return ["", "not run"]
    worst = min(numbers) if "least" in target else max(numbers)
    is_reached = target.get("least", -math.inf) <= worst <= target.get("most", math.inf)
    return [f"{worst:.2f} {target.get('unit', '')}".strip(), "reached" if is_reached else "not reached"]
