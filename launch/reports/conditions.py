"""Conditions on results, of which the papers' claims are made: one constructor for each way of comparing.

In a text, `{0}`, `{1}`, ... stand for the results in the order in which the constructor takes them.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

from launch.reports.collection import PERCENT_METRICS, Cell

SLACK = 1e-6  # by which a bound that may be met is moved, since conditions are strict

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


def format_value(metric: str, value: float | None) -> str:
    """A result in the text of a claim: accuracies in per cent, others with two decimals or three digits."""
    if value is None:
        return "not run"
    if metric in PERCENT_METRICS:
        return f"{100 * value:.2f} %"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3g}"


def bounded(cell: Cell, text: str, above: float = -math.inf, below: float = math.inf) -> Condition:
    """A result lies between two numbers."""
    return Condition(((1, cell),), text, above, below)


def at_most(cell: Cell, text: str, most: float) -> Condition:
    """A result is a number or less."""
    return bounded(cell, text, below=most + SLACK)


def at_least(cell: Cell, text: str, least: float) -> Condition:
    """A result is a number or more."""
    return bounded(cell, text, above=least - SLACK)


def near(cell: Cell, text: str, value: float, tolerance: float) -> Condition:
    """A result is less than the tolerance away from a number."""
    return bounded(cell, text, value - tolerance, value + tolerance)


def differs(first: Cell, second: Cell, text: str, above: float = -math.inf, below: float = math.inf) -> Condition:
    """The first result minus the second lies between two numbers."""
    return Condition(((1, first), (-1, second)), text, above, below)


def exceeds(first: Cell, second: Cell, text: str, by: float = 0.0) -> Condition:
    """The first result is larger than the second by more than `by`."""
    return differs(first, second, text, above=by)


def mean_exceeds(first: Sequence[Cell], second: Sequence[Cell], names: tuple[str, str]) -> Condition:
    """The mean of some results is larger than that of others; the text is made of what each side is called."""
    terms = [(1 / len(first), cell) for cell in first] + [(-1 / len(second), cell) for cell in second]
    places = [f"{{{i}}}" for i in range(len(terms))]
    sides = ", ".join(places[: len(first)]), ", ".join(places[len(first) :])
    return Condition(tuple(terms), f"{names[0]} {sides[0]} against {names[1]} {sides[1]}", above=0)


def gains_more(pair: tuple[Cell, Cell], other: tuple[Cell, Cell], text: str) -> Condition:
    """A result rises more, or falls less, from the first to the second cell of a pair than in the other pair."""
    return Condition(((-1, pair[0]), (1, pair[1]), (1, other[0]), (-1, other[1])), text, above=0)
