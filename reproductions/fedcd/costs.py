"""What FedCD and FedAvg spend until they have converged, in seconds and megabytes. Imports no TensorFlow.

Runs end, so for a run that has not converged by then it is only known that it takes more than it has spent.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from launch.runs.columns import VIRTUAL_TIME_S
from launch.runs.run_records import RunRecord
from reproductions.engine.collection import Place
from reproductions.engine.tables import show
from reproductions.fedcd.measures import (
    CAP,
    FEDAVG,
    FEDCD,
    RunsByPlace,
    find_convergence_of,
    list_column,
    list_megabytes,
    list_seconds,
)

Pair = tuple[RunRecord, RunRecord]  # FedCD's run and FedAvg's of the same seed
# What counts until convergence: two clocks, and what travels.
CLOCKS: Mapping[str, Callable[[RunRecord], list[float]]] = {
    "real_s": list_seconds,
    "virtual_s": lambda run: list_column(run, VIRTUAL_TIME_S),
    "megabytes": list_megabytes,
}


PER_ROUND = ("mb_per_round", "last_mb_per_round", "s_per_round")  # measures of which the overhead is


class Cost(NamedTuple):
    """What a run spends to convergence, or to its end.

    Attributes:
      amount: by one of CLOCKS.
      round_num: by whose end it is spent.
      has_converged: whether it is the cost of convergence; else convergence costs more than that.
      is_capped: whether it counts as such all the same: FedAvg's after CAP rounds, as in the paper.
    """

    amount: float
    round_num: int
    has_converged: bool
    is_capped: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether it counts as the cost of convergence."""
        return self.has_converged or self.is_capped

    def format(self) -> str:
        """The amount, "> n" where convergence costs more."""
        return f"{'' if self.has_converged else '> '}{self.amount:.0f}"


def compute_cost(run: RunRecord, clock: str) -> Cost | None:
    """What a run spends to convergence, or to its end; None if it does not say."""
    totals, converged = CLOCKS[clock](run), find_convergence_of(run)
    if not totals:
        return None
    is_capped = math.isinf(converged) and run.flags["algo"] == FEDAVG and len(totals) >= CAP
    round_num = int(min(converged, CAP if is_capped else len(totals)))
    return Cost(totals[round_num - 1], round_num, math.isfinite(converged), is_capped)


def is_decided(first: Cost, second: Cost) -> bool:
    """Whether two costs say which run spends less to convergence.

    If one run alone converges, it must do so within the rounds of the other, and for less than these cost.
    """
    if not (first.has_converged or second.has_converged):
        return False
    if first.is_exact and second.is_exact:
        return True
    exact, bound = (first, second) if first.is_exact else (second, first)
    return exact.round_num <= bound.round_num and exact.amount < bound.amount


def compare_costs(pair: Pair) -> Iterator[tuple[RunRecord, str, float]]:
    """(run, clock, what it spends) of both runs; infinite, a tie, where that does not decide who spends less.

    What a run spends that does not converge stands for convergence, which costs more.
    """
    for clock in CLOCKS:
        costs = [compute_cost(run, clock) for run in pair]
        if None not in costs:
            is_known = is_decided(*costs)
            for run, cost in zip(pair, costs, strict=True):
                yield run, clock, cost.amount if is_known else math.inf


def pair_runs(by_place: RunsByPlace, place: Place) -> list[Pair]:
    """FedCD's runs of a place and FedAvg's beside them, by the seeds that both have."""
    both = [{run.flags["seed"]: run for run in by_place.get(place._replace(algo=a), ())} for a in (FEDCD, FEDAVG)]
    return [(both[0][seed], both[1][seed]) for seed in sorted(both[0].keys() & both[1].keys())]


def compute_ratios(pair: Pair, find: Callable[[RunRecord, str], float | None]) -> Iterator[tuple[str, float]]:
    """(measure, FedCD's over FedAvg's) of what a round takes, by `mb_per_round_ratio` and the like.

    Args:
      pair: two runs.
      find: (run, measure) -> its value, None if it has none.
    """
    for name in PER_ROUND:
        numerator, denominator = (find(run, name) for run in pair)
        if numerator is not None and denominator:
            yield f"{name}_ratio", numerator / denominator


def format_costs(runs: Iterable[RunRecord], clock: str) -> str:
    """What each run spends to convergence, "> n" if it ends after n without it."""
    costs = [compute_cost(run, clock) for run in runs]
    return ", ".join("" if cost is None else cost.format() for cost in costs)


def format_ratios(pairs: Iterable[Pair], clock: str) -> str:
    """FedCD's costs over FedAvg's: mean and deviation, or one by one where runs end before they converge."""
    costs = [tuple(compute_cost(run, clock) for run in pair) for pair in pairs]
    costs = [pair for pair in costs if None not in pair]
    if all(cost.is_exact for pair in costs for cost in pair):
        ratios = [first.amount / second.amount for first, second in costs]
        return show(dict(enumerate(ratios)), "ratio", absent="")
    texts = [_format_ratio(*pair) for pair in costs]
    return texts[0] if len(set(texts)) == 1 else "; ".join(texts)


def _format_ratio(fedcd: Cost, fedavg: Cost) -> str:
    ratio = f"{fedcd.amount / fedavg.amount:.2f}"
    if not (fedcd.has_converged or fedavg.has_converged):
        return "neither converges"
    if fedcd.is_exact and fedavg.is_exact:
        return ratio
    if fedcd.is_exact:
        return f"< {ratio}, FedAvg stopped after {fedavg.round_num} rounds"
    return f"> {ratio}, FedCD stopped after {fedcd.round_num} rounds"
