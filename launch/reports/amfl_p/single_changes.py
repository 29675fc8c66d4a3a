"""Tables of AMFL-P with one thing changed, and of four algorithms without flags."""

from collections.abc import Mapping, Sequence

from launch.reports.amfl_p.experiments import (
    ABLATION_RUNS,
    ABLATIONS,
    CHOSEN_ON,
    DEFAULT_ALGOS,
    DEFAULT_RUNS,
    FACTORIAL_RUNS,
    LOCAL_RUNS,
    MAML,
    PLACES,
    RESOURCES,
    FinalResult,
    collect_majority,
    format_accuracy,
    group_by_name,
    read_final,
    take_accuracies,
)
from launch.reports.equivalence import compare_by_seed
from launch.reports.markdown import Section, Table
from launch.runs.run_records import RunRecord

Results = Mapping[tuple[str, ...], Mapping[int, FinalResult]]
BASELINE = (MAML, RESOURCES, "medium")  # of the factorial: AMFL-P itself


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
    return {"ablations": Section("One thing changed, medium heterogeneity", Table(columns, rows))}


def tabulate_defaults(runs: Sequence[RunRecord]) -> dict[str, Section]:
    """A row for each data set, a column an algorithm without flags; none without runs."""
    results: Results = group_by_name(runs, DEFAULT_RUNS, read_final)
    if not results:
        return {}
    rows = []
    for place, title in PLACES.items():
        here = {algo: take_accuracies(results.get((algo, place), {})) for algo in DEFAULT_ALGOS}
        majority = collect_majority(results.get((algo, place), {}) for algo in DEFAULT_ALGOS)
        counts = sorted({len(each) for each in here.values()})
        accuracies = [format_accuracy(each) for each in (*here.values(), majority)]
        against_local = _compare(here["amfl_p"], here["local_only"])
        used = "yes" if place in CHOSEN_ON else "no"
        rows.append([title, used, " to ".join(map(str, counts)), *accuracies, *against_local])
    columns = ["data", "chosen on it", "seeds", *DEFAULT_ALGOS.values(), "majority class"]
    columns += ["AMFL-P minus local training, points", "verdict"]
    return {"defaults": Section("Without flags: accuracy (%)", Table(columns, rows))}


def _make_row(title: str, found: Mapping[int, float]) -> list[str]:
    return [title, str(len(found)), format_accuracy(found), "", ""]


def _compare(first: Mapping[int, float], second: Mapping[int, float]) -> list[str]:
    difference = compare_by_seed(first, second)
    return [difference.format(), difference.verdict if difference.count else ""]
