"""The AMFL-P paper's Tables 1 and 2 beside our runs, with what the building allows at all. Imports no TensorFlow."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from launch.reports.aims import NOT_REACHED, NOT_RUN, REACHED, Aim
from launch.reports.amfl_p.claims import (
    ACCURACY,
    AMFL_P,
    DATASET,
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
from launch.reports.collection import (
    PRESETS,
    PRINTED,
    TUNED,
    Measure,
    Measured,
    Numbers,
    Place,
    PrintedValue,
    Results,
    collect_results,
    group_runs,
    measure_runs,
    summarize,
)
from launch.reports.markdown import Report, Section, Table, format_measured
from launch.reports.paper import Paper
from launch.runs.run_records import TUNED_SUFFIX, RunRecord
from launch.settings.algorithms import ALGORITHMS

PRINTED_COLUMNS = {"mean_accuracy": ACCURACY, "rounds_to_target": ROUNDS, "mean_fine_tuning_steps": STEPS}
LOCAL_ONLY, CEILING = "local_only", "ceiling"
ROWS = {**NAMES, LOCAL_ONLY: ALGORITHMS[LOCAL_ONLY].title}
AMFL_P_RUNS = rf"({'|'.join(ROWS)})_{DATASET}_({'|'.join(LEVELS)})({TUNED_SUFFIX})?"
ROUNDS_PER_EVALUATION = 5
LEGEND = (
    "Accuracy (%): of each client's own model on its own later days, the mean over the clients. Ours: mean ± sample "
    "deviation over n seeds, each a building of its own. Paper's rates: those printed, with plain SGD; tuned: of the "
    f"flagfiles that end in _tuned, chosen on validation splits. Rounds: to {TARGET_ACCURACY:.0%}, evaluated every "
    f"{ROUNDS_PER_EVALUATION} rounds up to {LAST_ROUND}; a seed that does not get there counts as {LAST_ROUND + 1}, "
    "which makes such a mean a lower bound. Local training and the ceiling are not in the paper. Ceiling: pooled "
    "gradient-boosted trees that know the sensor (`launch.building_reference`), which see all sensors' readings but "
    "have one model for all."
)
SOURCES = {PRINTED: "ours, paper's rates", TUNED: "ours, tuned"}
# Of the accuracies in per cent of AMFL-P, its rivals and the ceiling, means over the seeds.
AIMS = (
    Aim("FedAvg to ceiling, points", lambda level: level[CEILING] - level[FEDAVG], least=10, form="{:.2f}"),
    Aim(
        "of it closed by AMFL-P",
        lambda level: (level[AMFL_P] - level[FEDAVG]) / (level[CEILING] - level[FEDAVG]),
        least=0.5,
        form="{:.0%}",
    ),
    Aim("AMFL-P before Fine-Tuning, points", lambda level: level[AMFL_P] - level[FINE_TUNING], least=-1),
)
# How the headings show the bounds of the aims: 10, 50%, -1.
BOUND_FORMS = ("{:g}", "{:.0%}", "{:g}")


def find_place(experiment: str) -> Place | None:
    """The place of an experiment's runs, its setting the heterogeneity; None if it is another report's."""
    match = re.fullmatch(AMFL_P_RUNS, experiment)
    return Place(TUNED if match[3] else PRINTED, DATASET, match[2], match[1]) if match else None


def list_printed_values(rows: Iterable[Mapping[str, str]]) -> list[PrintedValue]:
    """Table 1 of the paper."""
    algos = {name: algo for algo, name in NAMES.items()}
    return [
        PrintedValue("1", make_cell(algos[row["algorithm"]], metric=metric), float(row[column]))
        for row in rows
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
        return float(run.flags["fine_tuning_fine_tuning_steps"])  # the same for all, so there is no column of it
    return run.rounds[LAST_ROUND].get(STEPS, 0.0)


MEASURES: Mapping[str, Callable[[RunRecord], float]] = {
    ACCURACY: lambda run: run.rounds[LAST_ROUND][ACCURACY],
    ROUNDS: count_rounds_to_target,
    STEPS: count_mean_steps,
}


def measure(run: RunRecord) -> Numbers:
    """What the tables show of a run; nothing of a run that ended early."""
    if ACCURACY not in run.rounds.get(LAST_ROUND, {}):
        return {}
    return {Measure(metric, LAST_ROUND): compute(run) for metric, compute in MEASURES.items()}


def compute_results(runs: Iterable[RunRecord]) -> Results:
    """Mean and deviation over the seeds of what the tables show, by preset."""
    return collect_results(measure_runs(group_runs(runs, find_place), measure))


def build_amfl_p_report(
    paper: Paper, runs: Sequence[RunRecord], ceilings: Mapping[str, Sequence[float]] | None = None
) -> Report:
    """The tables, the targets and the claims; `ceilings` as `read_pooled_accuracies` gives them, by default those."""
    ceilings = read_pooled_accuracies() if ceilings is None else ceilings
    measured_ceilings = {level: summarize(values) for level, values in ceilings.items()}
    printed, results = list_printed_values(paper.read_printed_rows()), compute_results(runs)
    sections = {
        "table_1": Section(f"Table 1, at {TABLE_1_LEVEL} heterogeneity", tabulate_table_1(printed, results)),
        "table_2": Section(
            "Table 2: accuracy (%) by heterogeneity (its printed values are lost)",
            tabulate_table_2(results, measured_ceilings),
        ),
        "targets": Section(
            "What the building allows, and what the tuned runs make of it",
            tabulate_targets(results, measured_ceilings),
        ),
        "claims": paper.judge_claims(printed, results),
    }
    return paper.compose_report(LEGEND, sections, runs)


def tabulate_table_1(printed: Sequence[PrintedValue], results: Results) -> Table:
    """A row for each algorithm and source, with accuracy, rounds to the target and mean steps."""
    columns = ["algorithm", "source", "seeds", "accuracy", "rounds to target", "mean fine-tuning steps"]
    # Printed numbers take the form of ours, of one seed, so that both are formatted alike.
    paper = {value.cell: Measured(value.value, None, 1) for value in printed}
    rows = []
    for algo, name in ROWS.items():
        if algo != LOCAL_ONLY:  # which is not in the paper
            texts = [_format(metric, paper.get(make_cell(algo, metric=metric)), absent="") for metric in MEASURES]
            rows.append([name, "printed", "", *texts])
        for preset in PRESETS:
            cells = [results[preset].get(make_cell(algo, metric=metric)) for metric in MEASURES]
            seeds = "" if cells[0] is None else str(cells[0].count)
            rows.append([name, SOURCES[preset], seeds, *map(_format, MEASURES, cells)])
    return Table(columns, rows)


def tabulate_table_2(results: Results, ceilings: Mapping[str, Measured]) -> Table:
    """A row for each algorithm and preset, a column a level; the ceiling last."""
    rows = []
    for algo, name in ROWS.items():
        for preset in PRESETS:
            cells = [results[preset].get(make_cell(algo, level)) for level in LEVELS]
            rows.append([name, SOURCES[preset], *(_format(ACCURACY, cell) for cell in cells)])
    rows.append([CEILING, "pooled trees", *(_format(ACCURACY, ceilings.get(level)) for level in LEVELS)])
    return Table(["algorithm", "source", *LEVELS], rows)


def tabulate_targets(results: Results, ceilings: Mapping[str, Measured]) -> Table:
    """At each level: the gap from FedAvg to the ceiling, how much of it AMFL-P closes, its lead over Fine-Tuning.

    The aims are set for TABLE_1_LEVEL alone.
    """
    rows = []
    for level in LEVELS:
        measured = {algo: results[TUNED].get(make_cell(algo, level)) for algo in NAMES} | {CEILING: ceilings.get(level)}
        if None in measured.values():
            rows.append([level, NOT_RUN, "", "", ""])
            continue
        accuracies = {name: 100 * each.mean for name, each in measured.items()}
        numbers = [aim.measure(accuracies) for aim in AIMS]
        verdicts = {aim.decide([number]) for aim, number in zip(AIMS, numbers, strict=True)}
        verdict = REACHED if verdicts == {REACHED} else NOT_REACHED
        texts = [aim.form.format(number) for aim, number in zip(AIMS, numbers, strict=True)]
        rows.append([level, *texts, verdict if level == TABLE_1_LEVEL else "none set"])
    headings = [f"{aim.text} (>= {form.format(aim.least)})" for aim, form in zip(AIMS, BOUND_FORMS, strict=True)]
    return Table(["heterogeneity", *headings, "aims"], rows)


def _format(metric: str, measured: Measured | None, absent: str = "not run") -> str:
    # A seed that never gets there counts as one round more, so a mean this large is no number of rounds.
    if measured is not None and metric == ROUNDS and measured.mean > LAST_ROUND:
        return f"> {LAST_ROUND}"
    return format_measured(metric, measured, absent)
