"""What the experiments of asynchronous FL are called, and what is measured in a run of one. Imports no TensorFlow.

Accuracies are in per cent, times in T_max. A result stands in a data case, under a scheduling policy ("" if every
update is taken), with a kind: a weighting of the asynchronous runs, FedAvg with or without a proximal term, or a method
that never waits. Runs with tuned settings are kinds of their own, since claims are about the printed ones.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from launch.runs.columns import NUM_CLIENTS, TEST_ACCURACY, VIRTUAL_TIME_S
from launch.runs.run_records import RunRecord
from reproductions.engine.collection import PRINTED, Cell, Place, compute_deviation_of_changes, list_bytes
from reproductions.engine.counted_runs import TUNED_SUFFIX
from reproductions.engine.folder import read_toml

AXES: Mapping[str, Mapping[str, str]] = read_toml("async_periodic", "tables.toml")["axes"]  # names and titles
FEDAVG, FEDAVG_PROXIMAL = "synchronous_plain", "synchronous"
COMPARED_CASES = ("iid", "shards")  # Figures 3 and 4
OWN_DIGITS = "persistent"  # ours, for one claim: only the runs that it compares were made
TUNED_CASES = ("shards",)  # where settings are searched
# What is tuned on validation examples, by (policy, kind): all with as many trials.
TUNED_METHODS = {
    ("random", "fresh"): "periodic",
    ("random", FEDAVG_PROXIMAL): AXES["fedavg"][FEDAVG],
    **{("", algo): title for algo, title in AXES["never_waiting"].items()},
}
TUNED_KINDS = {(policy, kind + TUNED_SUFFIX): f"{name}, tuned" for (policy, kind), name in TUNED_METHODS.items()}

LAST_ROUND = 40
TIME_BUDGET = LAST_ROUND / 4  # T_max: when an asynchronous run ends, since its periods are T_max / 4 long
UPLOAD_BUDGET = 1150  # updates: fewer than an asynchronous run sends in all, LAST_ROUND aggregations of R = 30
MODEL_BYTES = 4 * 199_210  # of McMahan's 2NN at 32 bits
MODEL_BUDGET = 2600  # models, both ways together: fewer than an asynchronous run sends, about 1,190 up and 1,620 down
LAST_AGGREGATIONS = 10
PERIODS = (1, 2, 3, 4)  # of T_max / 4 that a device takes to train
CYCLE = math.lcm(*PERIODS)  # aggregations, after which the same devices are ready again
# Virtual times are sums of many intervals: the round that ends exactly at a budget must not fall out of it.
ROUNDING = 1e-9


def make_cell(case: str, policy: str, kind: str, metric: str = "final") -> Cell:
    """A result of a policy and a kind."""
    return Cell(case, policy, kind, LAST_ROUND, metric)


def make_place(case: str, policy: str, kind: str) -> Place:
    """Where runs stand."""
    return Place(PRINTED, case, policy, kind)


def name_experiment(place: Place) -> str:
    """The experiment of a place."""
    _, case, policy, kind = place
    if policy:
        return f"async_periodic_mnist_{case}_{policy}_{kind}"
    algo = kind.removesuffix(TUNED_SUFFIX)
    return f"{algo}_mnist_{case}{kind.removeprefix(algo)}"


def list_places() -> Iterator[tuple[Place, str]]:
    """All places in the order of the table, each with what its kind is called."""
    for case in COMPARED_CASES:
        for policy, kinds in itertools.product(AXES["policy"], (AXES["weighting"], AXES["fedavg"])):
            yield from ((make_place(case, policy, kind), title) for kind, title in kinds.items())
        yield from ((make_place(case, "", kind), title) for kind, title in AXES["never_waiting"].items())
        if case in TUNED_CASES:
            yield from ((make_place(case, *place), title) for place, title in TUNED_KINDS.items())
    own_digits = AXES["weighting"] | AXES["older"] | AXES["weighting"]  # "old" is called as elsewhere
    for kind, title in own_digits.items():
        yield make_place(OWN_DIGITS, "random", kind), title


PLACES = {name_experiment(place): place for place, _ in list_places()}


def is_whole(run: RunRecord) -> bool:
    """Whether the run has all its rounds, each evaluated."""
    return len(run.rounds) == run.flags["rounds"] and all(TEST_ACCURACY in metrics for metrics in run.rounds.values())


def list_accuracies(run: RunRecord) -> list[float]:
    """Test accuracy after each round, in per cent."""
    return [100 * run.rounds[round_num][TEST_ACCURACY] for round_num in sorted(run.rounds)]


def list_times(run: RunRecord) -> list[float]:
    """The virtual time of each round, in T_max."""
    longest_s = run.flags["max_training_s"]
    return [run.rounds[round_num][VIRTUAL_TIME_S] / longest_s for round_num in sorted(run.rounds)]


def count_updates(run: RunRecord) -> list[float]:
    """How many updates the server has received by the end of each round."""
    return list(itertools.accumulate(run.rounds[round_num][NUM_CLIENTS] for round_num in sorted(run.rounds)))


def find_at_bytes(run: RunRecord) -> float | None:
    """The accuracy of the last model within MODEL_BUDGET; None if the run says nothing of bytes."""
    models = [total / MODEL_BYTES for total in list_bytes(run)]
    return find_last_within(MODEL_BUDGET, models, list_accuracies(run)) if models else None


def find_last_within(budget: float, costs: Sequence[float], values: Sequence[float]) -> float | None:
    """The value after the last round whose cost is within the budget, None if there is none: a step function."""
    within = [value for cost, value in zip(costs, values, strict=True) if cost <= budget + ROUNDING]
    return within[-1] if within else None


def compute_fluctuation(accuracies: Sequence[float]) -> float | None:
    """Sample deviation of the last changes from round to round, which a steady climb leaves at 0; None if too short."""
    last = accuracies[-LAST_AGGREGATIONS - 1 :]
    return compute_deviation_of_changes(last) if len(last) == LAST_AGGREGATIONS + 1 else None


MEASURES: Mapping[str, Callable[[RunRecord], float | None]] = {
    "final": lambda run: list_accuracies(run)[-1],
    "mean_of_last": lambda run: statistics.fmean(list_accuracies(run)[-LAST_AGGREGATIONS:]),
    "mean_of_cycle": lambda run: statistics.fmean(list_accuracies(run)[-CYCLE:]),
    "at_equal_time": lambda run: find_last_within(TIME_BUDGET, list_times(run), list_accuracies(run)),
    "at_equal_uploads": lambda run: find_last_within(UPLOAD_BUDGET, count_updates(run), list_accuracies(run)),
    "at_equal_bytes": find_at_bytes,
    "fluctuation": lambda run: compute_fluctuation(list_accuracies(run)),
    "time": lambda run: list_times(run)[-1],
    "updates": lambda run: count_updates(run)[-1],
}


def measure(run: RunRecord) -> dict[str, float]:
    """Every measure that the run is long enough for; nothing of a run that ended early, or stands nowhere."""
    if run.experiment not in PLACES or not is_whole(run):
        return {}
    values = {name: compute(run) for name, compute in MEASURES.items()}
    return {name: value for name, value in values.items() if value is not None}
