"""Decides what a paper claims in words by numbers: the printed ones, and ours.

A claim is a list of conditions on linear combinations of results. The same conditions are put to the paper's own
tables and to our runs, so a claim that the printed tables contradict is found out, too.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from launch.runs.columns import CLIENT_TEST_ACCURACY, TEST_ACCURACY

HOLDS, FAILS, UNKNOWN = "holds", "fails", "unknown"
MOST_LISTED = 4
PERCENT_METRICS = frozenset({TEST_ACCURACY, CLIENT_TEST_ACCURACY})


class Cell(NamedTuple):
    """One result: a metric of an algorithm after a round, on a data set in a setting (for example an alpha)."""

    dataset: str
    setting: str
    algo: str
    round_num: int
    metric: str


Lookup = Callable[[Cell], float | None]


@dataclasses.dataclass(frozen=True)
class Condition:
    """`above < sum of weight * result < below`.

    Attributes:
      terms: (weight, cell) pairs.
      text: what is compared; `{0}`, `{1}`, ... stand for the results in the order of `terms`.
    """

    terms: tuple[tuple[float, Cell], ...]
    text: str
    above: float = -math.inf
    below: float = math.inf

    def describe(self, lookup: Lookup) -> str:
        """The text with the numbers in it."""
        return self.text.format(*(format_value(cell.metric, lookup(cell)) for _, cell in self.terms))

    def compute_margin(self, lookup: Lookup) -> float | None:
        """Distance to the nearer bound, negative outside of them; None if a result is missing."""
        values = [lookup(cell) for _, cell in self.terms]
        if any(value is None for value in values):
            return None
        total = sum(weight * value for (weight, _), value in zip(self.terms, values, strict=True))
        return min(total - self.above, self.below - total)


@dataclasses.dataclass(frozen=True)
class Claim:
    """One sentence of a paper.

    Attributes:
      section: where it stands.
      text: what it says, in short.
      rule: how it is decided, in words, with the thresholds that are ours.
      conditions: all must hold.
    """

    section: str
    text: str
    rule: str
    conditions: tuple[Condition, ...]

    @property
    def cells(self) -> set[Cell]:
        return {cell for condition in self.conditions for _, cell in condition.terms}


class Outcome(NamedTuple):
    """HOLDS, FAILS or UNKNOWN (results are missing and none at hand speaks against it), and the deciding numbers."""

    verdict: str
    numbers: str


def format_value(metric: str, value: float | None) -> str:
    """A result as reports show it: accuracies in per cent, others as they are, two decimals or three digits."""
    if value is None:
        return "not run"
    if metric in PERCENT_METRICS:
        return f"{100 * value:.2f} %"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3g}"


def decide(claim: Claim, lookup: Lookup) -> Outcome:
    """Puts a claim to the results that `lookup` gives: one failing condition is enough to decide against it."""
    margins = [(condition, condition.compute_margin(lookup)) for condition in claim.conditions]
    failing = [condition for condition, margin in margins if margin is not None and margin <= 0]
    known = [(margin, condition) for condition, margin in margins if margin is not None]
    if failing:
        count = f"{len(failing)} of {len(known)} comparisons fail: " if len(known) > 1 else ""
        return Outcome(FAILS, count + _list_numbers(failing, lookup))
    if len(known) < len(margins):
        return Outcome(UNKNOWN, f"{len(known)} of {len(margins)} comparisons have their numbers" if known else "")
    if len(known) <= MOST_LISTED:
        return Outcome(HOLDS, _list_numbers(claim.conditions, lookup))
    closest = min(known, key=lambda pair: pair[0])[1]
    return Outcome(HOLDS, f"all {len(known)} comparisons hold, the closest: {closest.describe(lookup)}")


def _list_numbers(conditions: Iterable[Condition], lookup: Lookup) -> str:
    texts = [condition.describe(lookup) for condition in conditions]
    more = f"; and {len(texts) - MOST_LISTED} more" if len(texts) > MOST_LISTED else ""
    return "; ".join(texts[:MOST_LISTED]) + more
