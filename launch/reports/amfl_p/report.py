"""The AMFL-P paper's Tables 1 and 2 beside our runs, with what the building allows at all. Imports no TensorFlow."""

import csv
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from launch.reports.amfl_p.claims import (
    ACCURACY,
    AMFL_P,
    AMFL_P_CLAIMS,
    FEDAVG,
    FINE_TUNING,
    LAST_ROUND,
    LEVELS,
    NAMES,
    ROUNDS,
    STEPS,
    TABLE_1_LEVEL,
    TARGET_ACCURACY,
    make_cell,
)
from launch.reports.amfl_p.pooled_reference import read_pooled_accuracies
from launch.reports.claims import Cell
from launch.reports.report_tables import (
    PRESETS,
    PRINTED_VALUES,
    Measured,
    PrintedValue,
    Report,
    Results,
    format_claims,
    format_measured,
    judge,
    summarize,
    tabulate_claims,
)
from launch.runs.run_records import RunRecord
from launch.settings.algorithms import ALGORITHMS

PRINTED_FILE = PRINTED_VALUES / "amfl_p" / "table_1.csv"
PRINTED_COLUMNS = {"mean_accuracy": ACCURACY, "rounds_to_target": ROUNDS, "mean_fine_tuning_steps": STEPS}
LOCAL_ONLY = "local_only"
ROWS = {**NAMES, LOCAL_ONLY: ALGORITHMS[LOCAL_ONLY].title}
EXPERIMENTS = rf"({'|'.join(ROWS)})_building_({'|'.join(LEVELS)})(_tuned)?"
LEAST_CEILING_GAP, LEAST_SHARE_OF_GAP, MOST_BEHIND = 10.0, 0.5, 1.0  # points, share, points
LEGEND = (
    "Accuracy (%): of each client's own model on its own later days, the mean over the clients. Ours: mean ± sample "
    "deviation over n seeds, each a building of its own. Paper's rates: those printed, with plain SGD; tuned: of the "
    f"flagfiles that end in _tuned, chosen on validation splits. Rounds: to {TARGET_ACCURACY:.0%}, evaluated every "
    f"5 rounds up to {LAST_ROUND}; a seed that does not get there counts as {LAST_ROUND + 1}, which makes such a mean "
    "a lower bound. Local training and the ceiling are not in the paper. Ceiling: pooled gradient-boosted trees that "
    "know the sensor (`launch.building_reference`), which see all sensors' readings but have one model for all."
)
SOURCES = {"printed": "ours, paper's rates", "tuned": "ours, tuned"}


def read_printed_table(path: pathlib.Path = PRINTED_FILE) -> list[PrintedValue]:
    """Table 1 of the paper."""
    algos = {name: algo for algo, name in NAMES.items()}
    with open(path, newline="", encoding="utf-8") as file:
        return [
            PrintedValue("1", make_cell(algos[row["algorithm"]], metric=metric), float(row[column]))
            for row in csv.DictReader(file)
            for column, metric in PRINTED_COLUMNS.items()
            if row[column]
        ]


def count_rounds_to_target(run: RunRecord) -> int:
    """The first evaluated round with the target accuracy; LAST_ROUND + 1 if there is none up to LAST_ROUND."""
    reached = [round_num for round_num, metrics in run.rounds.items() if metrics.get(ACCURACY, 0.0) >= TARGET_ACCURACY]
    return min([*reached, LAST_ROUND + 1])


def count_mean_steps(run: RunRecord) -> float:
    """Fine-tuning steps of a device, the mean over the devices; none without fine-tuning."""
    if run.flags["algo"] == FINE_TUNING:
        return float(run.flags["fine_tuning_fine_tuning_steps"])
    return run.rounds[LAST_ROUND].get(STEPS, 0.0)


MEASURES: Mapping[str, Callable[[RunRecord], float]] = {
    ACCURACY: lambda run: run.rounds[LAST_ROUND][ACCURACY],
    ROUNDS: count_rounds_to_target,
    STEPS: count_mean_steps,
}


def compute_results(runs: Iterable[RunRecord]) -> Results:
    """Mean and deviation over the seeds of what the tables show, by preset; runs that ended early do not count."""
    values: dict[str, dict[Cell, list[float]]] = {preset: {} for preset in PRESETS}
    for run in runs:
        if ACCURACY not in run.rounds.get(LAST_ROUND, {}):
            continue
        for metric, measure in MEASURES.items():
            cell = make_cell(run.flags["algo"], run.flags["building_heterogeneity"], metric)
            values[run.preset].setdefault(cell, []).append(measure(run))
    return {preset: {cell: summarize(numbers) for cell, numbers in cells.items()} for preset, cells in values.items()}


def build_amfl_p_report(runs: Sequence[RunRecord], ceilings: Mapping[str, Sequence[float]] | None = None) -> Report:
    """The tables, the targets and the claims; `ceilings` as `pooled_reference.read_pooled_accuracies` gives them."""
    runs = [run for run in runs if re.fullmatch(EXPERIMENTS, run.experiment)]
    measured_ceilings = {
        level: summarize(values)
        for level, values in (read_pooled_accuracies() if ceilings is None else ceilings).items()
    }
    printed, results = read_printed_table(), compute_results(runs)
    judgements = [judge(claim, printed, results) for claim in AMFL_P_CLAIMS]
    table_1, table_2 = tabulate_table_1(printed, results), tabulate_table_2(results, measured_ceilings)
    targets = tabulate_targets(results, measured_ceilings)
    parts = ["# AMFL-P: Tables 1 and 2", LEGEND]
    for heading, (columns, rows) in (
        (f"Table 1, at {TABLE_1_LEVEL} heterogeneity", table_1),
        ("Table 2: accuracy (%) by heterogeneity (its printed values are lost)", table_2),
        ("What the building allows, and what the tuned runs make of it", targets),
    ):
        parts += [f"## {heading}", _format_table(columns, rows)]
    parts += ["## Claims", format_claims(judgements)]
    tables = {"table_1": table_1, "table_2": table_2, "targets": targets, "claims": tabulate_claims(judgements)}
    return Report("\n\n".join(parts), tables, runs)


Table = tuple[list[str], list[list[str]]]


def tabulate_table_1(printed: Sequence[PrintedValue], results: Results) -> Table:
    """A row for each algorithm and source, with accuracy, rounds to the target and mean steps."""
    columns = ["algorithm", "source", "seeds", "accuracy", "rounds to target", "mean fine-tuning steps"]
    paper = {value.cell: Measured(value.value, None, 1) for value in printed}
    rows = []
    for algo, name in ROWS.items():
        for source, values in (("printed", paper), *((SOURCES[preset], results[preset]) for preset in PRESETS)):
            cells = [values.get(make_cell(algo, metric=metric)) for metric in MEASURES]
            if algo != LOCAL_ONLY or source != "printed":
                seeds = "" if source == "printed" or cells[0] is None else str(cells[0].count)
                absent = "" if source == "printed" else "not run"
                rows.append([name, source, seeds, *(_format(metric, cell, absent) for metric, cell in
                                                    zip(MEASURES, cells, strict=True))])  # fmt: skip
    return columns, rows


def tabulate_table_2(results: Results, ceilings: Mapping[str, Measured]) -> Table:
    """A row for each algorithm and preset, a column a level; the ceiling last."""
    rows = []
    for algo, name in ROWS.items():
        for preset in PRESETS:
            cells = [results[preset].get(make_cell(algo, level)) for level in LEVELS]
            rows.append([name, SOURCES[preset], *(_format(ACCURACY, cell) for cell in cells)])
    rows.append(["ceiling", "pooled trees", *(_format(ACCURACY, ceilings.get(level)) for level in LEVELS)])
    return ["algorithm", "source", *LEVELS], rows


def tabulate_targets(results: Results, ceilings: Mapping[str, Measured]) -> Table:
    """At each level: the gap from FedAvg to the ceiling, how much of it AMFL-P closes, its lead over Fine-Tuning.

    The aims are those of TABLE_1_LEVEL alone.
    """
    rows = []
    for level in LEVELS:
        tuned = {algo: results["tuned"].get(make_cell(algo, level)) for algo in NAMES}
        if level not in ceilings or None in tuned.values():
            rows.append([level, "not run", "", "", ""])
            continue
        accuracy = {algo: 100 * measured.mean for algo, measured in tuned.items()}
        gap = 100 * ceilings[level].mean - accuracy[FEDAVG]
        share = (accuracy[AMFL_P] - accuracy[FEDAVG]) / gap
        lead = accuracy[AMFL_P] - accuracy[FINE_TUNING]
        is_met = gap >= LEAST_CEILING_GAP and share >= LEAST_SHARE_OF_GAP and lead >= -MOST_BEHIND
        verdict = "reached" if is_met else "not reached"
        verdict = verdict if level == TABLE_1_LEVEL else "none set"
        rows.append([level, f"{gap:.2f}", f"{share:.0%}", f"{lead:+.2f}", verdict])
    aims = f">= {LEAST_CEILING_GAP:g}", f">= {LEAST_SHARE_OF_GAP:.0%}", f">= {-MOST_BEHIND:g}"
    columns = [
        "heterogeneity",
        f"FedAvg to ceiling, points ({aims[0]})",
        f"of it closed by AMFL-P ({aims[1]})",
        f"AMFL-P before Fine-Tuning, points ({aims[2]})",
        "aims",
    ]
    return columns, rows


def _format(metric: str, measured: Measured | None, absent: str = "not run") -> str:
    if measured is None:
        return absent
    if metric == ROUNDS and measured.mean > LAST_ROUND:
        return f"> {LAST_ROUND}"
    return format_measured(metric, measured)


def _format_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [columns, ["---"] * len(columns), *rows])
