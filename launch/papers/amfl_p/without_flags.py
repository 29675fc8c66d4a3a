"""The tables of four algorithms without flags: what the defaults do on data that they were, or were not, chosen on."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.papers.amfl_p.experiments import (
    CHOSEN_ON,
    DEFAULT_ROWS,
    DEFAULT_RUNS,
    DEMANDED,
    PLACES,
    Results,
    collect_majority,
    format_accuracy,
    group_by_name,
    read_final,
    take_accuracies,
)
from launch.papers.engine.equivalence import compare_by_seed
from launch.papers.engine.markdown import Section, Table, format_table
from launch.runs.columns import GAIN, RELATIVE_CHANGE, START
from launch.runs.run_records import RunRecord, read_summary

OURS, DEMANDING, BASELINE = "amfl_p", "local_only", "fine_tuning"
OTHERS = {algo: title for algo, title in DEFAULT_ROWS.items() if algo != OURS}
# AMFL-P with each of the others, and whether the simpler fine-tuner reaches what is demanded of AMFL-P.
PAIRS = (*((OURS, algo) for algo in OTHERS), (BASELINE, DEMANDING))
START_COLUMNS = ("AMFL-P's start minus random weights, points", "it moved by at least")
BLANK = ("not run",) * len(START_COLUMNS)
ON_DEFAULTS = """\
The defaults were chosen by validation examples, on buildings of medium heterogeneity and on HAR by subject. HAR has the
same windows with every seed, split anew, so that test windows here are train or validation windows of the seeds of the
choice. The buildings of low and high heterogeneity are made as those of the choice are. Digits, MNIST and CIFAR-10 had
no part. FedAvg keeps the defaults that it had, which are those of the other systems' baseline; *its trials' best* are
runs with the settings that the same rule would have chosen.
"""
ON_PAIRS = """\
Runs of the same seed. *Win*, *loss* and *tie* as for start and finish, each comparison alone and without correction.
The defaults are to have local training's accuracy or more on building, HAR and digits.
"""


class StartWorth(NamedTuple):
    """Of summary.json: what the trained start gains on random weights, in 0..1, and how far it moved, of its norm."""

    gain: float
    change: float


def tabulate_defaults(runs: Sequence[RunRecord]) -> dict[str, Section]:
    """A row for each data set: accuracies, and differences by PAIRS; none without runs."""
    results: Results = group_by_name(runs, DEFAULT_RUNS, read_final)
    if not results:
        return {}
    accuracies, pairs = _tabulate_accuracies(results, _describe_starts(runs)), _tabulate_pairs(results)
    return {
        "defaults": Section("Without flags: accuracy (%)", accuracies, f"{ON_DEFAULTS}\n{format_table(accuracies)}"),
        "defaults_pairs": Section(
            "Without flags: AMFL-P and the others", pairs, f"{ON_PAIRS}\n{format_table(pairs)}\n\n{say_demand(results)}"
        ),
    }


def _tabulate_accuracies(results: Results, starts: Mapping[str, Sequence[str]]) -> Table:
    rows = []
    for place, title in PLACES.items():
        here = [take_accuracies(results.get((algo, place), {})) for algo in DEFAULT_ROWS]
        majority = collect_majority(results.get((algo, place), {}) for algo in DEFAULT_ROWS)
        counts = sorted({len(each) for each in here if each}) or [0]
        accuracies = [format_accuracy(each) for each in (*here, majority)]
        used = "yes" if place in CHOSEN_ON else "no"
        rows.append([title, used, " to ".join(map(str, counts)), *accuracies, *starts.get(place, BLANK)])
    columns = ["data", "chosen on it", "seeds", *DEFAULT_ROWS.values(), "majority class", *START_COLUMNS]
    return Table(columns, rows)


def _tabulate_pairs(results: Results) -> Table:
    rows = [
        [title, *(compare_by_seed(*_take_pair(results, place, pair)).describe() for pair in PAIRS)]
        for place, title in PLACES.items()
    ]
    names = [f"{DEFAULT_ROWS[first]} minus {DEFAULT_ROWS[second]}, points" for first, second in PAIRS]
    return Table(["data", *names], rows)


def say_demand(results: Results) -> str:
    """Whether AMFL-P's defaults have local training's mean accuracy everywhere they are to; if not, where and by what.

    Over the seeds that both have.
    """
    leads = {place: compare_by_seed(*_take_pair(results, place, (OURS, DEMANDING))).mean for place in DEMANDED}
    missed = [f"{-100 * lead:.2f} points on {PLACES[place]}" for place, lead in leads.items() if lead and lead < 0]
    absent = [PLACES[place] for place, lead in leads.items() if lead is None]
    verdict = f"not met: it is missed by {'; '.join(missed)}" if missed else "met in the means of these runs"
    left = f" Not run: {'; '.join(absent)}." if absent else ""
    return f"At least local training's accuracy everywhere: {verdict}.{left}"


def _take_pair(results: Results, place: str, pair: Sequence[str]) -> list[dict[int, float]]:
    return [take_accuracies(results.get((algo, place), {})) for algo in pair]


def read_start(run: RunRecord) -> StartWorth | None:
    """What a run's trained start was worth; None of a run without fine-tuning, or one that ended early."""
    start = read_summary(run).get(START, {})
    if read_final(run) is None or start.get(GAIN) is None:
        return None
    return StartWorth(start[GAIN], start[RELATIVE_CHANGE])


def _describe_starts(runs: Sequence[RunRecord]) -> dict[str, list[str]]:
    """By place, AMFL-P's gain with its interval and verdict, and the smallest change of any seed."""
    described = {}
    for (algo, place), found in group_by_name(runs, DEFAULT_RUNS, read_start).items():
        if algo == OURS:
            gain = compare_by_seed({seed: worth.gain for seed, worth in found.items()}, dict.fromkeys(found, 0.0))
            moved = min(worth.change for worth in found.values())
            described[place] = [gain.describe(), f"{moved:.1%}"]
    return described
