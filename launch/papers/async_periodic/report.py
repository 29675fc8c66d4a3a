"""Asynchronous FL with periodic aggregation: all combinations beside FedAvg, and the claims. Imports no TensorFlow."""

from collections.abc import Iterable, Mapping, Sequence

from launch.papers.async_periodic.claims import (
    CASES,
    KINDS,
    LAST_AGGREGATIONS,
    LAST_ROUND,
    MEASURES,
    MODEL_BUDGET,
    NEVER_WAITING,
    NEVER_WAITING_UPDATES,
    TIME,
    TIME_BUDGET,
    TUNED_KINDS,
    UPDATES,
    UPLOAD_BUDGET,
    make_cell,
)
from launch.papers.async_periodic.levels import build_levels
from launch.papers.async_periodic.measures import group_whole_runs, list_places, measure
from launch.papers.async_periodic.shares import build_shares
from launch.papers.engine.collection import (
    PRINTED,
    Cell,
    Measured,
    Place,
    SeedResults,
    collect_by_seed,
    measure_runs,
    summarize_results,
)
from launch.papers.engine.markdown import Report, Section, Table, format_measured, format_table
from launch.papers.engine.paper import Paper
from launch.runs.run_records import TUNED_SUFFIX, RunRecord

TUNED_FIGURE = "async_tuned.png"
LEGEND = f"""\
Test accuracy in per cent, mean ± sample deviation over n seeds. The paper prints curves without numbers.

- The rules of the claims on random scheduling with fresher updates, on fluctuation, on scheduling by frequency and on
  older updates with gamma = 2 were written before any runs were compared; those of section V and of the abstract when
  five seeds had been seen.
- The figures are not in the text that we have, so how the paper's FedAvg schedules is not known. Each policy is
  compared with FedAvg with the same policy.
- FedAvg is the paper's, on the same clock: all devices train, the server waits for the slowest, then schedules. Its
  loss has no proximal term (section II-A). "With Eq. (8)" is the same with the term that the paper adds for
  asynchronous training, lambda = 0.02.
- Final: at the end of the run, which is aggregation {LAST_ROUND}; of {" and ".join(NEVER_WAITING.values())}, which are
  not in the paper, after {NEVER_WAITING_UPDATES:,} updates.
- Mean of last {LAST_AGGREGATIONS}: over as many aggregations.
- At equal time: of the last model made by {TIME_BUDGET:g} T_max, when the asynchronous runs end. At equal uploads: of
  the last model made of at most {UPLOAD_BUDGET:,} updates. At equal bytes: of the last model within the bytes of
  {MODEL_BUDGET:,} models, both ways together.
- Fluctuation: sample standard deviation, in points, of the changes in accuracy from one aggregation to the next, over
  the last {LAST_AGGREGATIONS}.
- T_max, updates: how long the run lasted and what the server received.
- Tuned: with settings chosen on validation examples by the model at {TIME_BUDGET:g} T_max, of FedAsync and FedBuff by
  their last, half a T_max later. So tuned methods are compared at equal time. At equal bytes FedAvg has trained twice
  as long as in its trials, and what is best for ten rounds need not be for twenty: of its tuned row only the column at
  equal time can be compared. FedAsync and FedBuff are then after three fifths of the runs that they were tuned for,
  periodic aggregation after nine tenths of its own, so that only the first two are compared there. All have twenty
  trials, which are all points of a grid: the same five learning rates and, of periodic aggregation, four values of
  gamma; of FedAvg, with and without Eq. (8) and two decays of the rate; of FedAsync, four mixing weights; of FedBuff,
  four learning rates of the server. When trials were best at the largest rate, all four grids got a larger one: 0.3,
  then 1, which leaves every method at chance."""
COLUMNS = (
    *("data", "scheduling", "weights", "seeds", "final", f"mean of last {LAST_AGGREGATIONS}", "at equal time"),
    *("at equal uploads", "at equal bytes", "fluctuation", "T_max", "updates"),
)
COST_DIGITS = {TIME: 1, UPDATES: 0}


def compute_results(runs: Iterable[RunRecord]) -> SeedResults:
    """Every measure by seed; runs that ended early do not count."""
    return collect_by_seed(measure_runs(group_whole_runs(runs), measure), (PRINTED,))


def tabulate_results(results: Mapping[Cell, Measured]) -> Table:
    """A row for each place."""
    rows = []
    for _, case, policy, kind in list_places():
        cells = {metric: results.get(make_cell(case, policy, kind, metric)) for metric in (*MEASURES, *COST_DIGITS)}
        texts = [format_measured(metric, cells[metric]) for metric in MEASURES]
        costs = [f"{cells[cost].mean:.{digits}f}" if cells[cost] else "" for cost, digits in COST_DIGITS.items()]
        first = next(iter(cells.values()))
        seeds = "" if first is None else str(first.count)
        name = KINDS.get(kind) or NEVER_WAITING.get(kind) or TUNED_KINDS[policy, kind]
        rows.append([CASES[case], policy or "none", name, seeds, *texts, *costs])
    return Table(COLUMNS, rows)


def has_tuned(results: Iterable[Cell | Place]) -> bool:
    """Whether any of these was made with tuned settings."""
    return any(each.algo.endswith(TUNED_SUFFIX) for each in results)


def build_async_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The claims, one table of all combinations, and a figure of the tuned methods where they were run."""
    results = compute_results(runs)
    table = tabulate_results(summarize_results(results)[PRINTED])
    figure = f"\n\n![Tuned methods: accuracy by virtual time]({TUNED_FIGURE})" if has_tuned(results[PRINTED]) else ""
    tables = {
        "results": Section("All combinations beside FedAvg", table, format_table(table) + figure),
        **build_levels(results[PRINTED]),
        "shares": build_shares(),
    }
    return paper.compose_report(LEGEND, tables, [], results, runs)
