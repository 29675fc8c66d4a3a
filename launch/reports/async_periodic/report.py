"""Asynchronous FL with periodic aggregation: all combinations beside FedAvg, and the claims. Imports no TensorFlow."""

import itertools
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.reports.async_periodic.claims import (
    ASYNC_CLAIMS,
    AT_TIME,
    AT_UPLOADS,
    CASES,
    FEDAVG,
    FINAL,
    FLUCTUATION,
    KINDS,
    LAST_AGGREGATIONS,
    LAST_MEAN,
    LAST_ROUND,
    MEASURES,
    NEVER_WAITING,
    POLICIES,
    TIME_BUDGET,
    UPLOAD_BUDGET,
    make_cell,
)
from launch.reports.claims import Cell
from launch.reports.report_tables import (
    Measured,
    Report,
    format_claims,
    format_measured,
    judge,
    summarize,
    tabulate_claims,
)
from launch.runs.columns import TEST_ACCURACY, VIRTUAL_TIME_S
from launch.runs.run_records import RunRecord

ACCURACY = TEST_ACCURACY
TITLE = "# Asynchronous FL with periodic aggregation: Figures 3 and 4"
PERIODIC = re.compile(rf"async_periodic_mnist_({'|'.join(CASES)})_({'|'.join(POLICIES)})_({'|'.join(KINDS)})")
NEVER_WAITS = re.compile(rf"({'|'.join(NEVER_WAITING)})_mnist_({'|'.join(CASES)})")
ROUNDING = 1e-9
LEGEND = (
    "Test accuracy in per cent, mean ± sample deviation over n seeds; the paper prints curves without numbers. "
    "FedAvg is the paper's, on the same clock: all devices train, the server waits for the slowest, then schedules. "
    f"Final: at the end of the run, which is aggregation {LAST_ROUND}; of FedAsync and FedBuff, which are not in the "
    f"paper, after 2,100 updates. Mean of last {LAST_AGGREGATIONS}: over as many aggregations. "
    f"At equal time: of the last model made by {TIME_BUDGET:g} T_max, when the "
    f"asynchronous runs end. At equal uploads: of the last model made of at most {UPLOAD_BUDGET:,} updates. "
    "Fluctuation: sample standard deviation, in points, of the changes in accuracy from one aggregation to the "
    f"next, over the last {LAST_AGGREGATIONS}. T_max, updates: how long the run lasted and what the server received. "
    "A claim is reproduced if all comparisons of its rule hold for our means."
)
COLUMNS = ("data", "scheduling", "weights", "seeds", "final", "mean of last 10", "at equal time", "at equal uploads",
           "fluctuation", "T_max", "updates")  # fmt: skip


class Place(NamedTuple):
    """Where a run stands: data case, policy ("" if every update is taken), weighting, FedAvg or another algorithm."""

    case: str
    policy: str
    kind: str


def find_place(experiment: str) -> Place | None:
    """The place of an experiment's runs; None if it is another report's."""
    if match := PERIODIC.fullmatch(experiment):
        return Place(*match.groups())
    if match := NEVER_WAITS.fullmatch(experiment):
        return Place(match[2], "", match[1])
    return None


def list_places() -> list[Place]:
    """All places in the order of the table."""
    periodic = [
        Place(case, policy, kind)
        for case in CASES
        for policy in POLICIES
        for kind in KINDS
        if case != "persistent" or (policy == "random" and kind != FEDAVG)
    ]
    never = [Place(case, "", kind) for case in CASES if case != "persistent" for kind in NEVER_WAITING]
    return sorted(periodic + never, key=lambda place: list(CASES).index(place.case))


def list_accuracies(run: RunRecord) -> list[float]:
    """Test accuracy after each round, in per cent."""
    return [100 * run.rounds[round_num][ACCURACY] for round_num in sorted(run.rounds)]


def list_times(run: RunRecord) -> list[float]:
    """The virtual time of each round, in T_max."""
    longest_s = run.flags[f"{run.flags['algo']}_max_training_s"]
    return [run.rounds[round_num][VIRTUAL_TIME_S] / longest_s for round_num in sorted(run.rounds)]


def count_updates(run: RunRecord) -> list[float]:
    """How many updates the server has received by the end of each round."""
    total, counts = 0.0, []
    for round_num in sorted(run.rounds):
        total += run.rounds[round_num]["num_clients"]
        counts.append(total)
    return counts


def find_last_within(budget: float, costs: Sequence[float], values: Sequence[float]) -> float | None:
    """The value after the last round whose cost is within the budget, None if there is none: a step function."""
    within = [value for cost, value in zip(costs, values, strict=True) if cost <= budget + ROUNDING]
    return within[-1] if within else None


def compute_fluctuation(accuracies: Sequence[float]) -> float | None:
    """Sample deviation of the last changes from round to round, which a steady climb leaves at 0; None if too short."""
    last = accuracies[-LAST_AGGREGATIONS - 1 :]
    changes = [after - before for before, after in itertools.pairwise(last)]
    return statistics.stdev(changes) if len(changes) == LAST_AGGREGATIONS else None


MEASURE_FUNCTIONS: Mapping[str, Callable[[RunRecord], float | None]] = {
    FINAL: lambda run: list_accuracies(run)[-1],
    LAST_MEAN: lambda run: statistics.fmean(list_accuracies(run)[-LAST_AGGREGATIONS:]),
    AT_TIME: lambda run: find_last_within(TIME_BUDGET, list_times(run), list_accuracies(run)),
    AT_UPLOADS: lambda run: find_last_within(UPLOAD_BUDGET, count_updates(run), list_accuracies(run)),
    FLUCTUATION: lambda run: compute_fluctuation(list_accuracies(run)),
    "time": lambda run: list_times(run)[-1],
    "updates": lambda run: count_updates(run)[-1],
}


def is_whole(run: RunRecord) -> bool:
    """Whether the run has all its rounds, each evaluated."""
    return len(run.rounds) == run.flags["rounds"] and all(ACCURACY in metrics for metrics in run.rounds.values())


def compute_results(runs: Iterable[RunRecord]) -> dict[Cell, Measured]:
    """Mean and deviation over the seeds of every measure; runs that ended early do not count."""
    values: dict[Cell, list[float]] = {}
    for run in runs:
        place = find_place(run.experiment)
        if place is None or not is_whole(run):
            continue
        for metric, measure in MEASURE_FUNCTIONS.items():
            value = measure(run)
            if value is not None:
                values.setdefault(make_cell(*place, metric), []).append(value)
    return {cell: summarize(numbers) for cell, numbers in values.items()}


def tabulate_results(results: Mapping[Cell, Measured]) -> list[list[str]]:
    """A row for each place, the columns of COLUMNS."""
    rows = []
    for place in list_places():
        cells = [results.get(make_cell(*place, metric)) for metric in MEASURE_FUNCTIONS]
        kind = KINDS.get(place.kind) or NEVER_WAITING[place.kind]
        texts = [format_measured(metric, cell) for metric, cell in zip(MEASURES, cells, strict=False)]
        costs = [cell and f"{cell.mean:.{digits}f}" for cell, digits in zip(cells[-2:], (1, 0), strict=True)]
        seeds = "" if cells[0] is None else str(cells[0].count)
        rows.append([CASES[place.case], place.policy or "none", kind, seeds, *texts, *(cost or "" for cost in costs)])
    return rows


def build_async_report(runs: Sequence[RunRecord]) -> Report:
    """One table of all combinations, and the claims."""
    runs = [run for run in runs if find_place(run.experiment) is not None]
    results = compute_results(runs)
    judgements = [judge(claim, [], {"printed": results, "tuned": {}}) for claim in ASYNC_CLAIMS]
    rows = tabulate_results(results)
    table = "\n".join("| " + " | ".join(line) + " |" for line in [COLUMNS, ["---"] * len(COLUMNS), *rows])
    parts = [TITLE, LEGEND, table, f"## Claims\n\n{format_claims(judgements)}"]
    tables = {"results": (COLUMNS, rows), "claims": tabulate_claims(judgements)}
    return Report("\n\n".join(parts), tables, runs)
