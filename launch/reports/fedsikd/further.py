"""Our further comparisons of tuned runs: FedSiKD against each of the others alone, at equal rounds and equal bytes.

Control and ablations move as many bytes a round as FedSiKD, but for what the statistics take, so that equal rounds are
equal bytes for them. The exception is w = 1, which has no teacher to move.
"""

from launch.reports.claims import Claim
from launch.reports.collection import Cell
from launch.reports.conditions import exceeds
from launch.reports.fedsikd.comparisons import ACCURACY, OTHERS, cell_of
from launch.reports.fedsikd.measures import (
    ABLATIONS,
    BUDGET_ROUNDS,
    CONTROL,
    EQUAL_BYTES_ACCURACY,
    MNIST,
    NAMES,
    NO_DISTILLATION,
)

COMPARED_ALPHAS = ("0.1", "0.5")
RIVALS = {**{algo: NAMES[algo] for algo in OTHERS}, CONTROL: "the control, random clusters of the same sizes"}
EQUAL_BYTES = "equal bytes"


def _compare(cell: Cell, other: str, name: str, when: str) -> Claim:
    unit = "" if cell.metric == ACCURACY else " %"
    text = f"FedSiKD {{0}}{unit}, {name.split(',')[0]} {{1}}{unit}"
    condition = exceeds(cell, cell._replace(algo=other), text)
    return Claim("", f"MNIST, alpha {cell.setting}, {when}: FedSiKD above {name}", "more accurate", (condition,))


def _list_further() -> list[Claim]:
    claims = []
    for alpha in COMPARED_ALPHAS:
        at_five = cell_of(MNIST, alpha, BUDGET_ROUNDS)
        at_equal_bytes = at_five._replace(metric=EQUAL_BYTES_ACCURACY)
        claims += [_compare(at_five, other, name, f"round {BUDGET_ROUNDS}") for other, name in RIVALS.items()]
        claims += [_compare(at_equal_bytes, other, NAMES[other], EQUAL_BYTES) for other in OTHERS]
    at_five = cell_of(MNIST, "0.1", BUDGET_ROUNDS)
    at_equal_bytes = at_five._replace(metric=EQUAL_BYTES_ACCURACY)
    claims += [_compare(at_five, algo, f"FedSiKD with {name}", "round 5") for algo, name in ABLATIONS.items()]
    name = f"FedSiKD with {ABLATIONS[NO_DISTILLATION]}"
    return [*claims, _compare(at_equal_bytes, NO_DISTILLATION, name, EQUAL_BYTES)]


FEDSIKD_FURTHER: tuple[Claim, ...] = tuple(_list_further())
