"""Tables of AMFL-P with one thing changed, and of four algorithms without flags."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
from launch.reports.markdown import Section, Table, format_table
from launch.runs.columns import GAIN, RELATIVE_CHANGE, START
from launch.runs.run_records import RunRecord, read_summary

ON_DEFAULTS = """\
The defaults were chosen by validation examples, on buildings of medium heterogeneity and on HAR by subject. HAR has the
same windows with every seed, split anew, so that test windows here are train or validation windows of the seeds of the
choice. The buildings of low and high heterogeneity are made as those of the choice are. Digits, in two partitions, and
MNIST had no part.
"""
Results = Mapping[tuple[str, ...], Mapping[int, FinalResult]]
START_COLUMNS = ("AMFL-P's start minus random weights, points", "it moved by at least")
BLANK = ("not run",) * len(START_COLUMNS)
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
    starts = group_by_name(runs, DEFAULT_RUNS, read_start)
    moved = {place: _describe_start(found) for (algo, place), found in starts.items() if algo == "amfl_p"}
    rows = []
    for place, title in PLACES.items():
        here = {algo: take_accuracies(results.get((algo, place), {})) for algo in DEFAULT_ALGOS}
        majority = collect_majority(results.get((algo, place), {}) for algo in DEFAULT_ALGOS)
        counts = sorted({len(each) for each in here.values()})
        accuracies = [format_accuracy(each) for each in (*here.values(), majority)]
        against_local = _compare(here["amfl_p"], here["local_only"])
        used = "yes" if place in CHOSEN_ON else "no"
        rows.append([title, used, " to ".join(map(str, counts)), *accuracies, *against_local, *moved.get(place, BLANK)])
    columns = ["data", "chosen on it", "seeds", *DEFAULT_ALGOS.values(), "majority class"]
    columns += ["AMFL-P minus local training, points", "verdict", *START_COLUMNS]
    table = Table(columns, rows)
    return {"defaults": Section("Without flags: accuracy (%)", table, f"{ON_DEFAULTS}\n{format_table(table)}")}


class StartWorth(NamedTuple):
    """Of summary.json: what the trained start gains on random weights, in 0..1, and how far it moved, of its norm."""

    gain: float
    change: float


def read_start(run: RunRecord) -> StartWorth | None:
    """What AMFL-P's start was worth; None of a run without fine-tuning."""
    start = read_summary(run).get(START, {})
    return StartWorth(start[GAIN], start[RELATIVE_CHANGE]) if start.get(GAIN) is not None else None


def _describe_start(found: Mapping[int, StartWorth]) -> list[str]:
    """The gain with its interval and verdict, and the smallest change of any seed."""
    gain = compare_by_seed({seed: worth.gain for seed, worth in found.items()}, dict.fromkeys(found, 0.0))
    return [f"{gain.format()} {gain.verdict}", f"{min(worth.change for worth in found.values()):.1%}"]


def _make_row(title: str, found: Mapping[int, float]) -> list[str]:
    return [title, str(len(found)), format_accuracy(found), "", ""]


def _compare(first: Mapping[int, float], second: Mapping[int, float]) -> list[str]:
    difference = compare_by_seed(first, second)
    return [difference.format(), difference.verdict if difference.count else ""]
