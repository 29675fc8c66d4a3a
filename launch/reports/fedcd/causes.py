"""What moves FedCD's swings: runs of the small size, each with one thing of the authors' code. Imports no TensorFlow.

They are exploratory: a seed or two each. A change is marked where it is more than twice the sample deviation that the
runs of the small size have over their seeds, which says that it is not likely to be chance, and no more.
"""

import math
import statistics
from collections.abc import Mapping, Sequence

from launch.reports.collection import Place, SeedResults
from launch.reports.fedcd.measures import BASE, CAUSES, FEDCD, HIERARCHICAL, SMALL
from launch.reports.markdown import Section, Table, format_table

MEASURES = {
    "mean_of_last": "last",
    "change": "change",
    "swing": "swing of a meta-archetype",
    "calmest": "calmest",
    "convergence": "converges at round",
    "live_models": "models left",
    "preferred_models": "preferred",
}
LEAST_DEVIATIONS = 2.0
MARK = "*"
EXPLORATORY = (
    "Exploratory: each row has the settings of the small size and one thing of the authors' code. In brackets stands "
    "the difference from the runs without it, of the same seeds; a star marks one of more than "
    f"{LEAST_DEVIATIONS:g} times the sample deviation over the seeds of those runs."
)


def compare_with_base(values: Mapping[int, float], base: Mapping[int, float]) -> str:
    """A measure of a cause's runs, its mean difference from the base's runs of the same seeds, and whether it counts.

    Args:
      values: by seed, infinite where a run never gets there.
      base: the same without the cause, of two seeds or more to count.
    """
    seeds = sorted(values.keys() & base.keys())
    shown = statistics.fmean(values.values())
    text = "never" if math.isinf(shown) else f"{shown:.2f}"
    differences = [values[seed] - base[seed] for seed in seeds]
    if not differences or not all(map(math.isfinite, (*differences, *base.values()))):
        return text
    mean = statistics.fmean(differences)
    counts = len(base) > 1 and abs(mean) > LEAST_DEVIATIONS * statistics.stdev(base.values())
    return f"{text} ({mean:+.2f}{MARK if counts else ''})"


def build_causes(results: SeedResults) -> Section | None:
    """A row a cause that was run, below that of the small size as it is; None if none was run."""
    by_cell = results[SMALL]

    def look_up(variant: str, metric: str) -> Mapping[int, float]:
        return by_cell.get(Place(SMALL, HIERARCHICAL, variant, FEDCD).make_cell(metric, 0), {})

    rows: list[Sequence[str]] = []
    for variant, words in CAUSES.items():
        found = {metric: look_up(variant, metric) for metric in MEASURES}
        if seeds := sorted(found["mean_of_last"]):
            cells = [compare_with_base(values, look_up(BASE, metric)) for metric, values in found.items()]
            rows.append([words, ", ".join(map(str, seeds)), *cells])
    if not rows:
        return None
    base = {metric: look_up(BASE, metric) for metric in MEASURES}
    first = ["as it is", ", ".join(map(str, sorted(base["mean_of_last"])))]
    rows.insert(0, [*first, *(compare_with_base(values, {}) if values else "" for values in base.values())])
    table = Table(["what differs", "seeds", *MEASURES.values()], rows)
    return Section("What moves it, one thing at a time", table, f"{EXPLORATORY}\n\n{format_table(table)}")
