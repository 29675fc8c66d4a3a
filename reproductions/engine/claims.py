"""A claim of a paper, and what the paper's own tables say to it."""

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

from reproductions.engine.conditions import Condition, Lookup

AGREE, CONTRADICT, NOT_PRINTED = "agree", "contradict it", "not printed"
MOST_LISTED = 4


@dataclasses.dataclass(frozen=True)
class Claim:
    """One sentence of a paper, or a further comparison of ours.

    Attributes:
      section: where it stands; "" for a comparison of ours.
      text: the paper's words, in short.
      rule: how it is decided, in words, with the thresholds that are ours.
      conditions: the comparisons; all must hold.
      by_construction: why it follows from the algorithm itself, whatever the data; "" if it does not.
      constructed_in: the presets whose settings make it follow; empty: all.
      not_comparable: why no run can decide it; "" if runs can.
      not_comparable_in: the presets whose runs cannot decide it; empty: all.
    """

    section: str
    text: str
    rule: str
    conditions: tuple[Condition, ...]
    by_construction: str = ""
    constructed_in: frozenset[str] = frozenset()
    not_comparable: str = ""
    not_comparable_in: frozenset[str] = frozenset()

    @property
    def compared(self) -> frozenset:
        """What is compared, whatever the numbers that it is put beside."""
        return frozenset(condition.compared for condition in self.conditions)

    def follows_in(self, preset: str) -> bool:
        """Whether the settings of a preset alone make it true."""
        return bool(self.by_construction) and (not self.constructed_in or preset in self.constructed_in)

    def is_comparable_in(self, preset: str) -> bool:
        """Whether the runs of a preset can decide it."""
        return not self.not_comparable or (bool(self.not_comparable_in) and preset not in self.not_comparable_in)

    def contains(self, other: "Claim") -> bool:
        """Whether it says all that the other says: each comparison of the other follows from one of its own."""
        return bool(other.conditions) and all(
            any(mine.implies(theirs) for mine in self.conditions) for theirs in other.conditions
        )


class Outcome(NamedTuple):
    """A verdict, and the numbers that decide."""

    verdict: str
    numbers: str


def ask_printed_tables(claim: Claim, lookup: Lookup) -> Outcome:
    """Puts a claim to the paper's own tables, which have one number a cell: one failing comparison contradicts it."""
    if not claim.conditions:
        return Outcome(NOT_PRINTED, "")
    margins = [(condition, condition.compute_margin(lookup)) for condition in claim.conditions]
    failing = [condition for condition, margin in margins if margin is not None and margin <= 0]
    known = [(margin, condition) for condition, margin in margins if margin is not None]
    # One comparison that fails decides, whatever the missing ones would say.
    if failing:
        count = f"{len(failing)} of {len(known)} comparisons fail: " if len(known) > 1 else ""
        return Outcome(CONTRADICT, count + list_texts([condition.describe(lookup) for condition in failing]))
    if len(known) < len(margins):
        return Outcome(NOT_PRINTED, f"{len(known)} of {len(margins)} comparisons have their numbers" if known else "")
    if len(known) <= MOST_LISTED:
        return Outcome(AGREE, list_texts([condition.describe(lookup) for condition in claim.conditions]))
    # A long list of numbers says less than the comparison that came nearest to failing.
    closest = min(known, key=lambda pair: pair[0])[1]
    return Outcome(AGREE, f"all {len(known)} comparisons hold, the closest: {closest.describe(lookup)}")


def list_texts(texts: Iterable[str]) -> str:
    """The first few of several texts, and how many more there are."""
    texts = list(texts)
    more = f"; and {len(texts) - MOST_LISTED} more" if len(texts) > MOST_LISTED else ""
    return "; ".join(texts[:MOST_LISTED]) + more
