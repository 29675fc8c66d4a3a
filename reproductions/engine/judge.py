"""Decides claims by our runs: each comparison is a number a seed, and the interval of its mean gives the verdict.

- One comparison: reproduced if the whole 95 % interval lies on the claimed side, not reproduced if it lies on the other
  side, undecided else, and always with fewer than three seeds.
- A claim of m comparisons: reproduced if every 95 % interval lies on the claimed side, not reproduced if one lies on
  the other side at the level 1 - 0.05/m, undecided else.
- Where some runs never get to an accuracy, their rounds are infinite: the exact sign test over the seeds decides, and
  pairs in which neither gets there, or both in the same round, are ties.
- Where all seeds give the same number there is no interval: three seeds decide, and just at the bound they are ties,
  which decide nothing.
- A claim that contains another which is not reproduced is not reproduced, though more comparisons leave it open.
- A claim that follows from the algorithm is not decided by runs and not counted. Nor is one that no run can decide.
- Our further comparisons, which no paper claims, are a family for each kind of runs: Holm's correction keeps the chance
  of any false one in it at 5 %.
- A comparison that a paper puts beside several numbers is counted as one claim, which must meet all of them.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.pages.comparison.seed_statistics import (
    ERROR_RATE,
    LEAST_SEEDS,
    UNDECIDED,
    compute_deviation,
    compute_mean,
    compute_p_value,
    compute_sign_p_value,
    correct_by_holm,
    estimate_mean,
    is_constant,
    predict_one,
)
from reproductions.engine.claim_rows import Claim, Outcome, list_texts
from reproductions.engine.collection import Cell
from reproductions.engine.comparisons import Condition
from reproductions.engine.tables import Table

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
BY_CONSTRUCTION, NOT_COMPARABLE, NOT_RUN = "by construction", "not comparable", "not run"
TESTED = (REPRODUCED, NOT_REPRODUCED, UNDECIDED)
# Where kinds of runs have several on one claim, the first of these is the claim's.
VERDICTS = (*TESTED, BY_CONSTRUCTION, NOT_COMPARABLE, NOT_RUN)
HOLDS, FAILS = "yes", "no"  # verdicts of our further comparisons, beside UNDECIDED and NOT_RUN

SeedValues = Mapping[Cell, Mapping[int, float]]


class Evidence(NamedTuple):
    """What the runs say to one comparison.

    Attributes:
      condition: the comparison.
      values: its sum, one a seed that has all the results.
      centers: of each of its results over those seeds: the mean, or the median if any result is infinite.
    """

    condition: Condition
    values: tuple[float, ...]
    centers: Mapping[Cell, float]

    @property
    def uses_signs(self) -> bool:
        """Whether the signs decide: some run never gets there, so that differences have no mean."""
        return not all(map(math.isfinite, self.values)) and (self.condition.is_pair or not is_constant(self.values))

    @property
    def num_decided(self) -> int:
        """Seeds that are no tie: a difference that is neither NaN (no run gets there) nor just the bound."""
        return sum(not math.isnan(value) and not self._is_at_bound(value) for value in self.values)

    def _is_at_bound(self, value: float) -> bool:
        bounds = (self.condition.above, self.condition.below)
        return math.isfinite(value) and any(is_constant((value, bound)) for bound in bounds)

    @property
    def is_tie(self) -> bool:
        """Whether all seeds give just the bound, for example two algorithms the same number of rounds."""
        return is_constant(self.values) and self._is_at_bound(self.values[0])

    @property
    def num_on_side(self) -> int:
        """Seeds on the claimed side."""
        return sum(self.condition.admits(value) and not self._is_at_bound(value) for value in self.values)

    def find_side(self, level: float) -> int:
        """1 if the whole interval lies on the claimed side, -1 if on the other, outside of the bounds, else 0."""
        if len(self.values) < LEAST_SEEDS:
            return 0
        if self.uses_signs:
            # Infinite rounds have no mean, so that the sides of the seeds decide.
            is_sure = compute_sign_p_value(self.num_on_side, self.num_decided) < 1 - level
            return is_sure * (1 if 2 * self.num_on_side > self.num_decided else -1)
        above, below = self.condition.above, self.condition.below
        if is_constant(self.values):
            return 0 if self.is_tie else 1 if self.condition.admits(self.values[0]) else -1
        low, high = estimate_mean(self.values, level).ends
        if above < low and high < below:
            return 1
        return -1 if high <= above or low >= below else 0

    def compute_distance(self) -> float:
        """How far the mean lies within the bounds, in standard deviations, to find the closest of many."""
        if self.uses_signs or is_constant(self.values):
            return math.inf
        mean, deviation = compute_mean(self.values), compute_deviation(self.values)
        return min(mean - self.condition.above, self.condition.below - mean) / deviation

    def describe(self) -> str:
        """The results and the interval that decides, for example "a 80.0 %, b 78.0 %: +2.00 [+1.10, +2.90], n = 5"."""
        text, number = self.condition.describe(self.centers.get), f"n = {len(self.values)}"
        if len(self.values) < LEAST_SEEDS:
            return f"{text}: {_count(len(self.values), 'seed')}"
        if self.uses_signs:
            ties = len(self.values) - self.num_decided
            tied = f", {_count(ties, 'tie')}" if ties else ""
            return f"{text}: {self.num_on_side} of {self.num_decided} seeds on the claimed side{tied}"
        if is_constant(self.values):
            what = "a tie" if self.is_tie else "the same difference" if self.condition.is_pair else "the same"
            return f"{text}: {what} in all {len(self.values)} seeds"
        found = estimate_mean(self.values)
        level = f"{_format_interval(found.ends, self.condition)}, {number}"
        if self.condition.is_pair:
            mean, _, _ = _format_numbers((found.mean, *found.ends), self.condition)
            level = f"{mean} {level}"
        if self.condition.is_near:
            one = _format_interval(predict_one(self.values).ends, self.condition)
            bounds = _format_interval((self.condition.above, self.condition.below), self.condition)
            word = {1: "near", -1: "far", 0: UNDECIDED}[self.find_side(1 - ERROR_RATE)]
            return f"{text}: {word}; mean {level}; margin {bounds}; one run {one}"
        return f"{text}: {level}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _format_numbers(values: Sequence[float], condition: Condition) -> list[str]:
    """Numbers that stand side by side, with the digits that the largest of them needs."""
    values = [condition.factor * value for value in values]
    sign = "+" if condition.is_pair else ""
    digits = ".2f" if max(map(abs, values)) >= 0.1 or not any(values) else ".3g"
    return [f"{value:{sign}{digits}}" for value in values]


def _format_interval(interval: tuple[float, float], condition: Condition) -> str:
    return "[" + ", ".join(_format_numbers(interval, condition)) + "]"


def gather(condition: Condition, seed_values: SeedValues) -> Evidence | None:
    """What the runs say to a comparison; None without a seed that has all its results."""

    def look_up(cell: Cell) -> Mapping[int, float]:
        return seed_values.get(cell, {})

    by_seed = condition.compute_by_seed(look_up)
    if not by_seed:
        return None
    values = {cell: [look_up(cell)[seed] for seed in by_seed] for cell in condition.cells}
    is_finite = all(math.isfinite(value) for each in values.values() for value in each)
    # One infinite seed would make the mean infinite, whatever the others have.
    find_center = compute_mean if is_finite else statistics.median
    centers = {cell: find_center(each) for cell, each in values.items()}
    return Evidence(condition, tuple(by_seed.values()), centers)


def decide_all(claims: Sequence[Claim], seed_values: SeedValues, preset: str = "") -> list[Outcome]:
    """The verdicts on all claims of a paper by the runs of one preset.

    Of many comparisons, each must lie farther on the other side to count against a claim. So one that says more than
    another could stay open where that one is not reproduced: it is not reproduced, either.
    """
    decided = [(claim, decide(claim, seed_values, preset)) for claim in claims]
    refuted = [pair for pair in decided if pair[1].verdict == NOT_REPRODUCED]
    return [_look_at_parts(claim, outcome, refuted) for claim, outcome in decided]


def _look_at_parts(claim: Claim, outcome: Outcome, refuted: Iterable[tuple[Claim, Outcome]]) -> Outcome:
    """The outcome, or that of a claim which is not reproduced and contained in one that is open."""
    for part, against in refuted if outcome.verdict in (UNDECIDED, NOT_RUN) else ():
        if claim.contains(part):
            return Outcome(NOT_REPRODUCED, _join(against.numbers, f"a part of it is not reproduced: {part.text}"))
    return outcome


def decide(claim: Claim, seed_values: SeedValues, preset: str = "") -> Outcome:
    """The verdict on a claim by the runs of one preset, for itself."""
    gathered = [gather(condition, seed_values) for condition in claim.conditions]
    found = [evidence for evidence in gathered if evidence is not None]
    if not claim.is_comparable_in(preset):
        return Outcome(NOT_COMPARABLE, _join(claim.not_comparable, _list(found)))
    if claim.follows_in(preset):
        return Outcome(BY_CONSTRUCTION, _join(claim.by_construction, _list(found)))
    if not claim.conditions:
        return Outcome(NOT_RUN, "these settings do not make it so, and it is not measured")
    # At this level the chance that any of the m comparisons lies on the other side by accident is 5 %.
    against = [each for each in found if each.find_side(1 - ERROR_RATE / len(gathered)) < 0]
    if against:
        return Outcome(NOT_REPRODUCED, _say_share(len(against), "on the other side", found) + _list(against))
    if len(found) < len(gathered):
        text = f"{len(found)} of {len(gathered)} comparisons have their runs"
        return Outcome(NOT_RUN, text if found else "")
    open_ones = [each for each in found if each.find_side(1 - ERROR_RATE) <= 0]
    if open_ones:
        return Outcome(UNDECIDED, _say_share(len(open_ones), "open", found) + _list(open_ones))
    if len(found) == 1:
        return Outcome(REPRODUCED, _list(found))
    closest = min(found, key=Evidence.compute_distance)
    return Outcome(REPRODUCED, f"all {len(found)} comparisons, the closest: {closest.describe()}")


def _say_share(number: int, what: str, found: Sequence[Evidence]) -> str:
    return f"{number} of {len(found)} comparisons {what}: " if len(found) > 1 else ""


def _join(*texts: str) -> str:
    return "; ".join(filter(None, texts))


def _list(found: Iterable[Evidence]) -> str:
    return list_texts(evidence.describe() for evidence in found)


class Further(NamedTuple):
    """A further comparison of ours: its verdict, numbers, and p-value by Holm's correction, None without one."""

    claim: Claim
    verdict: str
    numbers: str
    p_value: float | None


def decide_further(claims: Sequence[Claim], seed_values: SeedValues) -> list[Further]:
    """The verdicts on our own comparisons, which together are a family.

    Of several conditions of one comparison all must hold, so the one that holds least decides.
    """
    gathered = [[gather(condition, seed_values) for condition in claim.conditions] for claim in claims]
    weakest = [None if None in found else min(found, key=_rank) for found in gathered]
    # Only what has a p-value is of the family: others would make Holm's correction harder for nothing.
    tested = [i for i, evidence in enumerate(weakest) if evidence is not None and _has_test(evidence)]
    p_values = [_compute_p_value(weakest[i], len(gathered[i])) for i in tested]
    adjusted = dict(zip(tested, correct_by_holm(p_values), strict=True))
    return [
        _decide_one(claim, evidence, adjusted.get(i), gathered[i])
        for i, (claim, evidence) in enumerate(zip(claims, weakest, strict=True))
    ]


def _rank(evidence: Evidence) -> tuple[int, float]:
    """The lower, the less a condition holds: of those against, the surest; of the others, the least sure."""
    p_value = _compute_p_value(evidence) if _has_test(evidence) else 0.0
    side = evidence.find_side(1 - ERROR_RATE)
    return side, p_value if side < 0 else -p_value


def _has_test(evidence: Evidence) -> bool:
    return len(evidence.values) >= LEAST_SEEDS and (evidence.uses_signs or not is_constant(evidence.values))


def _compute_p_value(evidence: Evidence, num_conditions: int = 1) -> float:
    """Of a comparison's weakest condition: for it, all others hold as well; against it, it was sought out of them."""
    if evidence.uses_signs:
        p_value = compute_sign_p_value(evidence.num_on_side, evidence.num_decided)
    else:
        condition = evidence.condition
        # Of two bounds the nearer one decides.
        bounds = [bound for bound in (condition.above, condition.below) if math.isfinite(bound)]
        p_value = max(compute_p_value(evidence.values, bound) for bound in bounds)
    return p_value if _leans_for(evidence) else min(1.0, num_conditions * p_value)


def _leans_for(evidence: Evidence) -> bool:
    """Whether the mean, or most of the signs, lie on the claimed side."""
    if evidence.uses_signs:
        return evidence.num_on_side / max(evidence.num_decided, 1) > 0.5
    return evidence.condition.admits(compute_mean(evidence.values))


def _decide_one(
    claim: Claim, evidence: Evidence | None, p_value: float | None, gathered: Sequence[Evidence | None]
) -> Further:
    if evidence is None:
        return Further(claim, NOT_RUN, "", None)
    numbers = "; ".join(each.describe() for each in gathered)
    if p_value is None:
        verdict = {1: HOLDS, -1: FAILS, 0: UNDECIDED}[evidence.find_side(1 - ERROR_RATE)]
        return Further(claim, verdict, numbers, None)
    verdict = UNDECIDED if p_value >= ERROR_RATE else HOLDS if _leans_for(evidence) else FAILS
    return Further(claim, verdict, numbers, p_value)


COUNTED_WITH = "counted_with"  # the column of the claims' table
# Of several verdicts on claims that count as one, the first of these that is among them.
WEAKEST_FIRST = (NOT_REPRODUCED, NOT_RUN, UNDECIDED, REPRODUCED, BY_CONSTRUCTION, NOT_COMPARABLE)


def find_first_alike(claims: Sequence[Claim]) -> list[str]:
    """Of each claim the words of the first that compares the same results; "" if it is that, or compares nothing."""
    firsts: dict[frozenset, Claim] = {}
    alike = [firsts.setdefault(claim.compared, claim) if claim.conditions else claim for claim in claims]
    return ["" if first is claim else first.text for first, claim in zip(alike, claims, strict=True)]


def list_counted(claims: Table, presets: Sequence[str]) -> list[dict[str, str]]:
    """The verdict of each claim that counts, by preset: the weakest of those that are counted with it."""
    groups: dict[str, list[Mapping[str, str]]] = {}
    for row in claims.records:
        groups.setdefault(row[COUNTED_WITH] or row["claim"], []).append(row)
    return [
        {preset: min((row[preset] for row in rows), key=WEAKEST_FIRST.index) for preset in presets}
        for rows in groups.values()
    ]


def count_verdicts(claims: Table, presets: Mapping[str, str]) -> Table:
    """A row for each kind of runs: how many claims have each verdict."""
    counted, rows = list_counted(claims, list(presets)), []
    for preset, label in presets.items():
        counts = Counter(verdicts[preset] for verdicts in counted)
        rows.append([label, *(str(counts[verdict]) for verdict in VERDICTS)])
    return Table([f"of {len(counted)} claims", *VERDICTS], rows)
