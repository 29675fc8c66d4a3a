"""What the report on asynchronous FL measures in a run, from its `metrics.csv`. Imports no TensorFlow.

Accuracies are in per cent, times in T_max.
"""

import itertools
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from launch.papers.async_periodic.claims import (
    AT_BYTES,
    AT_TIME,
    AT_UPLOADS,
    CASES,
    COMPARED_CASES,
    CYCLE_MEAN,
    FEDAVG,
    FEDAVG_PROXIMAL,
    FINAL,
    FLUCTUATION,
    KINDS,
    LAST_AGGREGATIONS,
    LAST_MEAN,
    LAST_ROUND,
    MODEL_BUDGET,
    MODEL_BYTES,
    NEVER_WAITING,
    OLDER,
    POLICIES,
    TIME,
    TIME_BUDGET,
    TUNED_CASES,
    TUNED_KINDS,
    UPDATES,
    UPLOAD_BUDGET,
    WEIGHTINGS,
)
from launch.papers.async_periodic.shares import CYCLE
from launch.papers.engine.collection import (
    PRINTED,
    Measure,
    Numbers,
    Place,
    compute_deviation_of_changes,
    group_runs,
    list_bytes,
)
from launch.runs.columns import NUM_CLIENTS, TEST_ACCURACY, VIRTUAL_TIME_S
from launch.runs.run_records import TUNED_SUFFIX, RunRecord, find_flagfile

ACCURACY = TEST_ACCURACY
_KINDS = "|".join(map(re.escape, KINDS))
PERIODIC = rf"async_periodic_mnist_({'|'.join(CASES)})_({'|'.join(POLICIES)})_((?:{_KINDS})(?:{TUNED_SUFFIX})?)"
NEVER_WAITS = rf"({'|'.join(NEVER_WAITING)})_mnist_({'|'.join(CASES)})({TUNED_SUFFIX})?"
CITY = "async_periodic_mnist_city"  # shows what a large federation costs; no accuracy of it is reported
ASYNC_RUNS = f"{PERIODIC}|{NEVER_WAITS}|{CITY}"
# Virtual times are sums of many intervals: the round that ends exactly at a budget must not fall out of it.
ROUNDING = 1e-9


def make_place(case: str, policy: str, kind: str) -> Place:
    """The place of runs on a data case; the policy is "" if every update is taken.

    Runs with tuned settings are a kind of their own, since claims are about the printed ones.
    """
    return Place(PRINTED, case, policy, kind)


def find_place(experiment: str) -> Place | None:
    """The place of an experiment's runs; None if it is another report's."""
    if match := re.fullmatch(PERIODIC, experiment):
        return make_place(*match.groups())
    if match := re.fullmatch(NEVER_WAITS, experiment):
        return make_place(match[2], "", match[1] + (match[3] or ""))
    return None


def name_experiment(place: Place) -> str:
    """The name of the flagfile of a place."""
    _, case, policy, kind = place
    if policy:
        return f"async_periodic_mnist_{case}_{policy}_{kind}"
    algo = kind.removesuffix(TUNED_SUFFIX)
    return f"{algo}_mnist_{case}{kind.removeprefix(algo)}"


def list_places() -> list[Place]:
    """All places in the order of the table; those with tuned settings once their trials have given a flagfile."""
    # The persistent case is ours, for one claim: only the runs that it compares were made.
    own_digits = [make_place("persistent", "random", kind) for kind in dict.fromkeys([*WEIGHTINGS, *OLDER])]
    compared = [
        make_place(case, policy, kind)
        for case in COMPARED_CASES
        for policy in POLICIES
        for kind in (*WEIGHTINGS, FEDAVG, FEDAVG_PROXIMAL)
    ]
    never = [make_place(case, "", kind) for case in COMPARED_CASES for kind in NEVER_WAITING]
    tuned = [make_place(case, *place) for case in TUNED_CASES for place in TUNED_KINDS]
    tuned = [place for place in tuned if find_flagfile(name_experiment(place)) is not None]
    return sorted(compared + never + tuned + own_digits, key=lambda place: list(CASES).index(place.dataset))


def is_whole(run: RunRecord) -> bool:
    """Whether the run has all its rounds, each evaluated."""
    return len(run.rounds) == run.flags["rounds"] and all(ACCURACY in metrics for metrics in run.rounds.values())


def group_whole_runs(runs: Iterable[RunRecord]) -> dict[Place, list[RunRecord]]:
    """The runs of each place; runs that ended early do not count."""
    return group_runs(filter(is_whole, runs), find_place)


def list_accuracies(run: RunRecord) -> list[float]:
    """Test accuracy after each round, in per cent."""
    return [100 * run.rounds[round_num][ACCURACY] for round_num in sorted(run.rounds)]


def list_times(run: RunRecord) -> list[float]:
    """The virtual time of each round, in T_max."""
    longest_s = run.flags[f"{run.flags['algo']}_max_training_s"]
    return [run.rounds[round_num][VIRTUAL_TIME_S] / longest_s for round_num in sorted(run.rounds)]


def count_updates(run: RunRecord) -> list[float]:
    """How many updates the server has received by the end of each round."""
    return list(itertools.accumulate(run.rounds[round_num][NUM_CLIENTS] for round_num in sorted(run.rounds)))


def count_models(run: RunRecord) -> list[float]:
    """How many models' bytes have gone both ways by the end of each round; empty if the run says nothing of bytes."""
    return [total / MODEL_BYTES for total in list_bytes(run)]


def find_at_bytes(run: RunRecord) -> float | None:
    """The accuracy of the last model within MODEL_BUDGET."""
    models = count_models(run)
    return find_last_within(MODEL_BUDGET, models, list_accuracies(run)) if models else None


def find_last_within(budget: float, costs: Sequence[float], values: Sequence[float]) -> float | None:
    """The value after the last round whose cost is within the budget, None if there is none: a step function."""
    within = [value for cost, value in zip(costs, values, strict=True) if cost <= budget + ROUNDING]
    return within[-1] if within else None


def compute_fluctuation(accuracies: Sequence[float]) -> float | None:
    """Sample deviation of the last changes from round to round, which a steady climb leaves at 0; None if too short."""
    last = accuracies[-LAST_AGGREGATIONS - 1 :]
    return compute_deviation_of_changes(last) if len(last) == LAST_AGGREGATIONS + 1 else None


MEASURE_FUNCTIONS: Mapping[str, Callable[[RunRecord], float | None]] = {
    FINAL: lambda run: list_accuracies(run)[-1],
    LAST_MEAN: lambda run: statistics.fmean(list_accuracies(run)[-LAST_AGGREGATIONS:]),
    CYCLE_MEAN: lambda run: statistics.fmean(list_accuracies(run)[-CYCLE:]),
    AT_TIME: lambda run: find_last_within(TIME_BUDGET, list_times(run), list_accuracies(run)),
    AT_UPLOADS: lambda run: find_last_within(UPLOAD_BUDGET, count_updates(run), list_accuracies(run)),
    AT_BYTES: find_at_bytes,
    FLUCTUATION: lambda run: compute_fluctuation(list_accuracies(run)),
    TIME: lambda run: list_times(run)[-1],
    UPDATES: lambda run: count_updates(run)[-1],
}


def measure(run: RunRecord) -> Numbers:
    """Every measure that the run is long enough for."""
    values = {name: compute(run) for name, compute in MEASURE_FUNCTIONS.items()}
    return {Measure(name, LAST_ROUND): value for name, value in values.items() if value is not None}
