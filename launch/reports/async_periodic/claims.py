"""What the paper on asynchronous FL with periodic aggregation claims in words, each with the rule that decides it.

The paper prints curves without numbers. Results are in per cent and points. The rules were written before any runs were
compared. Combinations are compared by the mean over the last aggregations, since single ones fluctuate.
"""

from launch.reports.claims import Claim
from launch.reports.collection import Cell
from launch.reports.conditions import Condition, exceeds, mean_exceeds
from launch.settings.algorithms import ALGORITHMS

CASES = {"iid": "IID", "shards": "non-IID", "persistent": "non-IID, slow devices with digits of their own"}
COMPARED_CASES = ("iid", "shards")  # Figures 3 and 4
POLICIES = ("random", "significance", "frequency")
WEIGHTINGS = {"equal": "equal weights", "fresh": "fresher favoured", "old": "older favoured"}
FEDAVG = "synchronous"
KINDS = {**WEIGHTINGS, FEDAVG: ALGORITHMS["fedavg"].title}
NEVER_WAITING = {algo: ALGORITHMS[algo].title for algo in ("fed_async", "buffered")}

LAST_ROUND = 40
TIME_BUDGET = LAST_ROUND / 4  # T_max: when an asynchronous run ends, since its periods are T_max / 4 long
NEVER_WAITING_UPDATES = 2100  # when a run of FedAsync or FedBuff ends
UPLOAD_BUDGET = 1150  # updates: fewer than an asynchronous run sends in all, LAST_ROUND aggregations of R = 30
LAST_AGGREGATIONS = 10

FINAL, LAST_MEAN, AT_TIME, AT_UPLOADS, FLUCTUATION = (
    "final", "mean_of_last", "at_equal_time", "at_equal_uploads", "fluctuation"
)  # fmt: skip
MEASURES = {
    FINAL: f"at aggregation {LAST_ROUND}",
    LAST_MEAN: f"mean over the last {LAST_AGGREGATIONS} aggregations",
    AT_TIME: f"at {TIME_BUDGET:g} T_max",
    AT_UPLOADS: f"after {UPLOAD_BUDGET:,} updates",
    FLUCTUATION: f"fluctuation over the last {LAST_AGGREGATIONS}",
}


def make_cell(case: str, policy: str, kind: str, metric: str = FINAL) -> Cell:
    """A result of a policy and a kind: a weighting of the asynchronous runs, or FedAvg."""
    return Cell(case, policy, kind, LAST_ROUND, metric)


def _exceeds(first: Cell, second: Cell) -> Condition:
    names = [f"{cell.setting}, {KINDS[cell.algo]}" for cell in (first, second)]
    return exceeds(first, second, f"{names[0]} {{0}} against {names[1]} {{1}}")


def _list_cells(case: str, policy: str, metric: str = FINAL) -> list[Cell]:
    return [make_cell(case, policy, kind, metric) for kind in WEIGHTINGS]


def _beats_fedavg(case: str, metric: str, where: str) -> Claim:
    conditions = tuple(
        mean_exceeds(
            _list_cells(case, policy, metric),
            [make_cell(case, policy, FEDAVG, metric)],
            (f"{policy}: {', '.join(WEIGHTINGS)}", KINDS[FEDAVG]),
        )
        for policy in POLICIES
    )
    return Claim(
        "IV",
        f"asynchronous FL generally outperforms FedAvg, {CASES[case]}, at equal {where}",
        f"accuracy {MEASURES[metric]}: with each policy the mean over the three weightings is above FedAvg",
        conditions,
    )


def _fresh_random_is_best(case: str) -> Claim:
    best = make_cell(case, "random", "fresh", LAST_MEAN)
    others = [cell for policy in POLICIES for cell in _list_cells(case, policy, LAST_MEAN) if cell != best]
    return Claim(
        "IV",
        f"random scheduling that favours fresher updates is superior to the other combinations, {CASES[case]}",
        f"accuracy, {MEASURES[LAST_MEAN]}, above that of each of the other eight",
        tuple(_exceeds(best, other) for other in others),
    )


def _significance_fluctuates_most(case: str) -> Claim:
    cells = {policy: _list_cells(case, policy, FLUCTUATION) for policy in POLICIES}
    return Claim(
        "IV",
        f"scheduling by significance leads to fluctuating accuracy, {CASES[case]}",
        "with each weighting it fluctuates more than random scheduling and scheduling by frequency",
        tuple(
            _exceeds(first, second)
            for policy in ("random", "frequency")
            for first, second in zip(cells["significance"], cells[policy], strict=True)
        ),
    )


def _frequency_is_worst(case: str) -> Claim:
    kinds, cells = ", ".join(WEIGHTINGS), {policy: _list_cells(case, policy, LAST_MEAN) for policy in POLICIES}
    return Claim(
        "IV",
        f"scheduling by frequency is generally the worst, {CASES[case]}",
        f"accuracy, {MEASURES[LAST_MEAN]}: its mean over the three weightings is below that of both other policies",
        tuple(
            mean_exceeds(cells[policy], cells["frequency"], (f"{policy}: {kinds}", "frequency"))
            for policy in ("random", "significance")
        ),
    )


OLDER_CAN_WIN = Claim(
    "IV",
    "favouring older updates sometimes performs better, where slow devices hold data of their own",
    f"random scheduling, accuracy, {MEASURES[LAST_MEAN]}, above that of equal weights and of fresher favoured",
    tuple(
        _exceeds(*(make_cell("persistent", "random", each, LAST_MEAN) for each in ("old", kind)))
        for kind in ("equal", "fresh")
    ),
)
ASYNC_CLAIMS = (
    *(
        _beats_fedavg(case, metric, where)
        for metric, where in ((AT_TIME, "virtual time"), (FINAL, "aggregations"), (AT_UPLOADS, "uploads"))
        for case in COMPARED_CASES
    ),
    *(claim(case) for claim in (_fresh_random_is_best, _significance_fluctuates_most, _frequency_is_worst)
      for case in COMPARED_CASES),
    OLDER_CAN_WIN,
)  # fmt: skip
