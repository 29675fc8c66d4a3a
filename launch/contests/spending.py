"""What a run may spend, and what it will take: by FedAvg on the same seed, and by runs before it.

Imports no TensorFlow.
"""

import statistics
from collections.abc import Collection
from typing import NamedTuple

from launch.contests.journal import CALIBRATION, FRESH, NO_TRIAL, RUNG_0, RUNG_1, Ended, Journal, Key
from launch.contests.methods import ALONE, FEDERATED_ROLES, REFERENCE, Method
from launch.contests.plan import CALIBRATION_ROUNDS, MOST_ROUNDS_FOR_ONE, MOST_SECONDS_FOR_ONE, ROUNDS_ALONE
from launch.contests.problem import Limits

# What all federated methods may spend as much of as FedAvg.
VIRTUAL_S, BYTES = "most_virtual_s", "most_bytes"
# Tables hold six digits, and what takes exactly as long as FedAvg has as many rounds as it.
_SLACK = 1.001


class _Spent(NamedTuple):
    num_bytes: float
    virtual_s: float


class Spending:
    """Limits and estimates by what the journal knows.

    Args:
      journal: of the contest.
      methods: all.
      equal: of `VIRTUAL_S` and `BYTES`, those that limit all alike.
      limits_alone: whether clients that learn alone may spend as much time as FedAvg, too, and not as many rounds as
        `ROUNDS_ALONE` says.
    """

    def __init__(
        self, journal: Journal, methods: Collection[Method], equal: Collection[str], limits_alone: bool = False
    ):
        self._journal, self._equal = journal, equal
        self._limited = {*FEDERATED_ROLES, *([ALONE] if limits_alone and VIRTUAL_S in equal else [])}
        self._methods = {method.name: method for method in methods}

    @property
    def limits_alone(self) -> bool:
        """Whether clients that learn alone may spend what the others may."""
        return ALONE in self._limited

    @property
    def words(self) -> str:
        """What every federated method may have."""
        limits = {VIRTUAL_S: "as much device time", BYTES: "as many bytes"}
        return " and ".join(words for name, words in limits.items() if name in self._equal) or "as many rounds"

    def get_rounds(self, key: Key) -> int:
        """FedAvg's rounds in whose place a run is."""
        if key.stage == CALIBRATION:
            return CALIBRATION_ROUNDS
        plan = self._journal.planned.plan
        # A short run of a method with rounds of its own is as long as a whole one.
        is_whole = key.method in self._journal.whole or self._methods[key.method].rounds
        if key.stage == RUNG_0 and not is_whole:
            return plan.count_rounds(plan.first_share)
        return plan.rounds

    def limit(self, key: Key) -> Limits:
        """What a run may spend. Where all may spend alike, FedAvg has to be measured on its seed: see `is_known`."""
        rounds, method = self.get_rounds(key), self._methods[key.method]
        if method.role == ALONE and not self.limits_alone:
            return Limits(method.rounds or ROUNDS_ALONE * rounds)
        if not self._equal or not self._depends_on_reference(key):
            return Limits(method.rounds or rounds)
        spent = self._find_spent(key, rounds)
        most_bytes = spent.num_bytes * (BYTES in self._equal)
        most_s = spent.virtual_s * (1 if VIRTUAL_S in self._equal else MOST_SECONDS_FOR_ONE)
        return Limits(method.rounds or MOST_ROUNDS_FOR_ONE * rounds, _round(most_bytes), _round(most_s))

    def summarize(self, method: str) -> Limits:
        """What whole runs of a method may spend, as a mean over the trial seeds."""
        keys = [Key(RUNG_1, method, 0, seed) for seed in self._journal.planned.plan.trial_seeds]
        found = [self.limit(key) for key in keys if self.is_known(key)]
        if not found:
            return Limits(self._journal.planned.plan.rounds)
        means = (statistics.fmean(values) for values in zip(*(each[1:] for each in found), strict=True))
        return Limits(found[0].rounds, *map(_round_off, means))

    def is_known(self, key: Key) -> bool:
        """Whether what the run may spend is known: FedAvg on the same seed has ended, as far as it will."""
        return not self._depends_on_reference(key) or self._journal.is_over(_get_reference(key))

    def _depends_on_reference(self, key: Key) -> bool:
        method = self._methods[key.method]
        return key.stage != CALIBRATION and key.method != REFERENCE and method.role in self._limited

    def _find_spent(self, key: Key, rounds: int) -> _Spent:
        ended = self._journal.runs.get(_get_reference(key))
        if ended is not None and ended.num_rounds:
            return _scale(ended, rounds, key.stage)
        # FedAvg failed on this very seed: what it took on those on which its speed was measured, the first at least,
        # which is known before anything that asks; what has ended by now on fresh seeds depends on the order of runs.
        known = [
            _scale(each, rounds, CALIBRATION)
            for other, each in self._journal.runs.items()
            if other.stage == CALIBRATION and each.num_rounds
        ]
        return _Spent(*(statistics.fmean(values) for values in zip(*known, strict=True)))

    def estimate_s(self, key: Key, rounds: float) -> float:
        """Real seconds of a run.

        Args:
          key: which.
          rounds: of FedAvg in whose place it still has to run.
        """
        if self._journal.planned is None:
            return 0.0
        pace = self._journal.planned.pace
        own, of_method = ([], [])
        for other, took_s, done in self._iterate_measured():
            if other.method == key.method and done > 0:
                pair = max(took_s - pace.overhead_s, 0.0), done
                of_method.append(pair)
                # A trial's settings may make it slower than others.
                own += [pair] if other.trial == key.trial else []
        measured = own or of_method
        round_s = self._methods[key.method].cost * pace.round_s
        if measured:
            round_s = sum(seconds for seconds, _ in measured) / sum(done for _, done in measured)
        return pace.overhead_s + round_s * rounds

    def _iterate_measured(self) -> list[tuple[Key, float, float]]:
        """(run, its real seconds, FedAvg's rounds in their place) of all that says how fast a method is."""
        runs, stopped = self._journal.runs.items(), self._journal.stopped.items()
        ended = [(key, each.took_s, each.rounds) for key, each in runs if each.took_s is not None and not each.failure]
        # These would have taken longer; so much is known.
        ended += [(key, took_s, self.get_rounds(key)) for key, (_, took_s) in stopped]
        return [each for each in ended if each[0].stage != CALIBRATION]


def _get_reference(key: Key) -> Key:
    if key.stage == FRESH:
        return Key(FRESH, REFERENCE, NO_TRIAL, key.seed)
    return Key(CALIBRATION, REFERENCE, 0, key.seed)


def _scale(ended: Ended, rounds: int, stage: str) -> _Spent:
    """What FedAvg spends in so many rounds; on fresh seeds it had as many."""
    factor = 1.0 if stage == FRESH else rounds / ended.num_rounds
    return _Spent(ended.num_bytes * factor, ended.virtual_s * factor)


def _round(value: float) -> float:
    """As a flag holds it, a little more than it is."""
    return _round_off(value * _SLACK)


def _round_off(value: float) -> float:
    return float(f"{value:.6g}")
