"""What quantization costs: the exported files of float runs and of quantization-aware runs, over the seeds.

An experiment `<name>_qat` is compared with the experiment `<name>`, its float twin; both are runs that `launch.export`
has exported. Imports no TensorFlow.
"""

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from launch.papers.engine.collection import summarize
from launch.papers.engine.markdown import Report, Section, Table, format_measured, format_table
from launch.papers.engine.paper import Paper
from launch.runs.columns import EXPORT_REPORT, MODEL, TEST_ACCURACY
from launch.runs.run_records import RunRecord, read_rows
from models.model_names import EXPORT_FORMATS

QAT_SUFFIX = "_qat"
QAT_FORMAT = "qat_int8"
QUANTIZATION_RUNS = rf"fedsikd_(mnist|har)_quantization({QAT_SUFFIX})?"
SHARED_MODEL = "global"
LEGEND = (
    f"Means over n seeds on the global test set. Files: of the float runs, and `{QAT_FORMAT}` of the runs with "
    "`--quantize=qat`. Share: of the size of the float32 file. Difference: accuracy of the file minus that of its "
    "Keras model, in points, the worst seed; agreement: share of examples with the same top class, the worst seed. "
    "Latency: one example on one thread of the machine that made the export."
)
FILE_COLUMNS = (
    *("experiment", "format", "seeds", "size_bytes", "share_of_float32", "keras_accuracy", "file_accuracy"),
    *("worst_difference", "worst_agreement", "median_ms_1_thread"),
)
RUN_COLUMNS = ("experiment", "seeds", "rounds", "float_accuracy", "qat_accuracy", "difference")
TARGET_COLUMNS = ("experiment", "target", "measured", "verdict")
# Bounds of runs are wider than those of files: two trainings differ even without quantization.
MOST_RUN_DIFFERENCE = 1.5  # points

FileNumbers = Mapping[str, float]  # of one exported file, by column of `export/report.csv`
SeedExports = Mapping[int, Mapping[str, FileNumbers]]  # of the runs of an experiment, by seed and format
Pairs = Mapping[str, Sequence[tuple[RunRecord, RunRecord]]]


def compute_difference(file: FileNumbers) -> float:
    """Accuracy of a file minus that of its Keras model, in points."""
    return 100 * (file[TEST_ACCURACY] - file["keras_test_accuracy"])


def compute_agreement(file: FileNumbers) -> float:
    """Share of examples with the same top class, in per cent."""
    return 100 * file["top1_agreement"]


@dataclasses.dataclass(frozen=True)
class Target:
    """What the files of a format, or the runs, are to keep to in the worst seed.

    Attributes:
      text: the target in words.
      unit: of the number.
      least, most: bounds, which may be met.
      format_name: the format of the files; "" for the runs.
      measure: (numbers of a file) -> the number.
    """

    text: str
    unit: str
    least: float = -math.inf
    most: float = math.inf
    format_name: str = ""
    measure: Callable[[FileNumbers], float] | None = None

    def judge(self, numbers: Sequence[float]) -> list[str]:
        """Text, the number that is nearest to the bound or farthest past it, and the verdict."""
        name = f"{self.format_name}: {self.text}" if self.format_name else self.text
        if not numbers:
            return [name, "", "not run"]
        worst = max(numbers) if math.isinf(self.least) else min(numbers)
        is_reached = self.least <= worst <= self.most
        return [name, f"{worst:.2f} {self.unit}".strip(), "reached" if is_reached else "not reached"]


def _list_accuracy_targets(name: str, points: float, percent: float) -> tuple[Target, Target]:
    return (
        Target(f"accuracy at most {points:g} points below its Keras model's", "points", least=-points,
               format_name=name, measure=compute_difference),
        Target(f"at least {percent:g} % of the top classes its Keras model's", "%", least=percent,
               format_name=name, measure=compute_agreement),
    )  # fmt: skip


FILE_TARGETS = (
    *_list_accuracy_targets(QAT_FORMAT, 0.5, 98.5),
    Target("size at most 0.40 of the float32 file's", "", most=0.40, format_name=QAT_FORMAT,
           measure=lambda file: file["share_of_float32"]),
    *_list_accuracy_targets("int8", 1, 98),
)  # fmt: skip
RUN_TARGET = Target(
    f"QAT runs: mean accuracy at most {MOST_RUN_DIFFERENCE} points from the float runs'",
    "points",
    most=MOST_RUN_DIFFERENCE,
)


def read_export(run: RunRecord) -> dict[str, FileNumbers]:
    """The numbers of the exported shared model of a run, by format; none if it was never exported."""
    path = run.path / EXPORT_REPORT
    rows = read_rows(path) if path.is_file() else []
    return {row["format"]: _read_numbers(row) for row in rows if row[MODEL] == SHARED_MODEL}


def _read_numbers(row: Mapping[str, str]) -> dict[str, float]:
    numbers = {}
    for name, cell in row.items():
        try:
            numbers[name] = float(cell)
        except ValueError:  # a name, or a cell that this format leaves empty
            continue
    if {"size_bytes", "card_bytes"} <= numbers.keys():  # earlier exports had no cards in their files
        numbers["size_bytes"] -= numbers.pop("card_bytes")
    return numbers


def pair_runs(runs: Sequence[RunRecord]) -> Pairs:
    """{experiment: [(float run, quantization-aware run), ...]}, a pair for each seed that has both."""
    by_name = {(run.experiment, run.flags["seed"]): run for run in runs}
    pairs: dict[str, list[tuple[RunRecord, RunRecord]]] = {}
    for (experiment, seed), run in sorted(by_name.items()):
        twin = by_name.get((experiment + QAT_SUFFIX, seed))
        if twin is not None:
            pairs.setdefault(experiment, []).append((run, twin))
    return pairs


def read_pair(float_run: RunRecord, qat_run: RunRecord) -> dict[str, FileNumbers]:
    """The files that are compared: all of the float run's, and the one that its twin was trained for."""
    of_twin = {name: numbers for name, numbers in read_export(qat_run).items() if name == QAT_FORMAT}
    return read_export(float_run) | of_twin


def build_quantization_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """What was aimed at, and the tables of files and of runs."""
    pairs = pair_runs(runs)
    exports = {
        experiment: {pair[0].flags["seed"]: read_pair(*pair) for pair in members}
        for experiment, members in pairs.items()
    }
    judged = [row for each in pairs for row in judge_targets(each, exports[each], pairs[each])]
    tables = {
        "targets": _spell_out("Targets", TARGET_COLUMNS, judged),
        "files": _spell_out("Files", FILE_COLUMNS, [row for each in exports.items() for row in tabulate_files(*each)]),
        "runs": _spell_out(
            "Runs: test accuracy at the last round", RUN_COLUMNS, [_tabulate_runs(*each) for each in pairs.items()]
        ),
    }
    counted = [run for members in pairs.values() for pair in members for run in pair]
    return paper.compose_report(LEGEND, tables, [], {}, counted)


def _spell_out(heading: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Section:
    """A table whose names stand in words in Markdown."""
    lines = [[cell.replace("_", " ") for cell in line] for line in (columns, *rows)]
    text = format_table(Table(lines[0], lines[1:])) if rows else "not run"
    return Section(heading, Table(columns, rows), text)


def tabulate_files(experiment: str, exports: SeedExports) -> list[list[str]]:
    """A row for each format, the columns of FILE_COLUMNS."""
    rows = []
    for name in EXPORT_FORMATS:
        files = [by_format[name] for by_format in exports.values() if name in by_format]
        if not files:
            continue
        means = {column: statistics.fmean(file[column] for file in files) for column in files[0]}
        rows.append(
            [
                experiment,
                name,
                str(len(files)),
                f"{means['size_bytes']:.0f}",
                f"{means['share_of_float32']:.3f}",
                f"{100 * means['keras_test_accuracy']:.2f}",
                f"{100 * means[TEST_ACCURACY]:.2f}",
                f"{min(map(compute_difference, files)):+.2f}",
                f"{min(map(compute_agreement, files)):.2f}",
                f"{means['median_ms_1_thread']:.3f}",
            ]
        )
    return rows


def _final_accuracy(run: RunRecord) -> float:
    return 100 * run.rounds[max(run.rounds)][TEST_ACCURACY]


def _tabulate_runs(experiment: str, pairs: Sequence[tuple[RunRecord, RunRecord]]) -> list[str]:
    accuracies = [summarize([_final_accuracy(run) for run in runs]) for runs in zip(*pairs, strict=True)]
    rounds = sorted({max(run.rounds) for pair in pairs for run in pair})
    return [
        experiment,
        str(len(pairs)),
        " to ".join(map(str, dict.fromkeys((rounds[0], rounds[-1])))),
        *(format_measured("percent", accuracy) for accuracy in accuracies),
        f"{accuracies[1].mean - accuracies[0].mean:+.2f}",
    ]


def judge_targets(
    experiment: str, exports: SeedExports, pairs: Sequence[tuple[RunRecord, RunRecord]]
) -> list[list[str]]:
    """A row for each target of an experiment, the columns of TARGET_COLUMNS."""
    rows = []
    for target in FILE_TARGETS:
        files = [by_format[target.format_name] for by_format in exports.values() if target.format_name in by_format]
        rows.append([experiment, *target.judge([target.measure(file) for file in files])])
    means = [statistics.fmean(map(_final_accuracy, runs)) for runs in zip(*pairs, strict=True)]
    return [*rows, [experiment, *RUN_TARGET.judge([abs(means[1] - means[0])])]]
