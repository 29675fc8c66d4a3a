"""Who is ahead of whom in a contest: one family of pairs, one verdict a pair, and one best method.

What is asked is whether the best method is ahead of each other one, and what was predicted before the first run. It is
asked twice, after the planned seeds and after the further ones, each time with half the error. Imports no TensorFlow.
"""

import types
from collections.abc import Collection, Mapping
from typing import NamedTuple

from launch.pages.comparison.pairs import AHEAD, BEHIND, Pair, find_best, judge_pairs
from launch.pages.comparison.seed_statistics import ERROR_RATE, LEAST_SEEDS, UNDECIDED, BySeed

SYSTEMS = {"fedsikd": "FedSiKD", "fedcd": "FedCD", "async_periodic": "asynchronous FL", "amfl_p": "AMFL-P"}  # the four
REFERENCES = ("oracle",)  # which know the groups of the clients, as no method does, and are no rivals
GROUPS = ("ifca", "cfl", "fl_hc", "fedcd")  # which part the clients into groups by what they learn
BEST, BEST_GROUP, BEST_PLAIN = "best", "best of the groups", "best without steps at the end"
STEPS_AT_END = "fine-tuning"  # as the title of a method ends that has them
RATE = ERROR_RATE / 2
_TURNED = {AHEAD: BEHIND, BEHIND: AHEAD, UNDECIDED: UNDECIDED}


class Judged(NamedTuple):
    """A contest whose pairs have been judged.

    Attributes:
      values: by method and seed, without `REFERENCES`; a larger one is better.
      best: the method that is compared with all others.
      pairs: by both names, the best one first.
      names: what BEST, BEST_GROUP and BEST_PLAIN stand for.
      floor: what is reached without a model, a share of 1; None if that is not known.
    """

    values: Mapping[str, BySeed]
    best: str
    pairs: Mapping[tuple[str, str], Pair]
    names: Mapping[str, str]
    floor: float | None = None

    def find(self, first: str, second: str) -> str:
        """The verdict of the first method beside the second: AHEAD, BEHIND or UNDECIDED; "" if it is the same one."""
        first, second = (self.names.get(name, name) for name in (first, second))
        if first == second:
            return ""
        if pair := self.pairs.get((first, second)):
            return pair.verdict
        return _TURNED[self.pairs[second, first].verdict]

    @property
    def alike(self) -> tuple[str, ...]:
        """The methods that cannot be told from the best; of those with too few seeds nothing is said."""
        undecided = (name for name in self.values if self.find(BEST, name) == UNDECIDED)
        return tuple(name for name in undecided if not self.has_too_few_seeds(name, BEST))

    def has_too_few_seeds(self, first: str, second: str) -> bool:
        """Whether two methods share fewer seeds than can decide anything."""
        first, second = (self.values[self.names.get(name, name)] for name in (first, second))
        return len(first.keys() & second.keys()) < LEAST_SEEDS


def judge(
    values: Mapping[str, BySeed],
    asked: Collection[tuple[str, str]] = (),
    titles: Mapping[str, str] = types.MappingProxyType({}),
    floor: float | None = None,
) -> Judged:
    """Judges a contest.

    Args:
      values: results on fresh seeds by method and seed.
      asked: further pairs, whose names may be those that `Judged.names` has; others are no methods of the contest.
      titles: of methods, by name; they say which have steps at the end.
      floor: see `Judged`.

    Raises:
      ValueError: no method has a result.
    """
    values = {name: by_seed for name, by_seed in values.items() if by_seed and name not in REFERENCES}
    # Those with further seeds were not told apart by the planned ones, and were told from all others.
    most = max(map(len, values.values()))
    best = find_best({name: by_seed for name, by_seed in values.items() if len(by_seed) == most})
    names = {BEST: best}
    plain = [name for name in values if not titles.get(name, "").endswith(STEPS_AT_END)]
    for name, methods in {BEST_GROUP: GROUPS, BEST_PLAIN: plain}.items():
        if found := {method: values[method] for method in methods if method in values}:
            names[name] = find_best(found)
    pairs = [(best, other) for other in values if other != best]
    for first, second in asked:
        pair = names.get(first, first), names.get(second, second)
        is_new = pair[0] != pair[1] and pair not in pairs and pair[::-1] not in pairs
        if is_new and set(pair) <= values.keys():
            pairs.append(pair)
    judged = judge_pairs(pairs, values, RATE)
    return Judged(values, best, {(pair.first, pair.second): pair for pair in judged}, names, floor)
