"""Pairs of methods on a problem, judged by seed: Student's t, and Holm's correction over what is asked at once.

Two families a problem, each fixed before its runs: every one of the four systems against every rival, which decides
whether one of them wins; and the method with the best mean against each of the others, which decides which of them are
as good a choice. The second is asked of the seeds that have named the best, so it says rather too often that it leads.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.papers.engine.equivalence import Difference, compare_by_seed
from launch.papers.engine.intervals import LEAST_SEEDS, compute_p_value, correct_by_holm, is_constant
from launch.papers.engine.tables import BySeed

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
    return max(values, key=lambda method: sum(values[method].values()) / len(values[method]))


def list_winners(pairs: Sequence[Pair], systems: Sequence[str]) -> list[str]:
    """The systems that are ahead of every method that they meet."""
    winners = []
    for system in systems:
        verdicts = [pair.verdict for pair in pairs if pair.first == system]
        verdicts += [{AHEAD: BEHIND, BEHIND: AHEAD}.get(p.verdict, p.verdict) for p in pairs if p.second == system]
        if verdicts and set(verdicts) == {AHEAD}:
            winners.append(system)
    return winners
