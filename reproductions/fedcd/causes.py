"""What moves swings: runs of the small size, each with one thing changed. Imports no TensorFlow.

Of FedCD with one thing of the authors' code, exploratory, a seed or two each; of FedAvg with other cohorts or another
normalization. A change is marked where it is more than twice the sample deviation that the
runs of the small size have over their seeds.
"""

import math
from collections.abc import Callable

from launch.comparison.seed_statistics import compute_deviation, compute_mean, subtract_by_seed
from reproductions.engine.collection import Place
from reproductions.engine.markdown import Table
from reproductions.engine.tables import BySeed
from reproductions.fedcd.measures import AXES, BASE, FEDCD, HIERARCHICAL, SMALL, TEXTS, RunsByPlace

CAUSES, COHORTS = AXES["cause"], AXES["cohort"]
# Causes that are one thing more than another cause.
BESIDE_OTHERS = {"steps_anew": "steps", "student_stratified": "student", "student_even": "student"}
LEAST_DEVIATIONS = 2.0
MARK = "*"


def compare_with_base(values: BySeed, base: BySeed, usual: BySeed) -> str:
    """A measure of a cause's runs, its mean difference from the base's runs of the same seeds, and whether it counts.

    Args:
      values: by seed, infinite where a run never gets there; none where the runs do not have it.
      base: the same without the cause.
      usual: whose deviation a difference is held against, of two seeds or more to count.
    """
    if not values:
        return ""
    shown = compute_mean(values.values())
    text = f"{shown:.2f}"
    if math.isinf(shown):
        times = sum(map(math.isinf, values.values()))
        text = "never" if times == len(values) else f"never in {times} of {len(values)}"
    differences = subtract_by_seed(values, base).values()
    if not differences or not all(map(math.isfinite, (*differences, *usual.values()))):
        return text
    mean = compute_mean(differences)
    deviation = compute_deviation(usual.values())
    counts = deviation is not None and abs(mean) > LEAST_DEVIATIONS * deviation
    return f"{text} ({mean:+.2f}{MARK if counts else ''})"


def tabulate_causes(by_place: RunsByPlace, find: Callable[[Place, str], BySeed], algo: str = FEDCD) -> Table:
    """The causes that were run, below the small size as it is; no rows if none was run.

    Args:
      by_place: the whole runs.
      find: (place, measure) -> what its runs have.
      algo: whose causes: FedCD's, or FedAvg's cohorts.
    """
    causes, columns = (CAUSES, TEXTS["cause_columns"]) if algo == FEDCD else (COHORTS, TEXTS["cohort_columns"])
    rows = []
    places = {variant: Place(SMALL, HIERARCHICAL, variant, algo) for variant in (BASE, *causes)}
    for variant, text in {BASE: "as it is", **causes}.items():
        runs = by_place.get(places[variant], ())
        compared = {text: BASE if variant else None}
        if (other := BESIDE_OTHERS.get(variant)) and places[other] in by_place:
            compared[f"{text}, beside: {causes[other]}"] = other
        for words, base in compared.items() if runs else ():
            row = [words, ", ".join(str(run.flags["seed"]) for run in runs)]
            for name in columns:
                pair = [{} if base is None else find(places[each], name) for each in (base, BASE)]
                row.append(compare_with_base(find(places[variant], name), *pair))
            rows.append([*row, runs[0].dataset])
    has_causes = any(places[cause] in by_place for cause in causes)
    return Table(["what differs", "seeds", *columns.values(), "data"], rows if has_causes else [])
