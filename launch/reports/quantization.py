"""What quantization costs: the exported files of float runs and of quantization-aware runs, over the seeds.

An experiment `<name>_qat` is compared with the experiment `<name>`, its float twin; both are runs that `launch.export`
has exported. Imports no TensorFlow.
"""

import csv
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.reports.report_tables import Report
from launch.runs.columns import TEST_ACCURACY
from launch.runs.run_records import RunRecord
from models.model_names import EXPORT_FORMATS

QAT_SUFFIX = "_qat"
TITLE = "# Quantization: exported files beside the Keras models they were converted from"
LEGEND = (
    "Means over n seeds on the global test set. Files: of the float runs, and `qat_int8` of the runs with "
    "`--quantize=qat`. Share: of the size of the float32 file. Difference: accuracy of the file minus that of its "
    "Keras model, in points, the worst seed; agreement: share of examples with the same top class, the worst seed. "
    "Latency: one example on one thread of the machine that made the export."
)
FILE_COLUMNS = (
    "experiment", "format", "seeds", "size_bytes", "share_of_float32", "keras_accuracy", "file_accuracy",
    "worst_difference", "worst_agreement", "median_ms_1_thread",
)  # fmt: skip
RUN_COLUMNS = ("experiment", "seeds", "rounds", "float_accuracy", "qat_accuracy", "difference")
TARGET_COLUMNS = ("experiment", "target", "measured", "verdict")


class Export(NamedTuple):
    """One exported file of a run, as numbers by column of `export/report.csv`, with its experiment and format."""

    experiment: str
    format: str
    values: Mapping[str, float]


class Target(NamedTuple):
    """What the files of a format must keep to, in every seed.

    Attributes:
      format: of EXPORT_FORMATS.
      words: the target in words.
      unit: of the measure.
      measure: (exports of one experiment and format) -> the number of the worst seed.
      minimum: the least that it may be, or None.
      maximum: the most that it may be, or None.
    """

    format: str
    words: str
    unit: str
    measure: Callable[[Sequence[Export]], float]
    minimum: float | None = None
    maximum: float | None = None


def compute_worst_difference(exports: Sequence[Export]) -> float:
    """Accuracy of a file minus that of its Keras model, in points, in the worst seed."""
    return 100 * min(export.values[TEST_ACCURACY] - export.values["keras_test_accuracy"] for export in exports)


def compute_worst_agreement(exports: Sequence[Export]) -> float:
    """Share of examples with the same top class, in percent, in the worst seed."""
    return 100 * min(export.values["top1_agreement"] for export in exports)


def compute_largest_share(exports: Sequence[Export]) -> float:
    """Size as a share of the float32 file's, in the worst seed."""
    return max(export.values["share_of_float32"] for export in exports)


BELOW, SAME = "accuracy at most {} points below its Keras model's", "at least {} % of the top classes its Keras model's"
TARGETS = (
    Target("qat_int8", BELOW.format(0.5), "points", compute_worst_difference, minimum=-0.5),
    Target("qat_int8", SAME.format(98.5), "%", compute_worst_agreement, minimum=98.5),
    Target("qat_int8", "size at most 0.40 of the float32 file's", "", compute_largest_share, maximum=0.40),
    Target("int8", BELOW.format(1), "points", compute_worst_difference, minimum=-1.0),
    Target("int8", SAME.format(98), "%", compute_worst_agreement, minimum=98.0),
)
MAX_RUN_DIFFERENCE = 1.5  # points


def read_exports(run: RunRecord, experiment: str) -> list[Export]:
    """The exported shared model of a run, a value a format; none if it was never exported."""
    path = run.path / "export" / "report.csv"
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == "global"]
    return [Export(experiment, row["format"], _read_numbers(row)) for row in rows]


def _read_numbers(row: Mapping[str, str]) -> dict[str, float]:
    numbers = {}
    for name, cell in row.items():
        try:
            numbers[name] = float(cell)
        except ValueError:
            continue
    return numbers


def pair_runs(runs: Sequence[RunRecord]) -> dict[str, list[tuple[RunRecord, RunRecord]]]:
    """{experiment: [(float run, quantization-aware run), ...]}, a pair for each seed that has both."""
    by_name = {(run.experiment, run.flags["seed"]): run for run in runs}
    pairs: dict[str, list[tuple[RunRecord, RunRecord]]] = {}
    for (experiment, seed), run in sorted(by_name.items()):
        twin = by_name.get((experiment + QAT_SUFFIX, seed))
        if twin is not None:
            pairs.setdefault(experiment, []).append((run, twin))
    return pairs


def build_quantization_report(runs: Sequence[RunRecord]) -> Report:
    """The tables of files, of runs, and of what was aimed at."""
    pairs = pair_runs(runs)
    exports = [export for experiment in pairs for export in _read_pair_exports(experiment, pairs[experiment])]
    files = tabulate_files(exports)
    accuracies = [_tabulate_runs(experiment, pairs[experiment]) for experiment in pairs]
    targets = judge_targets(exports, pairs)
    parts = [TITLE, LEGEND]
    for heading, columns, rows in (
        ("## Files", FILE_COLUMNS, files),
        ("## Runs: test accuracy at the last round", RUN_COLUMNS, accuracies),
        ("## Targets", TARGET_COLUMNS, targets),
    ):
        parts += [heading, _format_table(columns, rows) if rows else "not run"]
    tables = {"files": (FILE_COLUMNS, files), "runs": (RUN_COLUMNS, accuracies), "targets": (TARGET_COLUMNS, targets)}
    counted = [run for experiment in pairs for pair in pairs[experiment] for run in pair]
    return Report("\n\n".join(parts) + "\n", tables, counted)


def _read_pair_exports(experiment: str, pairs: Iterable[tuple[RunRecord, RunRecord]]) -> list[Export]:
    exports = []
    for float_run, qat_run in pairs:
        exports += read_exports(float_run, experiment)
        exports += [export for export in read_exports(qat_run, experiment) if export.format == "qat_int8"]
    return exports


def _group(exports: Iterable[Export]) -> dict[tuple[str, str], list[Export]]:
    groups: dict[tuple[str, str], list[Export]] = {}
    for export in exports:
        groups.setdefault((export.experiment, export.format), []).append(export)
    return dict(sorted(groups.items(), key=lambda item: (item[0][0], EXPORT_FORMATS.index(item[0][1]))))


def tabulate_files(exports: Iterable[Export]) -> list[list[str]]:
    """A row for each experiment and format, the columns of FILE_COLUMNS."""
    rows = []
    for (experiment, name), group in _group(exports).items():
        means = {column: statistics.fmean(export.values[column] for export in group) for column in group[0].values}
        rows.append(
            [
                experiment,
                name,
                str(len(group)),
                f"{means['size_bytes']:.0f}",
                f"{means['share_of_float32']:.3f}",
                f"{100 * means['keras_test_accuracy']:.2f}",
                f"{100 * means['test_accuracy']:.2f}",
                f"{compute_worst_difference(group):+.2f}",
                f"{compute_worst_agreement(group):.2f}",
                f"{means['median_ms_1_thread']:.3f}",
            ]
        )
    return rows


def _final_accuracy(run: RunRecord) -> float:
    return 100 * run.rounds[max(run.rounds)][TEST_ACCURACY]


def _tabulate_runs(experiment: str, pairs: Sequence[tuple[RunRecord, RunRecord]]) -> list[str]:
    float_accuracy, qat_accuracy = ([_final_accuracy(run) for run in runs] for runs in zip(*pairs, strict=True))
    rounds = sorted({max(run.rounds) for pair in pairs for run in pair})
    return [
        experiment,
        str(len(pairs)),
        " to ".join(map(str, dict.fromkeys((rounds[0], rounds[-1])))),
        _format_spread(float_accuracy),
        _format_spread(qat_accuracy),
        f"{statistics.fmean(qat_accuracy) - statistics.fmean(float_accuracy):+.2f}",
    ]


def _format_spread(values: Sequence[float]) -> str:
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.2f}{spread}"


def judge_targets(
    exports: Iterable[Export], pairs: Mapping[str, Sequence[tuple[RunRecord, RunRecord]]]
) -> list[list[str]]:
    """A row for each experiment and target, the columns of TARGET_COLUMNS."""
    groups = _group(exports)
    rows = []
    for experiment, runs in pairs.items():
        for target in TARGETS:
            group = groups.get((experiment, target.format))
            measured = target.measure(group) if group else None
            rows.append(
                [
                    experiment,
                    f"{target.format}: {target.words}",
                    *_judge(measured, target.unit, target.minimum, target.maximum),
                ]
            )
        means = [statistics.fmean(map(_final_accuracy, each)) for each in zip(*runs, strict=True)]
        words = f"QAT runs: mean accuracy at most {MAX_RUN_DIFFERENCE} points from the float runs'"
        rows.append([experiment, words, *_judge(abs(means[1] - means[0]), "points", maximum=MAX_RUN_DIFFERENCE)])
    return rows


def _judge(
    measured: float | None, unit: str, minimum: float | None = None, maximum: float | None = None
) -> tuple[str, str]:
    """(measured, verdict) as cells."""
    if measured is None:
        return "", "not run"
    is_missed = (minimum is not None and measured < minimum) or (maximum is not None and measured > maximum)
    return f"{measured:.2f} {unit}".strip(), "not reached" if is_missed else "reached"


def _format_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("_", " ") for cell in line) + " |" for line in lines)
