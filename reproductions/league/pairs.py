"""Pairs of methods on a problem, judged by seed: Student's t, and Holm's correction over what is asked at once.

Three questions a problem. Is one of the four systems ahead of all others? Which method is ahead in each pair of a
system and another? From which others can the method with the best mean be told? The last is asked of the seeds that
have named the best, so it says rather too often that it leads.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reproductions.engine.equivalence import Difference, compare_by_seed
from reproductions.engine.intervals import LEAST_SEEDS, compute_p_value, correct_by_holm, is_constant
from reproductions.engine.tables import BySeed, compute_mean

LEVEL = 0.05
AHEAD, BEHIND, UNDECIDED = "ahead", "behind", "undecided"


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


def judge_pairs(pairs: Sequence[tuple[str, str]], values: Mapping[str, BySeed]) -> list[Pair]:
    """A family of pairs, in the order given.

    Args:
      pairs: names of methods.
      values: accuracies by method and seed.
    """
    differences = [compare_by_seed(values[first], values[second]) for first, second in pairs]
    raw = [_compute_p_value(values[first], values[second]) for first, second in pairs]
    adjusted = iter(correct_by_holm([each for each in raw if each is not None]))
    p_values = [None if each is None else next(adjusted) for each in raw]
    return [
        Pair(first, second, difference, p_value, _judge(difference, p_value))
        for (first, second), difference, p_value in zip(pairs, differences, p_values, strict=True)
    ]


def _compute_p_value(first: BySeed, second: BySeed) -> float | None:
    """Of no difference; where all seeds give the same one there is nothing to estimate by: 0, or 1 for a tie."""
    values = [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
    if len(values) < LEAST_SEEDS:
        return None
    if is_constant(values):
        return float(abs(values[0]) < 1e-9)
    return compute_p_value(values, 0.0)


def _judge(difference: Difference, p_value: float | None) -> str:
    if p_value is None or p_value >= LEVEL:
        return UNDECIDED
    return AHEAD if difference.mean > 0 else BEHIND


def list_system_pairs(methods: Sequence[str], systems: Sequence[str]) -> list[tuple[str, str]]:
    """Every system that was run against every other method; two systems meet once."""
    found = [system for system in systems if system in methods]
    pairs = [(system, other) for system in found for other in methods if other != system]
    return [(a, b) for a, b in pairs if not (b in found and found.index(b) < found.index(a))]


def find_best(values: Mapping[str, BySeed]) -> str:
    """The method with the highest mean, the first of equals."""
    return max(values, key=lambda method: compute_mean(values[method]))


def list_winners(values: Mapping[str, BySeed], systems: Sequence[str]) -> list[str]:
    """The systems that are ahead of every other method, at `LEVEL` over all systems.

    A system wins only if each of its pairs is decided, so the largest of their p-values is that of its win, with no
    correction over them (the intersection-union test, Berger 1982); Holm's is over the systems.
    """
    found = [system for system in systems if system in values]
    p_values = [_compute_win(system, values) for system in found]
    adjusted = correct_by_holm(p_values) if None not in p_values else []
    return [system for system, p_value in zip(found, adjusted, strict=False) if p_value < LEVEL]


def _compute_win(system: str, values: Mapping[str, BySeed]) -> float | None:
    """The p-value of a system's win; None with too few seeds to compute one."""
    own = values[system]
    others = [by_seed for method, by_seed in values.items() if method != system]
    p_values = [_compute_p_value(own, other) for other in others]
    if not p_values or None in p_values:
        return None
    return max(
        p_value if compare_by_seed(own, other).mean > 0 else 1.0
        for p_value, other in zip(p_values, others, strict=True)
    )
