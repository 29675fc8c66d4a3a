"""Pairs of methods, judged by seed: Student's t, and Holm's correction over what is asked at once.

Three questions. Is one of some candidates ahead of all other methods? Which is ahead in each pair of a candidate and
another? From which others can the method with the best mean be told? The last is asked of the seeds that have named the
best, so it says rather too often that it leads.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.pages.comparison.seed_statistics import (
    ERROR_RATE,
    LEAST_SEEDS,
    UNDECIDED,
    BySeed,
    Difference,
    compare_by_seed,
    compute_mean,
    compute_p_value,
    correct_by_holm,
    subtract_by_seed,
)

AHEAD, BEHIND = "ahead", "behind"


class Pair(NamedTuple):
    """Two methods.

    Attributes:
      first, second: their names.
      difference: the first minus the second.
      p_value: Holm's, in its family; None with fewer than three seeds.
      verdict: of the first: AHEAD, BEHIND or UNDECIDED.
    """

    first: str
    second: str
    difference: Difference
    p_value: float | None
    verdict: str


def judge_pairs(
    pairs: Sequence[tuple[str, str]], values: Mapping[str, BySeed], error_rate: float = ERROR_RATE
) -> list[Pair]:
    """A family of pairs, in the order given.

    Args:
      pairs: names of methods.
      values: results by method and seed, of which a larger one is better.
      error_rate: of an error in any of the pairs.
    """
    raw = [_compute_p_value(values[first], values[second]) for first, second in pairs]
    adjusted = iter(correct_by_holm([each for each in raw if each is not None]))
    judged = []
    for (first, second), p_value in zip(pairs, raw, strict=True):
        difference = compare_by_seed(values[first], values[second])
        p_value = None if p_value is None else next(adjusted)
        is_open = p_value is None or p_value >= error_rate
        verdict = UNDECIDED if is_open else AHEAD if difference.mean > 0 else BEHIND
        judged.append(Pair(first, second, difference, p_value, verdict))
    return judged


def _compute_p_value(first: BySeed, second: BySeed) -> float | None:
    """Of no difference; None with too few seeds to compute one."""
    values = list(subtract_by_seed(first, second).values())
    return compute_p_value(values) if len(values) >= LEAST_SEEDS else None


def list_pairs(methods: Sequence[str], candidates: Sequence[str]) -> list[tuple[str, str]]:
    """Every candidate that is among the methods with every other method; two candidates meet once."""
    found = [candidate for candidate in candidates if candidate in methods]
    pairs = [(candidate, other) for candidate in found for other in methods if other != candidate]
    return [(a, b) for a, b in pairs if not (b in found and found.index(b) < found.index(a))]


def find_best(values: Mapping[str, BySeed]) -> str:
    """The method with the highest mean, the first of equals."""
    return max(values, key=lambda method: compute_mean(values[method].values()))


def list_winners(values: Mapping[str, BySeed], candidates: Sequence[str]) -> list[str]:
    """The candidates that are ahead of every other method, at `ERROR_RATE` over all candidates.

    A candidate wins only if each of its pairs is decided, so the largest of their p-values is that of its win, with no
    correction over them (the intersection-union test, Berger 1982); Holm's is over the candidates.
    """
    found = [candidate for candidate in candidates if candidate in values]
    p_values = [_compute_win(candidate, values) for candidate in found]
    adjusted = correct_by_holm(p_values) if None not in p_values else []
    return [candidate for candidate, p_value in zip(found, adjusted, strict=False) if p_value < ERROR_RATE]


def _compute_win(method: str, values: Mapping[str, BySeed]) -> float | None:
    """The p-value of a method's win over all others; None with too few seeds to compute one."""
    own = values[method]
    others = [by_seed for other, by_seed in values.items() if other != method]
    p_values = [_compute_p_value(own, other) for other in others]
    if not p_values or None in p_values:
        return None
    return max(
        p_value if compare_by_seed(own, other).mean > 0 else 1.0
        for p_value, other in zip(p_values, others, strict=True)
    )
