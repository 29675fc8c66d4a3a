"""The FedSiKD paper's Tables V to IX beside our runs, as Markdown and CSV. Imports no TensorFlow."""

import re
from collections.abc import Iterable, Mapping, Sequence

from launch.reports.collection import (
    PERCENT_METRICS,
    PRESETS,
    PRINTED,
    TUNED,
    Cell,
    Measure,
    Measured,
    Numbers,
    Place,
    PrintedValue,
    Results,
    collect_results,
    group_runs,
    measure_runs,
)
from launch.reports.fedsikd.claims import NAMES
from launch.reports.markdown import Report, Section, Table, format_measured, format_table
from launch.reports.paper import Paper
from launch.runs.columns import TEST_ACCURACY, TEST_LOSS
from launch.runs.run_records import TUNED_SUFFIX, RunRecord

FEDSIKD_RUNS = rf"({'|'.join(NAMES)})_(mnist|har|har_windows)_alpha([0-9.]+)({TUNED_SUFFIX}|_authors)?"
# Those of them that the tables have a place for: not HAR's windows, nor the values of the authors' code.
TABLE_RUNS = rf"({'|'.join(NAMES)})_(mnist|har)_alpha([0-9.]+)({TUNED_SUFFIX})?"
METRIC_NAMES = {TEST_ACCURACY: "test accuracy (%)", TEST_LOSS: "test loss"}
SOURCES = {PRINTED: "ours", TUNED: "ours, tuned"}
LEGEND = (
    "Ours: mean ± sample deviation over n seeds, of runs with the settings of the flagfiles in launch/experiments/. "
    "Tuned: of the flagfiles that end in _tuned; in a claim, algorithms without such a run take part as printed. "
    "A claim is reproduced if all comparisons of its rule hold for our means."
)


def find_place(experiment: str) -> Place | None:
    """The place of an experiment's runs, its setting the alpha; None if the tables have none."""
    match = re.fullmatch(TABLE_RUNS, experiment)
    if match is None:
        return None
    algo, dataset, alpha, tuned = match.groups()
    return Place(TUNED if tuned else PRINTED, dataset, spell_alpha(alpha), algo)


def spell_alpha(alpha: str) -> str:
    """An alpha as cells spell it: "1" and "1.0" are both "1"."""
    return f"{float(alpha):g}"


def list_numbers(run: RunRecord) -> Numbers:
    """Every metric of every round."""
    return {Measure(metric, number): value for number, row in run.rounds.items() for metric, value in row.items()}


def compute_results(runs: Iterable[RunRecord]) -> Results:
    """Mean and deviation over the seeds of every metric of every round, by preset."""
    return collect_results(measure_runs(group_runs(runs, find_place), list_numbers))


def list_printed_values(rows: Iterable[Mapping[str, str]]) -> list[PrintedValue]:
    """The printed numbers, in the order of the files."""
    algos = {name: algo for algo, name in NAMES.items()}
    values = []
    for row in rows:
        alpha, algo = spell_alpha(row["dirichlet_alpha"]), algos[row["algorithm"]]
        cell = Cell(row["dataset"], alpha, algo, int(row["round"]), row["metric"])
        values.append(PrintedValue(row["table"], cell, float(row["value"])))
    return values


def build_fedsikd_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The printed tables with our rows below theirs, and the claims."""
    printed, results = list_printed_values(paper.read_printed_rows()), compute_results(runs)
    sections = {
        "tables": Section("", tabulate_values(printed, results), format_tables(printed, results)),
        "claims": paper.judge_claims(printed, results),
    }
    return paper.compose_report(LEGEND, sections, runs)


def format_tables(printed: Sequence[PrintedValue], results: Results) -> str:
    """Every printed table as Markdown: a block for each data set, alpha and metric, a row for each source."""
    blocks: dict[tuple, dict[str, dict[int, float]]] = {}
    for table, cell, value in printed:
        block = blocks.setdefault((table, cell.dataset, cell.setting, cell.metric), {})
        block.setdefault(cell.algo, {})[cell.round_num] = value
    lines = []
    table_before = None
    for (table, dataset, alpha, metric), rows in blocks.items():
        if table != table_before:
            lines += [f"## Table {table}", ""]
            table_before = table
        lines += [f"**{dataset.upper()}, dirichlet alpha {alpha}, {METRIC_NAMES.get(metric, metric)}**", ""]
        lines += [format_table(_tabulate_block(Cell(dataset, alpha, "", 0, metric), rows, results)), ""]
    return "\n".join(lines)


def _tabulate_block(place: Cell, rows: Mapping[str, Mapping[int, float]], results: Results) -> Table:
    rounds = sorted({round_num for values in rows.values() for round_num in values})
    factor = 100 if place.metric in PERCENT_METRICS else 1
    lines = []
    for algo, name in NAMES.items():
        if algo not in rows:
            continue
        values = [rows[algo].get(round_num) for round_num in rounds]
        lines.append([name, "printed", *("" if value is None else f"{factor * value:.2f}" for value in values)])
        for preset in PRESETS:
            measured = [results[preset].get(place._replace(algo=algo, round_num=round_num)) for round_num in rounds]
            # Every algorithm has a row of untuned runs, which may say that there are none; few were tuned at all.
            if preset == PRINTED or any(measured):
                source = SOURCES[preset] + _format_counts(measured)
                lines.append(["", source, *(format_measured(place.metric, value) for value in measured)])
    return Table(["algorithm", "", *(f"round {round_num}" for round_num in rounds)], lines)


def _format_counts(measured: Sequence[Measured | None]) -> str:
    counts = sorted({value.count for value in measured if value})
    if not counts:
        return ""
    return f" (n = {counts[0]})" if len(counts) == 1 else f" (n = {counts[0]} to {counts[-1]})"


def tabulate_values(printed: Sequence[PrintedValue], results: Results) -> Table:
    """The tables as a CSV table, a row a printed value; empty cells where not run."""
    columns = ["table", "dataset", "dirichlet_alpha", "algo", "round", "metric", "printed"]
    columns += [f"{source}_{part}" for source in ("ours", "tuned") for part in ("mean", "deviation", "seeds")]
    rows = []
    for table, cell, value in printed:
        row = [table, cell.dataset, cell.setting, cell.algo, str(cell.round_num), cell.metric, f"{value:g}"]
        for preset in PRESETS:
            measured = results[preset].get(cell)
            row += ["", "", ""] if measured is None else _format_numbers(measured)
        rows.append(row)
    return Table(columns, rows)


def _format_numbers(measured: Measured) -> list[str]:
    deviation = "" if measured.deviation is None else f"{measured.deviation:.6g}"
    return [f"{measured.mean:.6g}", deviation, str(measured.count)]
