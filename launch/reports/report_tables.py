"""A paper's printed results beside those of our runs, as Markdown and CSV. Knows no paper by name."""

import csv
import dataclasses
import pathlib
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.reports.claims import FAILS, HOLDS, PERCENT_METRICS, Cell, Claim, Outcome, decide
from launch.runs.columns import TEST_ACCURACY, TEST_LOSS
from launch.runs.run_records import RunRecord

PRINTED_VALUES = pathlib.Path(__file__).parent
PRESETS = ("printed", "tuned")
METRIC_NAMES = {TEST_ACCURACY: "test accuracy (%)", TEST_LOSS: "test loss"}
OURS_VERDICTS = {HOLDS: "reproduced", FAILS: "not reproduced"}
PAPER_VERDICTS = {HOLDS: "agree", FAILS: "contradict it"}


@dataclasses.dataclass(frozen=True)
class PaperReport:
    """What of a paper is compared.

    Attributes:
      title: heading of the report.
      printed_files: CSV files in `launch/reports/` with the columns table, dataset, `setting_flag`, algorithm, round,
        metric, value.
      setting_flag: the flag whose value tells the settings of a data set apart.
      algorithms: the paper's names of the algorithms, each with its `--algo`, in the order of the rows.
      experiments: a regular expression that the names of its flagfiles match whole; other runs do not count.
      claims: what the paper says in words.
      figure: (file name, title) of the comparison by round, or None.
    """

    title: str
    printed_files: tuple[str, ...]
    setting_flag: str
    algorithms: Mapping[str, str]
    experiments: str
    claims: tuple[Claim, ...]
    figure: tuple[str, str] | None = None


class Report(NamedTuple):
    """A finished report: Markdown, and the CSV tables by name, each its columns and rows; the runs that it counts."""

    markdown: str
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]]
    runs: Sequence[RunRecord]


@dataclasses.dataclass(frozen=True)
class ReportSource:
    """How a report is made of runs, each experiment and seed once.

    Attributes:
      build: (runs) -> Report.
      draw: (runs, folder) -> path of the figure drawn there, or None if there is no figure.
    """

    build: Callable[[Sequence[RunRecord]], Report]
    draw: Callable[[Sequence[RunRecord], pathlib.Path], pathlib.Path] | None = None


class PrintedValue(NamedTuple):
    """A number in a table of the paper."""

    table: str
    cell: Cell
    value: float


class Measured(NamedTuple):
    """A result of ours: mean and sample deviation (None for one seed) over `count` seeds."""

    mean: float
    deviation: float | None
    count: int


Results = Mapping[str, Mapping[Cell, Measured]]  # by preset


def normalize_setting(value: float | str) -> str:
    """A setting as cells spell it: 1, "1.0" and 1.0 are all "1"."""
    try:
        return f"{float(value):g}"
    except ValueError:
        return str(value)


def read_printed_values(report: PaperReport, folder: pathlib.Path = PRINTED_VALUES) -> list[PrintedValue]:
    """The printed numbers, in the order of the files."""
    values = []
    for name in report.printed_files:
        with open(folder / name, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                setting, algo = normalize_setting(row[report.setting_flag]), report.algorithms[row["algorithm"]]
                cell = Cell(row["dataset"], setting, algo, int(row["round"]), row["metric"])
                values.append(PrintedValue(row["table"], cell, float(row["value"])))
    return values


def choose_runs(runs: Iterable[RunRecord]) -> tuple[list[RunRecord], list[str]]:
    """One run for each experiment and seed, that with the most rounds; and a line for each one left out."""
    chosen: dict[tuple, RunRecord] = {}
    left_out = []
    for run in runs:
        key = (run.experiment, run.flags["seed"])
        longest = max(chosen.get(key, run), run, key=lambda record: len(record.rounds))
        if key in chosen:
            other = run if longest is chosen[key] else chosen[key]
            left_out.append(
                f"{other.path}: the same experiment and seed as {longest.path}, which has as many rounds or more"
            )
        chosen[key] = longest
    return list(chosen.values()), left_out


def compute_results(runs: Iterable[RunRecord], setting_flag: str) -> Results:
    """Mean and deviation over the seeds of every metric of every round, by preset."""
    values: dict[str, dict[Cell, list[float]]] = {preset: {} for preset in PRESETS}
    for run in runs:
        setting = normalize_setting(run.flags.get(setting_flag, ""))
        for round_num, metrics in run.rounds.items():
            for metric, value in metrics.items():
                cell = Cell(run.flags["dataset"], setting, run.flags["algo"], round_num, metric)
                values[run.preset].setdefault(cell, []).append(value)
    return {preset: {cell: summarize(numbers) for cell, numbers in cells.items()} for preset, cells in values.items()}


def summarize(numbers: Sequence[float]) -> Measured:
    """Mean and sample deviation of at least one number."""
    deviation = statistics.stdev(numbers) if len(numbers) > 1 else None
    return Measured(statistics.fmean(numbers), deviation, len(numbers))


def format_measured(metric: str, measured: Measured | None) -> str:
    """ "74.12 ± 1.03" in the units of the table, "not run" for None."""
    if measured is None:
        return "not run"
    factor = 100 if metric in PERCENT_METRICS else 1
    spread = "" if measured.deviation is None else f" ± {factor * measured.deviation:.2f}"
    return f"{factor * measured.mean:.2f}{spread}"


def format_tables(report: PaperReport, printed: Sequence[PrintedValue], results: Results) -> str:
    """Every printed table as Markdown: a block for each data set, setting and metric, a row for each source."""
    blocks: dict[tuple, dict[str, dict[int, float]]] = {}
    for table, cell, value in printed:
        block = blocks.setdefault((table, cell.dataset, cell.setting, cell.metric), {})
        block.setdefault(cell.algo, {})[cell.round_num] = value
    lines = []
    table_before = None
    for (table, dataset, setting, metric), rows in blocks.items():
        if table != table_before:
            lines += [f"## Table {table}", ""]
            table_before = table
        symbol = report.setting_flag.replace("_", " ")
        lines += [f"**{dataset.upper()}, {symbol} {setting}, {METRIC_NAMES.get(metric, metric)}**", ""]
        lines += [*_format_block(report, Cell(dataset, setting, "", 0, metric), rows, results), ""]
    return "\n".join(lines)


def _format_block(
    report: PaperReport, place: Cell, rows: Mapping[str, Mapping[int, float]], results: Results
) -> list[str]:
    rounds = sorted({round_num for values in rows.values() for round_num in values})
    lines = [
        _join("algorithm", "", *(f"round {round_num}" for round_num in rounds)),
        _join(*["---"] * (len(rounds) + 2)),
    ]
    for name, algo in report.algorithms.items():
        if algo not in rows:
            continue
        cells = [place._replace(algo=algo, round_num=round_num) for round_num in rounds]
        factor = 100 if place.metric in PERCENT_METRICS else 1
        values = [rows[algo].get(round_num) for round_num in rounds]
        lines.append(_join(name, "printed", *("" if value is None else f"{factor * value:.2f}" for value in values)))
        for preset in PRESETS:
            measured = [results[preset].get(cell) for cell in cells]
            if preset == "printed" or any(measured):
                source = ("ours" if preset == "printed" else f"ours, {preset}") + _format_counts(measured)
                lines.append(_join("", source, *(format_measured(place.metric, value) for value in measured)))
    return lines


def _format_counts(measured: Sequence[Measured | None]) -> str:
    counts = sorted({value.count for value in measured if value})
    if not counts:
        return ""
    return f" (n = {counts[0]})" if len(counts) == 1 else f" (n = {counts[0]} to {counts[-1]})"


def _join(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


class Judgement(NamedTuple):
    """A claim put to the paper's tables and to our runs; `tuned` is None if no tuned run has a part in it."""

    claim: Claim
    printed: Outcome
    ours: Outcome
    tuned: Outcome | None


def judge(claim: Claim, printed: Sequence[PrintedValue], results: Results) -> Judgement:
    """Decides a claim for each source. Algorithms without tuned runs take part in `tuned` as the paper has them."""
    paper = {value.cell: value.value for value in printed}
    ours = {cell: measured.mean for cell, measured in results["printed"].items()}
    tuned = {cell: measured.mean for cell, measured in results["tuned"].items()}
    has_tuned = not claim.cells.isdisjoint(tuned)
    tuned_places = {cell[:3] for cell in tuned}

    def look_up_tuned(cell: Cell) -> float | None:
        return tuned.get(cell) if cell[:3] in tuned_places else ours.get(cell)

    outcome = decide(claim, look_up_tuned) if has_tuned else None
    return Judgement(claim, decide(claim, paper.get), decide(claim, ours.get), outcome)


def format_claims(judgements: Sequence[Judgement]) -> str:
    """The claims as Markdown: a table of verdicts, then the numbers that decide."""
    lines = [_join("", "section", "claim", "printed tables", "ours", "ours, tuned"), _join(*["---"] * 6)]
    for number, (claim, printed, ours, tuned) in enumerate(judgements, 1):
        verdicts = (say_printed(printed), say_ours(ours), say_ours(tuned))
        lines.append(_join(str(number), claim.section, claim.text, *verdicts))
    lines += ["", "How each is decided, and the numbers that decide it:", ""]
    for number, (claim, *outcomes) in enumerate(judgements, 1):
        lines.append(f"{number}. {claim.text}. *Rule:* {claim.rule}.")
        for source, outcome in zip(("Printed tables", "Ours", "Ours, tuned"), outcomes, strict=True):
            if outcome is not None and outcome.numbers:
                lines.append(f"   - {source}: {outcome.numbers}.")
    return "\n".join(lines) + "\n"


def say_printed(outcome: Outcome) -> str:
    """What the paper's own tables say to a claim of its text."""
    return PAPER_VERDICTS.get(outcome.verdict, "not printed")


def say_ours(outcome: Outcome | None) -> str:
    """What our runs say to a claim."""
    return "" if outcome is None else OURS_VERDICTS.get(outcome.verdict, "not run")


def tabulate_values(
    report: PaperReport, printed: Sequence[PrintedValue], results: Results
) -> tuple[list[str], list[list[str]]]:
    """The tables as the columns and rows of a CSV file, a row a printed value; empty cells where not run."""
    columns = ["table", "dataset", report.setting_flag, "algo", "round", "metric", "printed"]
    columns += [f"{source}_{part}" for source in ("ours", "tuned") for part in ("mean", "deviation", "seeds")]
    rows = []
    for table, cell, value in printed:
        row = [table, cell.dataset, cell.setting, cell.algo, str(cell.round_num), cell.metric, f"{value:g}"]
        for preset in PRESETS:
            measured = results[preset].get(cell)
            row += ["", "", ""] if measured is None else _format_numbers(measured)
        rows.append(row)
    return columns, rows


def _format_numbers(measured: Measured) -> list[str]:
    deviation = "" if measured.deviation is None else f"{measured.deviation:.6g}"
    return [f"{measured.mean:.6g}", deviation, str(measured.count)]


def tabulate_claims(judgements: Sequence[Judgement]) -> tuple[list[str], list[list[str]]]:
    """The claims as the columns and rows of a CSV file."""
    columns = ["section", "claim", "rule", "printed_tables", "ours", "ours_numbers", "tuned", "tuned_numbers"]
    rows = []
    for claim, printed, ours, tuned in judgements:
        numbers = "" if tuned is None else tuned.numbers
        verdicts = [say_printed(printed), say_ours(ours), ours.numbers, say_ours(tuned), numbers]
        rows.append([claim.section, claim.text, claim.rule, *verdicts])
    return columns, rows
