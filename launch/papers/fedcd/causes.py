"""What moves FedCD's swings: runs of the small size, each with one thing of the authors' code. Imports no TensorFlow.

They are exploratory: a seed or two each. A change is marked where it is more than twice the sample deviation that the
runs of the small size have over their seeds, which says that it is not likely to be chance, and no more.
"""

import math
import statistics
from collections.abc import Mapping, Sequence

from launch.papers.engine.collection import Measure, Place, group_runs
from launch.papers.engine.markdown import Section, Table, format_table
from launch.papers.fedcd.measures import (
    BASE,
    CAUSES,
    FEDCD,
    HIERARCHICAL,
    SMALL,
    find_place,
    is_whole,
    measure,
)
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
EXPLORATORY = (
    "Exploratory: each row has the settings of the small size and one thing of the authors' code. In brackets stands "
    'the difference from the runs as they are, of the same seeds and data, or, in a row that says "beside", from those '
    "of that cause. With 500 validation images the train images are the same and the test images others. A star marks "
    f"a difference of more than {LEAST_DEVIATIONS:g} times the sample deviation over the seeds of the runs as they are."
)


def compare_with_base(
    values: Mapping[int, float], base: Mapping[int, float], usual: Mapping[int, float] | None = None
) -> str:
    """A measure of a cause's runs, its mean difference from the base's runs of the same seeds, and whether it counts.

    Args:
      values: by seed, infinite where a run never gets there.
      base: the same without the cause.
      usual: whose deviation a difference is held against, of two seeds or more to count; None: the base's.
    """
    usual = base if usual is None else usual
    seeds = sorted(values.keys() & base.keys())
    shown = statistics.fmean(values.values())
    text = f"{shown:.2f}"
    if math.isinf(shown):
        times = sum(map(math.isinf, values.values()))
        text = "never" if times == len(values) else f"never in {times} of {len(values)}"
    differences = [values[seed] - base[seed] for seed in seeds]
    if not differences or not all(map(math.isfinite, (*differences, *usual.values()))):
        return text
    mean = statistics.fmean(differences)
    counts = len(usual) > 1 and abs(mean) > LEAST_DEVIATIONS * statistics.stdev(usual.values())
    return f"{text} ({mean:+.2f}{MARK if counts else ''})"


def build_causes(runs: Sequence[RunRecord]) -> Section | None:
    """The causes that were run, by data set, below the small size as it is on that; None if none was run."""
    small = [run for run in runs if is_whole(run) and _find_variant(run) is not None]
    datasets = sorted({run.dataset for run in small if _find_variant(run)})
    rows = [row for name in datasets for row in _list_rows([run for run in small if run.dataset == name], name)]
    if not rows:
        return None
    table = Table(["what differs", "seeds", *MEASURES.values(), "data"], rows)
    return Section("What moves it, one thing at a time", table, f"{EXPLORATORY}\n\n{format_table(table)}")


def _find_variant(run: RunRecord) -> str | None:
    """Which cause a run has, BASE for none; None if it is of no use here."""
    place = find_place(run.experiment)
    variant = place.setting
    is_here = place == Place(SMALL, HIERARCHICAL, variant, FEDCD) and variant in (BASE, *CAUSES)
    return variant if is_here else None


def _list_rows(runs: Sequence[RunRecord], dataset: str) -> list[list[str]]:
    """The rows of the runs on one data set, first those without a cause, if there are any."""
    by_place = {place.setting: members for place, members in group_runs(runs, find_place).items()}
    found = {variant: _measure(by_place.get(variant, ())) for variant in (BASE, *CAUSES)}
    comparisons = [(variant, BASE, CAUSES.get(variant, "as it is")) for variant in found]
    for variant, other in BESIDE_OTHERS.items():
        place = [each for each, _, _ in comparisons].index(variant)
        text = f"{CAUSES[variant]}, beside: {CAUSES[other]}"
        comparisons.insert(place + 1, (variant, other, text))
    rows = []
    for variant, other, text in comparisons:
        seeds = sorted(found[variant]["mean_of_last"])
        if not seeds or (other != BASE and not found[other]["mean_of_last"]):
            continue
        cells = [
            compare_with_base(values, found[other][metric] if variant else {}, found[BASE][metric] if variant else {})
            for metric, values in found[variant].items()
        ]
        rows.append([text, ", ".join(map(str, seeds)), *cells, dataset])
    return rows


def _measure(runs: Sequence[RunRecord]) -> dict[str, dict[int, float]]:
    """MEASURES by seed."""
    measured = {run.flags["seed"]: measure(run) for run in runs}
    return {metric: {seed: numbers[Measure(metric, 0)] for seed, numbers in measured.items()} for metric in MEASURES}
