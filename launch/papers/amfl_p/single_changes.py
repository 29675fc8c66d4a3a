"""The table of AMFL-P with one thing changed."""

from collections.abc import Mapping, Sequence

from launch.papers.amfl_p.claims import ADAPTIVE, WEIGHTINGS, make_weighting_cell
from launch.papers.amfl_p.experiments import (
    ABLATION_RUNS,
    ABLATIONS,
    FACTORIAL_RUNS,
    LOCAL_RUNS,
    MAML,
    RESOURCES,
    Results,
    collect_majority,
    format_accuracy,
    group_by_name,
    read_final,
    take_accuracies,
)
from launch.papers.engine.collection import Cell
from launch.papers.engine.equivalence import compare_by_seed
from launch.papers.engine.markdown import Section, Table, format_table
from launch.runs.run_records import RunRecord

BASELINE = (MAML, RESOURCES, "medium")  # of the factorial: AMFL-P itself
ON_ABLATIONS = """\
All have the settings that were tuned for AMFL-P with its own weights; nothing is tuned again. With the same rate for
all, rate and batch of fine-tuning are those tuned for MAML's start with that, since the rule by resources has a higher
one. *Win*, *loss* and *tie* as for start and finish, each comparison alone and without correction. The claim on the
weights is decided above, by adaptive weights against those by examples and equal ones.
"""


def tabulate_ablations(runs: Sequence[RunRecord]) -> dict[str, Section]:
    """A row for each change, the accuracy and what it changes; none without runs."""
    results: Results = group_by_name(runs, ABLATION_RUNS, read_final)
    if not results:
        return {}
    factorial: Results = group_by_name(runs, FACTORIAL_RUNS, read_final)
    base, local = factorial.get(BASELINE, {}), group_by_name(runs, LOCAL_RUNS, read_final).get(("medium",), {})
    rows = [_make_row("AMFL-P", take_accuracies(base))]
    for name, title in ABLATIONS.items():
        found = take_accuracies(results.get((name,), {}))
        rows.append([*_make_row(title, found)[:3], *_compare(found, take_accuracies(base))])
    rows.append(_make_row("local training", take_accuracies(local)))
    rows.append(_make_row("majority class", collect_majority([base, *results.values()])))
    columns = ["AMFL-P with", "seeds", "accuracy (%)", "minus AMFL-P, points", "verdict"]
    table = Table(columns, rows)
    text = f"{ON_ABLATIONS}\n{format_table(table)}"
    return {"ablations": Section("One thing changed, medium heterogeneity", table, text)}


def collect_weightings(runs: Sequence[RunRecord]) -> dict[Cell, dict[int, float]]:
    """What the claim on the weights is decided by: AMFL-P itself, and with two other weightings."""
    found = {ADAPTIVE: group_by_name(runs, FACTORIAL_RUNS, read_final).get(BASELINE, {})}
    ablations: Results = group_by_name(runs, ABLATION_RUNS, read_final)
    found |= {name: ablations.get((f"weighting_{name}",), {}) for name in WEIGHTINGS if name != ADAPTIVE}
    return {make_weighting_cell(name): take_accuracies(by_seed) for name, by_seed in found.items() if by_seed}


def _make_row(title: str, found: Mapping[int, float]) -> list[str]:
    return [title, str(len(found)), format_accuracy(found), "", ""]


def _compare(first: Mapping[int, float], second: Mapping[int, float]) -> list[str]:
    difference = compare_by_seed(first, second)
    return [difference.format(), difference.verdict if difference.count else ""]
