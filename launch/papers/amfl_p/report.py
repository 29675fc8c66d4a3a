"""The AMFL-P paper's Tables 1 and 2 beside our runs and the pooled reference. Imports no TensorFlow."""

import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from launch.papers.amfl_p.claims import (
    ACCURACY,
    AMFL_P,
    DATASET,
    FEDAVG,
    FINE_TUNING,
    LAST_ROUND,
    LEVELS,
    LOCAL_ONLY,
    MAJORITY,
    NAMES,
    POOLED,
    ROUNDS,
    ROWS,
    STEPS,
    TABLE_1_LEVEL,
    TARGET_ACCURACY,
    TITLES,
    compare,
    make_cell,
)
from launch.papers.amfl_p.experiments import EXPERIMENTS, MAML, RESOURCES, SAME
from launch.papers.amfl_p.factorial import tabulate_factorial
from launch.papers.amfl_p.few_shot import collect_claimed, tabulate_few_shot
from launch.papers.amfl_p.pooled_reference import read_pooled_accuracies
from launch.papers.amfl_p.single_changes import collect_weightings, tabulate_ablations
from launch.papers.amfl_p.without_flags import tabulate_defaults
from launch.papers.engine.collection import (
    PRINTED,
    TUNED,
    Cell,
    Measure,
    Numbers,
    Place,
    PrintedValue,
    SeedResults,
    collect_by_seed,
    find_first_round,
    group_runs,
    measure_runs,
    summarize,
)
from launch.papers.engine.markdown import Report, Section, Table, format_measured, format_rounds
from launch.papers.engine.paper import Paper
from launch.runs.run_records import RunRecord

PRINTED_COLUMNS = {"mean_accuracy": ACCURACY, "rounds_to_target": ROUNDS, "mean_fine_tuning_steps": STEPS}
# The methods as tuned are runs of our factorial, whose settings trials on other seeds chose.
TUNED_RUNS = {
    f"start_{MAML}_{RESOURCES}": AMFL_P,
    f"start_{FEDAVG}_{SAME}": FINE_TUNING,
    "fedavg_alone": FEDAVG,
    "local_training": LOCAL_ONLY,
}
PAPER_RUNS = rf"({'|'.join([*ROWS, *TUNED_RUNS])})_{DATASET}_({'|'.join(LEVELS)})"
AMFL_P_RUNS = f"{PAPER_RUNS}|{EXPERIMENTS}"
ROUNDS_PER_EVALUATION = 5
SOURCES = {PRINTED: "ours, paper's rates", TUNED: "ours, tuned"}
ON_SOURCES = """\
- *Ours, paper's rates*: with the learning rates that the paper prints, and plain SGD.
- *Ours, tuned*: runs of our factorial below, each method with the settings that its own trials chose by validation
  accuracy at medium heterogeneity, on other seeds: MAML with the finish by resources (AMFL-P), FedAvg with the same
  finish for all (Fine-Tuning), FedAvg alone and local training. The claims on weights and on limited local data are put
  to our other comparisons. What trains a start is chosen so there, too, the one finish on limited data by no trial.

Each seed is a building of its own, simulated after the paper's description."""
LEGEND = f"""\
- Accuracy (%): of each client's own model on its own later days, the mean over the clients.
- Ours: mean ± sample deviation over n seeds.
- Rounds: to {TARGET_ACCURACY:.0%}, evaluated every {ROUNDS_PER_EVALUATION} rounds. "> {LAST_ROUND} in 2 of 5": two of
  five seeds do not get there in {LAST_ROUND} rounds. The median counts them as later than all others.
- Local training, the majority class and the pooled reference are not in the paper. Majority class: always what was most
  frequent on the sensor's training days. Pooled reference: gradient-boosted trees that know the
  sensor (`pooled_reference.py`). They see all sensors' readings but are one model for all, so that a sensor's
  own model may be better."""

SeedAccuracies = Mapping[str, Mapping[int, float]]  # of the pooled reference, by heterogeneity and seed


def find_place(experiment: str) -> Place | None:
    """The place of an experiment's runs, its setting the heterogeneity; None if it is another report's."""
    match = re.fullmatch(PAPER_RUNS, experiment)
    if match is None:
        return None
    name, level = match.groups()
    return Place(TUNED if name in TUNED_RUNS else PRINTED, DATASET, level, TUNED_RUNS.get(name, name))


def list_printed_values(rows: Iterable[Mapping[str, str]]) -> list[PrintedValue]:
    """Table 1 of the paper."""
    algos = {name: algo for algo, name in NAMES.items()}
    return [
        PrintedValue("1", make_cell(algos[row["algorithm"]], metric=metric), float(row[column]))
        for row in rows
        for column, metric in PRINTED_COLUMNS.items()
        if row[column]
    ]


def count_rounds_to_target(run: RunRecord) -> float:
    """The first evaluated round with the target accuracy; infinite if there is none up to LAST_ROUND."""
    accuracies = {round_num: metrics[ACCURACY] for round_num, metrics in run.rounds.items() if ACCURACY in metrics}
    return find_first_round(accuracies, TARGET_ACCURACY, LAST_ROUND)


def count_mean_steps(run: RunRecord) -> float:
    """Fine-tuning steps of a device, the mean over the devices; none without fine-tuning."""
    if run.flags["algo"] == FINE_TUNING:
        return float(run.flags["fine_tuning_steps"])  # the same for all, so there is no column of it
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


def compute_results(
    runs: Sequence[RunRecord], pooled: SeedAccuracies, majority: SeedAccuracies | None = None
) -> SeedResults:
    """What the tables and claims need, by preset and seed.

    What has no settings, pooled trees and majority, is in both presets; our own comparisons count as tuned.
    """
    results = collect_by_seed(measure_runs(group_runs(runs, find_place), measure))
    for cells in results.values():
        for name, accuracies in ((POOLED, pooled), (MAJORITY, majority or {})):
            cells |= {make_cell(name, level): dict(by_seed) for level, by_seed in accuracies.items()}
    results[TUNED] |= collect_weightings(runs) | collect_claimed(runs)
    return results


def build_amfl_p_report(paper: Paper, runs: Sequence[RunRecord], pooled: SeedAccuracies | None = None) -> Report:
    """The claims and the tables; `pooled` as `read_pooled_accuracies` gives it, by default that."""
    majority = read_pooled_accuracies(column="majority")
    results = compute_results(runs, read_pooled_accuracies() if pooled is None else pooled, majority)
    printed = list_printed_values(paper.read_printed_rows())
    tables = {
        "table_1": Section(f"Table 1, at {TABLE_1_LEVEL} heterogeneity", tabulate_table_1(printed, results)),
        "table_2": Section("Table 2: accuracy (%) by heterogeneity (its printed values are lost)",
                           tabulate_table_2(results)),
        "pooled_reference": Section("The tuned runs beside the pooled reference", tabulate_gaps(results)),
        **tabulate_factorial(runs),
        **tabulate_few_shot(runs),
        **tabulate_ablations(runs),
        **tabulate_defaults(runs),
    }  # fmt: skip
    return paper.compose_report(LEGEND, tables, printed, results, runs)


def tabulate_table_1(printed: Sequence[PrintedValue], results: SeedResults) -> Table:
    """A row for each algorithm and source, with accuracy, rounds to the target and mean steps."""
    columns = ["algorithm", "source", "seeds", "accuracy", "rounds to target", "mean fine-tuning steps"]
    paper = {value.cell: value.value for value in printed}
    rows = []
    for algo, name in ROWS.items():
        wanted = [make_cell(algo, metric=metric) for metric in MEASURES]
        if algo != LOCAL_ONLY:  # which is not in the paper
            # Printed numbers take the form of ours, of one seed, so that both are formatted alike.
            texts = [_format(cell, [paper[cell]]) if cell in paper else "" for cell in wanted]
            rows.append([name, "printed", "", *texts])
        for preset, source in SOURCES.items():
            values = [list(results[preset].get(cell, {}).values()) for cell in wanted]
            rows.append([name, source, str(len(values[0]) or ""), *map(_format, wanted, values)])
    majority = results[TUNED].get(make_cell(MAJORITY), {})
    rows.append([TITLES[MAJORITY], "data", str(len(majority)), _format(make_cell(MAJORITY), majority.values()), "", ""])
    return Table(columns, rows)


def tabulate_table_2(results: SeedResults) -> Table:
    """A row for each algorithm and preset, a column a level; majority class and pooled reference last."""
    places = [(name, algo, preset, source) for algo, name in ROWS.items() for preset, source in SOURCES.items()]
    rows = []
    others = [(TITLES[MAJORITY], MAJORITY, TUNED, "data"), (TITLES[POOLED], POOLED, TUNED, "pooled trees")]
    for name, algo, preset, source in [*places, *others]:
        cells = [make_cell(algo, level) for level in LEVELS]
        rows.append([name, source, *(_format(cell, results[preset].get(cell, {}).values()) for cell in cells)])
    return Table(["algorithm", "source", *LEVELS], rows)


def tabulate_gaps(results: SeedResults) -> Table:
    """At each level: the gap from FedAvg to the pooled reference, what AMFL-P closes of it, its lead over Fine-Tuning.

    Differences are between runs of one seed; the share is of their means, since a single gap may be next to nothing.
    """
    rows = []
    for level in LEVELS:
        cells = {algo: make_cell(algo, level) for algo in TITLES}
        pairs = ((POOLED, FEDAVG), (AMFL_P, FEDAVG), (AMFL_P, FINE_TUNING))
        gap, closed, lead = ([*_subtract(results, cells[first], cells[second])] for first, second in pairs)
        share = f"{statistics.fmean(closed) / statistics.fmean(gap):.0%}" if gap and closed else "not run"
        beside = [_format(cells[name], results[TUNED].get(cells[name], {}).values()) for name in (LOCAL_ONLY, MAJORITY)]
        rows.append([level, _format(cells[POOLED], gap), share, _format(cells[AMFL_P], lead), *beside])
    names = ("pooled reference minus FedAvg, points", "of it closed by AMFL-P", "AMFL-P minus Fine-Tuning, points")
    return Table(["heterogeneity", *names, f"{TITLES[LOCAL_ONLY]} (%)", f"{TITLES[MAJORITY]} (%)"], rows)


def _subtract(results: SeedResults, first: Cell, second: Cell) -> Iterable[float]:
    """The differences of two results of the tuned runs, one a seed that has both."""
    return compare(first, second).compute_by_seed(lambda cell: results[TUNED].get(cell, {})).values()


def _format(cell: Cell, values: Iterable[float]) -> str:
    values = list(values)
    if cell.metric == ROUNDS and values:
        return format_rounds(values, LAST_ROUND)
    return format_measured(cell.metric, summarize(values) if values else None)
