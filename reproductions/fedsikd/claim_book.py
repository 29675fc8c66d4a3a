"""What the rows of the FedSiKD paper's claims share: names, texts and patterns of comparison."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reproductions.engine.claim_rows import Book, Compare
from reproductions.engine.claims import Claim
from reproductions.engine.comparisons import Results, Sum
from reproductions.engine.conditions import Condition
from reproductions.fedsikd.measures import (
    ALPHAS,
    AXES,
    BUDGET_ROUNDS,
    EPSILONS,
    FIRST_ROUNDS,
    HAR,
    HAR_WINDOWS,
    LAST_ROUND,
    MNIST,
    NAMES,
    NO_NOISE,
)

DATA, STATISTICS = AXES["data"], AXES["statistics"]
ABLATIONS = {
    "fedsikd_k1": "FedSiKD with k = 1",
    "fedsikd_w1": "FedSiKD with w = 1",
    "fedsikd_indices": "FedSiKD with k by the three indices",
    "fedsikd_per_feature": "FedSiKD with statistics of each feature",
}
PRIVATE = {
    f"{kind}_{epsilon}": "without noise" if epsilon == NO_NOISE else f"epsilon {epsilon}"
    for kind in STATISTICS
    for epsilon in EPSILONS
}
ALGOS = {**NAMES, "control": "random clusters of the same sizes", **ABLATIONS, **PRIVATE}
METRICS = {
    "test_accuracy": "accuracy",
    "client_test_accuracy": "accuracy on own splits",
    "test_loss": "loss",
    "drift_ratio": "drift",
    "fluctuation": "fluctuation",
    "rounds_to_accuracy": "rounds",
    "megabytes_to_accuracy": "MB",
    "equal_bytes_accuracy": "accuracy at equal bytes",
}
BOOK = Book(
    at={"round": BUDGET_ROUNDS, "metric": "test_accuracy"},
    names={"dataset": DATA, "algo": ALGOS, "metric": METRICS},
    texts={
        1: "{0.algo} {0} ({0.dataset}, alpha {0.setting}, round {0.round})",
        2: "{0.algo} {0}, {1.algo} {1} ({0.dataset}, alpha {0.setting}, round {0.round})",
        4: "{0.algo} {1} to {0}, {2.algo} {3} to {2} ({0.dataset}, alpha {0.setting}, rounds {1.round} to {0.round})",
    },
)
THEN = "{0.algo} {1}, then {0} ({0.dataset}, alpha {0.setting}, rounds {1.round} and {0.round})"  # of a change
OTHERS, UNCLUSTERED = ("fl_hc", "random_cluster", "fedavg"), ("fl_hc", "fedavg")


def per_data(
    section: str,
    words: str,
    rule: str,
    compare: Compare,
    *,
    mnist: Iterable[str] = (),
    har: Iterable[str] = (),
    is_last: bool = False,
    **more: Any,
) -> Iterator[Claim]:
    """A claim on MNIST and on HAR at each of these alphas; in the words {data} and {alpha} are the names of both.

    Its round is the last one if `is_last`, else the fifth.
    """
    inputs = [(dataset, alpha) for alpha in har for dataset in (HAR, HAR_WINDOWS)]
    for dataset, alpha in [*((MNIST, alpha) for alpha in mnist), *inputs]:
        if dataset != HAR_WINDOWS or alpha in ALPHAS[:2]:  # those with experiments
            at = {"dataset": dataset, "setting": alpha, "round": LAST_ROUND[dataset] if is_last else BUDGET_ROUNDS}
            yield BOOK.claim(section, words.format(data=DATA[dataset], alpha=alpha), rule, compare, **at, **more)


def above(
    runs: Results, rivals: Iterable[str] = OTHERS, mine: str = "fedsikd", by: float = 0, **at: Any
) -> list[Condition]:
    """One is above each of these, by more than so much."""
    return [runs(mine, **at) > runs(rival, **at) + by for rival in rivals]


def above_early(runs: Results, rivals: Iterable[str] = OTHERS, **at: Any) -> list[Condition]:
    """FedSiKD is above each of these in rounds 1 to 5."""
    return [each for r in FIRST_ROUNDS for each in above(runs, rivals, round=r, **at)]


def below(runs: Results, rivals: Iterable[str] = OTHERS) -> list[Condition]:
    """FedSiKD is below each of these."""
    return [runs("fedsikd") < runs(rival) for rival in rivals]


def apart(runs: Results, algo: str, low: float, high: float, **at: Any) -> Condition:
    """One has between these more than FedSiKD; negative: less."""
    return runs(algo, **at).between(runs("fedsikd", **at) + low, runs("fedsikd", **at) + high)


def near(runs: Results, margin: float, printed: dict[int, float]) -> list[Condition]:
    """FedSiKD has these numbers, by round, but for a margin."""
    return [runs("fedsikd", round=r).near(value, margin) for r, value in printed.items()]


def change(runs: Results, algo: str, metric: str = "", since: int = 1, **at: Any) -> Sum:
    """By how much one changes since a round."""
    return runs(algo, metric, **at) - runs(algo, metric, **{**at, "round": since})


def gains_more(runs: Results) -> list[Condition]:
    """FedSiKD gains more since round 1 than each of the others."""
    return [change(runs, "fedsikd") > change(runs, other) for other in OTHERS]


def hardly_fall(runs: Results) -> list[Condition]:
    """The others' losses fall by less than 0.1 since round 1."""
    return [(change(runs, other) > -0.1).told(THEN) for other in OTHERS]


def exceeds(words: str, points: int, alpha: str, **alphas: Sequence[str]) -> Iterator[Claim]:
    """The lead that the abstract has, which may be that of the last round or of the fifth."""
    for when in ("last round", "round 5"):
        yield from per_data(
            "abstract",
            f'{{data}}, highly skewed: FedSiKD achieves "higher accuracy, exceeding by {words}" ({when})',
            f"leads each of the other three by more than {points} points at alpha {alpha}",
            lambda runs: above(runs, by=points / 100),
            is_last=when == "last round",
            **alphas,
        )
