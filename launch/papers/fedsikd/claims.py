"""What the FedSiKD paper claims, each claim with the rule that decides it, and what no run can decide.

The text of the paper that we have has lost most of the alphas. They are read here from the tables that a sentence is
about, and those of the abstract (0.1 for HAR, 0.5 for MNIST, "respectively") from the version on arXiv, 2402.09095.
Sentences that say nothing measurable are left out. The paper prints 561 features for HAR and the authors' code has the
windows of the sensors, so a claim on HAR is put to either input, one beside the other.
"""

from collections.abc import Callable
from typing import NamedTuple

from launch.papers.engine.claims import Claim
from launch.papers.engine.collection import PRINTED, Cell
from launch.papers.engine.conditions import Condition, exceeds
from launch.papers.engine.verdicts import Untestable
from launch.papers.fedsikd import claims_on_all_rounds, claims_on_first_rounds
from launch.papers.fedsikd.comparisons import EARLY, OTHERS, beat, cell_of, changes, last_of, say_setting
from launch.papers.fedsikd.measures import (
    AUTHORS,
    BUDGET_ROUNDS,
    CONTROL,
    DATA_NAMES,
    DRIFT_RATIO,
    FIRST_ROUNDS,
    HAR_INPUTS,
    MEGABYTES_TO_ACCURACY,
    MNIST,
    NAMES,
    ROUNDS_TO_ACCURACY,
    RUN_ALPHAS,
)

HIGHLY_SKEWED = {MNIST: ("0.1", "0.5"), **dict.fromkeys(HAR_INPUTS, ("0.1",))}  # in the abstract, V-B and V-C
TARGET = "the accuracy that the paper prints for FedSiKD after round 5"


class Cost(NamedTuple):
    """A model of Tables III and IV: its weights, and the multiply-accumulates of one inference."""

    parameters: int
    multiply_accumulates: int


# Student and teacher; a test computes them from the Keras models.
COSTS = {
    "mnist": (Cost(19_114, 358_528), Cost(95_242, 1_699_456)),
    "har": (Cost(4_670_854, 11_605_440), Cost(4_720_262, 18_589_824)),
    "har_windows": (Cost(1_100_678, 2_732_800), Cost(1_151_622, 4_416_256)),
}
STUDENT_EPOCHS = {"mnist": 6, "har": 3, "har_windows": 3}  # of the flagfiles


def _claim_lead(dataset: str, alpha: str, lead: float, rise: float) -> list[Claim]:
    """The abstract on a data set; each of its sentences gives the number of HAR, then that of MNIST."""
    name = DATA_NAMES[dataset]
    exceeding, rising = (f"{100 * share:.0f}%" for share in (lead, rise))
    if dataset == MNIST:
        exceeding, rising = f"[...] {exceeding}", f"[...] {rising} increase"
    else:
        rising = f"{rising} [...] increase"
    text = f'{name}, highly skewed: FedSiKD achieves "higher accuracy, exceeding by {exceeding}"'
    rule = f"leads each of the other three by more than {100 * lead:.0f} points at alpha {alpha}"
    return [
        Claim("abstract", f"{text} (last round)", rule, beat([last_of(dataset, alpha)], OTHERS, lead)),
        Claim("abstract", f"{text} (round 5)", rule, beat([cell_of(dataset, alpha, 5)], OTHERS, lead)),
        Claim(
            "abstract",
            f'{name}: "a {rising} in accuracy within the first five rounds"',
            f"at alpha 0.1 by more than {100 * rise:.0f} points from round 1 to 5",
            (changes(cell_of(dataset, "0.1", 5), 1, above=rise),),
        ),
    ]


def _claim_savings(dataset: str, alpha: str) -> list[Claim]:
    """Section V-D on rounds and bytes."""
    place = f"{DATA_NAMES[dataset]}, alpha {alpha}"
    return [
        Claim(
            "V-D",
            f'{place}: "FedSiKD achieves better results with fewer communication rounds"',
            f"rounds to {TARGET}, within five rounds: fewer than each of the others",
            _need_less(cell_of(dataset, alpha, BUDGET_ROUNDS, ROUNDS_TO_ACCURACY), "rounds"),
        ),
        Claim(
            "V-D",
            f'{place}: "fewer communication rounds, reducing overhead and bandwidth usage"',
            f"megabytes down and up to {TARGET}, within what FedSiKD moves in five rounds: fewer than each of the "
            "others; a run that is too short to spend as much gives no number",
            _need_less(cell_of(dataset, alpha, BUDGET_ROUNDS, MEGABYTES_TO_ACCURACY), "MB"),
        ),
    ]


def _need_less(cell: Cell, unit: str) -> tuple[Condition, ...]:
    return tuple(
        exceeds(
            cell._replace(algo=other),
            cell,
            f"{unit}: FedSiKD {{1}}, {NAMES[other]} {{0}} ({say_setting(cell)})",
        )
        for other in OTHERS
    )


def _claim_drift(dataset: str) -> Claim:
    """Eq. (4). Distances to the mean of a group are smaller under any grouping, so chance is what it must beat."""
    cells = [cell_of(dataset, "0.1", round_num, DRIFT_RATIO) for round_num in FIRST_ROUNDS]
    return Claim(
        "IV-B, Eq. (4)",
        f"{DATA_NAMES[dataset]}: the variance within a cluster is below the total variance, since similar clients are "
        "clustered",
        f"drift within clusters over total drift in {EARLY} at alpha 0.1: less than with random clusters of the same "
        "sizes (below 1 it is in any clusters)",
        beat(cells, (CONTROL,)),
    )


def _claim_clusters(dataset: str) -> Claim:
    """Similar members are what distinguishes these clusters, so that random ones of the same sizes are the rival."""
    alphas = HIGHLY_SKEWED[dataset]
    return Claim(
        "V-D",
        f'{DATA_NAMES[dataset]}: "when a global model is clustered with clients that have similar statistical '
        'distributions, it performs better overall"',
        f"accuracy in round {BUDGET_ROUNDS} at alpha {' and '.join(alphas)}: above random clusters of the same sizes",
        beat([cell_of(dataset, alpha, BUDGET_ROUNDS) for alpha in alphas], (CONTROL,)),
    )


def _claim_compute() -> Claim:
    return Claim(
        "I, V-D",
        'students reduce "computational load by avoiding the need to run full layers of deep learning models"',
        "the student has fewer weights and multiplications than its teacher",
        (),
        by_construction=_describe_costs(),
        constructed_in=frozenset(
            {PRINTED, AUTHORS}
        ),  # where a leader trains the teacher; tuned runs may have all do so
    )


def compute_training_share(dataset: str, asked: int) -> float:
    """Multiplications of a student's epochs over those of as many of its teacher's; training takes three inferences.

    Args:
      dataset: of COSTS.
      asked: how often the teacher infers an example for the student in a round.
    """
    student, teacher = (cost.multiply_accumulates for cost in COSTS[dataset])
    training = 3 * STUDENT_EPOCHS[dataset]
    return (training * student + asked * teacher) / (training * teacher)


def _describe_costs() -> str:
    parts = []
    for dataset, costs in COSTS.items():
        shares = [s / t for s, t in zip(*costs, strict=True)]
        shares += [compute_training_share(dataset, asked) for asked in (1, STUDENT_EPOCHS[dataset])]
        parts.append(f"{DATA_NAMES[dataset]} {', '.join(f'{share:.0%}' for share in shares)}")
    return (
        "Student over teacher by Tables III and IV, in weights, in multiplications of an inference, and in those of a "
        "round's training, for which the student asks the teacher once for each example, as here, or in every epoch: "
        f"{'; '.join(parts)}. A cluster's leader trains both. Where all members train the teacher, nothing is saved"
    )


def _put_to_inputs(build: Callable[[str], list[Claim]]) -> list[Claim]:
    """The claims on HAR for both inputs, side by side, without those that have no flagfiles."""
    by_input = [build(dataset) for dataset in HAR_INPUTS]
    return [
        claim
        for pair in zip(*by_input, strict=True)
        for claim in pair
        if all(cell.setting in RUN_ALPHAS[cell.dataset] for cell in claim.cells)
    ]


FEDSIKD_CLAIMS: tuple[Claim, ...] = (
    *_claim_lead(MNIST, "0.5", 0.18, 0.20),
    *_put_to_inputs(lambda dataset: _claim_lead(dataset, "0.1", 0.25, 0.17)),
    *claims_on_all_rounds.list_mnist_claims(),
    *_put_to_inputs(claims_on_all_rounds.list_har_claims),
    *claims_on_first_rounds.list_mnist_claims(),
    *_put_to_inputs(claims_on_first_rounds.list_har_claims),
    *(claim for alpha in HIGHLY_SKEWED[MNIST] for claim in _claim_savings(MNIST, alpha)),
    *_put_to_inputs(lambda dataset: _claim_savings(dataset, *HIGHLY_SKEWED[dataset])),
    _claim_clusters(MNIST),
    *_put_to_inputs(lambda dataset: [_claim_clusters(dataset)]),
    _claim_drift(MNIST),
    *_put_to_inputs(lambda dataset: [_claim_drift(dataset)]),
    _claim_compute(),
)

FEDSIKD_UNTESTABLE: tuple[Untestable, ...] = (
    Untestable(
        "IV-B, Eqs. (3) and (5)",
        "clients' parameters lie closer to the optimum of their cluster than the average lies to it",
        "The optimum of such a network cannot be known, and the proof asks for a convex loss, which no network with "
        "several layers has.",
    ),
    Untestable(
        "IV-B, Eq. (6)",
        "each round brings the loss nearer to its lowest value by a convergence factor",
        "The lowest value of the loss and the convergence factor cannot be known for these networks, and the paper "
        "gives no learning rates.",
    ),
    Untestable(
        "IV-B, Eq. (7)",
        "the clusters bound the error after many rounds",
        "The bound needs strong convexity, which the loss of these networks does not have. The paper gives neither "
        "that constant nor the variance of the gradients.",
    ),
    Untestable(
        "V-D",
        '"students being built with fewer layers"',
        "Tables III and IV give student and teacher the same layers, the student's with fewer filters.",
    ),
)
