"""Our further comparisons: tuned FedSiKD against each of the others alone, and FedSiKD with and without noise.

Tuned runs are compared at equal rounds and at equal bytes. Control and ablations move as many bytes a round as FedSiKD,
but for what the statistics take, so that equal rounds are equal bytes for them. The exception is w = 1, which has no
teacher to move.
"""

from launch.papers.engine.claims import Claim
from launch.papers.engine.collection import Cell
from launch.papers.engine.conditions import exceeds
from launch.papers.fedsikd.comparisons import ACCURACY, OTHERS, cell_of
from launch.papers.fedsikd.measures import (
    ABLATIONS,
    BUDGET_ROUNDS,
    CONTROL,
    EPSILONS,
    EQUAL_BYTES_ACCURACY,
    MNIST,
    NAMES,
    NO_DISTILLATION,
    NO_NOISE,
    STATISTICS,
    name_private,
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


def _compare_noise(statistics_kind: str, epsilon: str) -> Claim:
    """What the noise costs: the same statistics without any, on the same split and from the same weights."""
    cell = cell_of(MNIST, "0.1", BUDGET_ROUNDS)
    without, noisy = (cell._replace(algo=name_private(statistics_kind, each)) for each in (NO_NOISE, epsilon))
    condition = exceeds(without, noisy, f"without noise {{0}}, epsilon {epsilon} {{1}}")
    text = f"{statistics_kind.replace('_', ' ')}: without noise above epsilon {epsilon}"
    return Claim("", text, "more accurate", (condition,))


FEDSIKD_FURTHER: tuple[Claim, ...] = tuple(_list_further())
# A family of their own, by statistics and epsilon.
NOISE_COMPARISONS: dict[tuple[str, str], Claim] = {
    (kind, epsilon): _compare_noise(kind, epsilon) for kind in STATISTICS for epsilon in EPSILONS if epsilon != NO_NOISE
}
