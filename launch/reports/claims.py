"""Decides what a paper claims in words by numbers: the printed ones, and ours.

A claim is a list of conditions on linear combinations of results. The same conditions are put to the paper's own
tables and to our runs, so that a claim that the printed tables contradict is found out, too.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from launch.reports.collection import PRINTED, TUNED, Cell, PrintedValue, Results
from launch.reports.conditions import Condition, Lookup

HOLDS, FAILS, UNKNOWN = "holds", "fails", "unknown"
OURS_VERDICTS = {HOLDS: "reproduced", FAILS: "not reproduced", UNKNOWN: "not run"}
PAPER_VERDICTS = {HOLDS: "agree", FAILS: "contradict it", UNKNOWN: "not printed"}
MOST_LISTED = 4


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


class Judgement(NamedTuple):
    """A claim put to the paper's tables and to our runs; `tuned` is None if no tuned run has a part in it."""

    claim: Claim
    printed: Outcome
    ours: Outcome
    tuned: Outcome | None


def decide(claim: Claim, lookup: Lookup) -> Outcome:
    """Puts a claim to the results that `lookup` gives: one failing condition is enough to decide against it."""
    margins = [(condition, condition.compute_margin(lookup)) for condition in claim.conditions]
    failing = [condition for condition, margin in margins if margin is not None and margin <= 0]
    known = [(margin, condition) for condition, margin in margins if margin is not None]
    # One comparison that fails decides, whatever the missing ones would say.
    if failing:
        count = f"{len(failing)} of {len(known)} comparisons fail: " if len(known) > 1 else ""
        return Outcome(FAILS, count + _list_numbers(failing, lookup))
    if len(known) < len(margins):
        return Outcome(UNKNOWN, f"{len(known)} of {len(margins)} comparisons have their numbers" if known else "")
    if len(known) <= MOST_LISTED:
        return Outcome(HOLDS, _list_numbers(claim.conditions, lookup))
    # A long list of numbers says less than the comparison that came nearest to failing.
    closest = min(known, key=lambda pair: pair[0])[1]
    return Outcome(HOLDS, f"all {len(known)} comparisons hold, the closest: {closest.describe(lookup)}")


def _list_numbers(conditions: Iterable[Condition], lookup: Lookup) -> str:
    texts = [condition.describe(lookup) for condition in conditions]
    more = f"; and {len(texts) - MOST_LISTED} more" if len(texts) > MOST_LISTED else ""
    return "; ".join(texts[:MOST_LISTED]) + more


def judge(claim: Claim, printed: Sequence[PrintedValue], results: Results, preset: str = PRINTED) -> Judgement:
    """Decides a claim for each source: the paper's tables, our runs of a preset, our tuned runs.

    Algorithms without tuned runs take part among the tuned ones with their runs of `preset`.
    """
    paper = {value.cell: value.value for value in printed}
    ours = {cell: measured.mean for cell, measured in results[preset].items()}
    tuned = {cell: measured.mean for cell, measured in results.get(TUNED, {}).items()}
    has_tuned = not claim.cells.isdisjoint(tuned)
    # By place, not by cell: a tuned run that is too short must not be filled up with rounds of an untuned one.
    tuned_places = {cell[:3] for cell in tuned}

    def look_up_tuned(cell: Cell) -> float | None:
        return tuned.get(cell) if cell[:3] in tuned_places else ours.get(cell)

    outcome = decide(claim, look_up_tuned) if has_tuned else None
    return Judgement(claim, decide(claim, paper.get), decide(claim, ours.get), outcome)


def say_printed(outcome: Outcome) -> str:
    """What the paper's own tables say to a claim of its text."""
    return PAPER_VERDICTS[outcome.verdict]


def say_ours(outcome: Outcome | None) -> str:
    """What our runs say to a claim; "" if they have no part in it."""
    return "" if outcome is None else OURS_VERDICTS[outcome.verdict]
