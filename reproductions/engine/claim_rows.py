"""The claims of a paper: rows of its `claims.py`, each with a function that takes a table of results and compares them.

And what the paper's own tables say to them.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from launch.settings.errors import FlagError
from reproductions.engine.collection import Cell
from reproductions.engine.comparisons import FIELDS, Condition, Lookup, Results

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


class ClaimError(FlagError):
    """A row that cannot be: which and why, in one line."""


Compare = Callable[[Results], Condition | Iterable[Condition]]


@dataclasses.dataclass(frozen=True)
class Book:
    """What the rows of a paper share.

    Attributes:
      at: fields of every result, unless a row or the comparison says otherwise.
      names: by field the known values, and what texts call them. A field that is not in it takes any.
      texts: how a comparison is told, by the number of its results: `{0}`, `{1}` stand for them as they are written,
        `{0.algo}` for the name of a field. By default each stands behind its algorithm.
      seeds: by data set, the seeds that decide, where some had been looked at before; all, if it says nothing.
    """

    at: Mapping[str, Any]
    names: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    texts: Mapping[int, str] = dataclasses.field(default_factory=dict)
    seeds: Mapping[str, Collection[int]] = dataclasses.field(default_factory=dict)

    def claim(
        self,
        section: str,
        words: str,
        rule: str = "",
        compare: Compare | None = None,
        *,
        text: str = "",
        seeds: Collection[int] = (),
        by_construction: str = "",
        constructed_in: Iterable[str] = (),
        not_comparable: str = "",
        not_comparable_in: Iterable[str] = (),
        **at: Any,
    ) -> Claim:
        """A row.

        Args:
          section, words, rule, by_construction, constructed_in, not_comparable, not_comparable_in: see `Claim`.
          compare: (results) -> the comparison, or several that must all hold.
          text: how these are told, those that have no text of their own.
          seeds: that decide it, in place of those of its data.
          at: fields of its results.

        Raises:
          ClaimError: it compares nothing, or a result that there cannot be.
        """
        if not (compare or by_construction or not_comparable):
            raise ClaimError(
                f"claim {words!r}: nothing is compared; expected compare, by_construction or not_comparable"
            )
        try:
            found = compare(Results({**self.at, **at}, self.names)) if compare else ()
        except ValueError as error:
            raise ClaimError(f"claim {words!r}: {error}") from None
        conditions = (found,) if isinstance(found, Condition) else found
        return Claim(
            section,
            words,
            rule,
            tuple(self._finish(each, text, frozenset(seeds)) for each in conditions),
            by_construction,
            frozenset(constructed_in),
            not_comparable,
            frozenset(not_comparable_in),
        )

    def further(self, words: str, compare: Compare, rule: str = "", **more: Any) -> Claim:
        """A comparison of ours, which the paper does not claim."""
        return self.claim("", words, rule, compare, **more)

    def _finish(self, condition: Condition, text: str, seeds: frozenset[int]) -> Condition:
        """With its text, and with the seeds that decide it."""
        of_data = {frozenset(self.seeds[cell.dataset]) for cell in condition.cells if cell.dataset in self.seeds}
        if not seeds and len(of_data) > 1:
            raise ClaimError("a claim on data with other seeds each; expected seeds in the row")
        number = len(condition.cells)
        plain = ", ".join(f"{{{i}.algo}} {{{i}}}" for i in range(number))
        text = condition.text or text or self.texts.get(number, plain)
        text = text.format(*(_NamedResult(i, cell, self.names) for i, cell in enumerate(condition.cells)))
        return dataclasses.replace(condition, text=text, seeds=seeds or frozenset().union(*of_data))


class _NamedResult:
    """A result in a text: the names of its fields, and itself as the braces that its number fills later."""

    def __init__(self, number: int, cell: Cell, names: Mapping[str, Mapping[str, str]]):
        self._number = number
        for field, value in zip(FIELDS, cell._asdict().values(), strict=True):
            setattr(self, field, names.get(field, {}).get(value, value))

    def __str__(self) -> str:
        return f"{{{self._number}}}"
