"""What moves FedCD's swings: runs of the small size, each with one thing of the authors' code. Imports no TensorFlow.

They are exploratory: a seed or two each. A change is marked where it is more than twice the sample deviation that the
runs of the small size have over their seeds.
"""

import math
import statistics
from collections.abc import Sequence

from launch.papers.engine.collection import Measure, Place, group_runs, measure_runs
from launch.papers.engine.markdown import Table
from launch.papers.engine.tables import BySeed
from launch.papers.fedcd.measures import BASE, CAUSES, FEDCD, HIERARCHICAL, SMALL, find_place, is_whole, measure
from launch.runs.run_records import RunRecord

MEASURES = {
    "mean_of_last": "last",
    "change": "change",
    "last_change": "last change",
    "swing": "swing of a meta-archetype",
    "calmest": "calmest",
    "convergence": "converges at round",
    "live_models": "models left",
    "preferred_models": "preferred",
}
BESIDE_OTHERS = {"steps_anew": "steps"}  # causes that are one thing more than another cause
LEAST_DEVIATIONS = 2.0
MARK = "*"


def compare_with_base(values: BySeed, base: BySeed, usual: BySeed | None = None) -> str:
    """A measure of a cause's runs, its mean difference from the base's runs of the same seeds, and whether it counts.

    Args:
      values: by seed, infinite where a run never gets there.
      base: the same without the cause.
      usual: whose deviation a difference is held against, of two seeds or more to count; None: the base's.
    """
    usual = base if usual is None else usual
    shown = statistics.fmean(values.values())
    text = f"{shown:.2f}"
    if math.isinf(shown):
        times = sum(map(math.isinf, values.values()))
        text = "never" if times == len(values) else f"never in {times} of {len(values)}"
    differences = [values[seed] - base[seed] for seed in sorted(values.keys() & base.keys())]
    if not differences or not all(map(math.isfinite, (*differences, *usual.values()))):
        return text
    mean = statistics.fmean(differences)
    counts = len(usual) > 1 and abs(mean) > LEAST_DEVIATIONS * statistics.stdev(usual.values())
    return f"{text} ({mean:+.2f}{MARK if counts else ''})"


def tabulate_causes(runs: Sequence[RunRecord]) -> Table:
    """The causes that were run, by data set, below the small size as it is on that; no rows if none was run."""
    places = [Place(SMALL, HIERARCHICAL, variant, FEDCD) for variant in (BASE, *CAUSES)]
    small = [run for run in runs if is_whole(run) and find_place(run.experiment) in places]
    rows = []
    for dataset in sorted({run.dataset for run in small if find_place(run.experiment).setting}):
        rows += [[*row, dataset] for row in _list_rows([run for run in small if run.dataset == dataset])]
    return Table(["what differs", "seeds", *MEASURES.values(), "data"], rows)


def _list_rows(runs: Sequence[RunRecord]) -> list[list[str]]:
    """The rows of the runs on one data set, first those without a cause, if there are any."""
    measured = measure_runs(group_runs(runs, find_place), measure)
    found: dict[str, dict[str, BySeed]] = {
        place.setting: {name: {seed: each[Measure(name, 0)] for seed, each in by_seed.items()} for name in MEASURES}
        for place, by_seed in measured.items()
    }
    nothing: dict[str, BySeed] = {name: {} for name in MEASURES}
    usual, rows = found.get(BASE, nothing), []
    for variant, text in {BASE: "as it is", **CAUSES}.items():
        compared = {text: usual if variant else nothing}
        if (other := BESIDE_OTHERS.get(variant)) in found:
            compared[f"{text}, beside: {CAUSES[other]}"] = found[other]
        for words, base in compared.items() if variant in found else ():
            seeds = ", ".join(map(str, sorted(found[variant]["mean_of_last"])))
            against = {name: (base[name], usual[name] if variant else {}) for name in MEASURES}
            rows.append([words, seeds, *(compare_with_base(found[variant][name], *against[name]) for name in MEASURES)])
    return rows
