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
LEAST_DEVIATIONS = 2.0
MARK = "*"
EXPLORATORY = (
    "Exploratory: each row has the settings of the small size and one thing of the authors' code. In brackets stands "
    "the difference from the runs without it, of the same seeds and data; a star marks one of more than "
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


def build_causes(results: SeedResults, runs: Mapping[Place, Sequence[RunRecord]]) -> Section | None:
    """The causes that were run, by data set, below the small size as it is on that; None if none was run.

    Args:
      results: the measures by size, cell and seed.
      runs: that they are of, by place, one a seed.
    """
    places = {variant: Place(SMALL, HIERARCHICAL, variant, FEDCD) for variant in (BASE, *CAUSES)}
    datasets = sorted({run.dataset for variant in CAUSES for run in runs.get(places[variant], ())})
    rows = [row for dataset in datasets for row in _list_rows(results, runs, places, dataset)]
    if not rows:
        return None
    table = Table(["what differs", "seeds", *MEASURES.values(), "data"], rows)
    return Section("What moves it, one thing at a time", table, f"{EXPLORATORY}\n\n{format_table(table)}")


def _list_rows(
    results: SeedResults, runs: Mapping[Place, Sequence[RunRecord]], places: Mapping[str, Place], dataset: str
) -> list[list[str]]:
    """The rows of the runs on one data set, first those without a cause, if there are any."""
    found = {}
    for variant, place in places.items():
        seeds = [run.flags["seed"] for run in runs.get(place, ()) if run.dataset == dataset]
        by_metric = {metric: results[SMALL].get(place.make_cell(metric, 0), {}) for metric in MEASURES}
        found[variant] = {metric: {seed: values[seed] for seed in seeds} for metric, values in by_metric.items()}
    rows = []
    for variant, by_metric in found.items():
        if seeds := sorted(by_metric["mean_of_last"]):
            base = found[BASE] if variant else {}
            cells = [compare_with_base(values, base.get(metric, {})) for metric, values in by_metric.items()]
            rows.append([CAUSES.get(variant, "as it is"), ", ".join(map(str, seeds)), *cells, dataset])
    return rows
