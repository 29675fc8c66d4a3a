"""Tables of AMFL-P with one thing changed, and of four algorithms without flags."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.reports.amfl_p.claims import ADAPTIVE, WEIGHTINGS, make_weighting_cell
from launch.reports.amfl_p.experiments import (
    ABLATION_RUNS,
    ABLATIONS,
    CHOSEN_ON,
    DEFAULT_ALGOS,
    DEFAULT_RUNS,
    DEMANDED,
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
from launch.reports.collection import Cell
from launch.reports.equivalence import compare_by_seed
from launch.reports.markdown import Section, Table, format_table
from launch.runs.columns import GAIN, RELATIVE_CHANGE, START
from launch.runs.run_records import RunRecord, read_summary

ON_DEFAULTS = """\
The defaults were chosen by validation examples, on buildings of medium heterogeneity and on HAR by subject. HAR has the
same windows with every seed, split anew, so that test windows here are train or validation windows of the seeds of the
choice. The buildings of low and high heterogeneity are made as those of the choice are. Digits, MNIST and CIFAR-10 had
no part. The defaults are to have local training's accuracy or more on building, HAR and digits. Those of Fine-Tuning
and FedAvg are not chosen yet.
"""
Results = Mapping[tuple[str, ...], Mapping[int, FinalResult]]
START_COLUMNS = ("AMFL-P's start minus random weights, points", "it moved by at least")
BLANK = ("not run",) * len(START_COLUMNS)
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
        counts = sorted({len(each) for each in here.values() if each}) or [0]
        accuracies = [format_accuracy(each) for each in (*here.values(), majority)]
        against_local = _compare(here["amfl_p"], here["local_only"])
        used = "yes" if place in CHOSEN_ON else "no"
        rows.append([title, used, " to ".join(map(str, counts)), *accuracies, *against_local, *moved.get(place, BLANK)])
    columns = ["data", "chosen on it", "seeds", *DEFAULT_ALGOS.values(), "majority class"]
    columns += ["AMFL-P minus local training, points", "verdict", *START_COLUMNS]
    table = Table(columns, rows)
    text = f"{ON_DEFAULTS}\n{format_table(table)}\n\n{say_demand(results)}"
    return {"defaults": Section("Without flags: accuracy (%)", table, text)}


def say_demand(results: Results) -> str:
    """Whether AMFL-P's defaults have local training's mean accuracy everywhere they are to; if not, where and by what.

    Over the seeds that both have.
    """
    leads = {place: compare_by_seed(*_take_pair(results, place)).mean for place in DEMANDED}
    missed = [f"{-100 * lead:.2f} points on {PLACES[place]}" for place, lead in leads.items() if lead and lead < 0]
    absent = [PLACES[place] for place, lead in leads.items() if lead is None]
    verdict = f"not met: it is missed by {'; '.join(missed)}" if missed else "met in the means of these runs"
    left = f" Not run: {'; '.join(absent)}." if absent else ""
    return f"At least local training's accuracy everywhere: {verdict}.{left}"


def _take_pair(results: Results, place: str) -> list[dict[int, float]]:
    return [take_accuracies(results.get((algo, place), {})) for algo in ("amfl_p", "local_only")]


class StartWorth(NamedTuple):
    """Of summary.json: what the trained start gains on random weights, in 0..1, and how far it moved, of its norm."""

    gain: float
    change: float


def read_start(run: RunRecord) -> StartWorth | None:
    """What AMFL-P's start was worth; None of a run without fine-tuning, or one that ended early."""
    start = read_summary(run).get(START, {})
    if read_final(run) is None or start.get(GAIN) is None:
        return None
    return StartWorth(start[GAIN], start[RELATIVE_CHANGE])


def _describe_start(found: Mapping[int, StartWorth]) -> list[str]:
    """The gain with its interval and verdict, and the smallest change of any seed."""
    gain = compare_by_seed({seed: worth.gain for seed, worth in found.items()}, dict.fromkeys(found, 0.0))
    return [f"{gain.format()} {gain.verdict}", f"{min(worth.change for worth in found.values()):.1%}"]


def _make_row(title: str, found: Mapping[int, float]) -> list[str]:
    return [title, str(len(found)), format_accuracy(found), "", ""]


def _compare(first: Mapping[int, float], second: Mapping[int, float]) -> list[str]:
    difference = compare_by_seed(first, second)
    return [difference.format(), difference.verdict if difference.count else ""]
