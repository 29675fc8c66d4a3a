"""Accuracy by aggregator and attack, over the seeds. Imports no TensorFlow."""

from collections.abc import Mapping, Sequence

from launch.runs.run_records import RunRecord
from reproductions.engine.markdown import Report, Table
from reproductions.engine.paper import Paper
from reproductions.engine.report import compose_report
from reproductions.engine.tables import BySeed, Values, collect, count, describe, show
from reproductions.robust.figure import draw_robust_figure
from reproductions.robust.measures import AGGREGATORS, ATTACKS, NONE, PERCENT, find_results, is_finished, measure

COLUMNS = ("aggregator", "seeds", *ATTACKS, "worst")


def find_worst(results: Mapping[str, BySeed]) -> BySeed:
    """The lowest accuracy of each seed under any attack, of the seeds that were run under all of them."""
    attacked = [results[attack] for attack in ATTACKS if attack != NONE]
    seeds = set.intersection(*(set(by_seed) for by_seed in attacked))
    return {seed: min(by_seed[seed] for by_seed in attacked) for seed in sorted(seeds)}


def tabulate(values: Values) -> Table:
    """A row for each aggregator that was run."""
    rows = []
    for aggregator, title in AGGREGATORS.items():
        results = find_results(values, aggregator)
        if any(results.values()):
            shown = [show(results[attack], PERCENT) for attack in ATTACKS]
            rows.append([title, count(*results.values()), *shown, show(find_worst(results), PERCENT)])
    return Table(COLUMNS, rows)


def build_robust_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The table of accuracy by aggregator and attack, and the figure."""
    sections = describe("robust", {"results": tabulate(collect(runs, measure))})
    return compose_report(paper, sections, [run for run in runs if is_finished(run)], {})


PAPER = Paper("robust", build_robust_report, draw=draw_robust_figure, further_metrics="num_attackers")
