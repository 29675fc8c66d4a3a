"""Comparisons of results, of which the papers' claims are made."""

import dataclasses
import math
from collections.abc import Callable, Mapping

from reproductions.engine.collection import PERCENT_METRICS, Cell

COUNTS_ROUNDS = ("rounds_to_", "convergence")  # how the names of metrics begin that count rounds

Lookup = Callable[[Cell], float | None]
LookupSeeds = Callable[[Cell], Mapping[int, float]]  # the value of each seed that has one


@dataclasses.dataclass(frozen=True)
class Condition:
    """`above < sum of weight * result < below`.

    Attributes:
      terms: (weight, cell) pairs.
      text: what is compared; `{0}`, `{1}`, ... stand for the results in the order of `terms`.
      above, below: the bounds; what lies between them is the side of the claim.
      is_near: whether the bounds are a margin around a single printed number.
      seeds: whose runs count; empty: all.
    """

    terms: tuple[tuple[float, Cell], ...]
    text: str = ""
    above: float = -math.inf
    below: float = math.inf
    is_near: bool = False
    seeds: frozenset[int] = frozenset()

    @property
    def cells(self) -> list[Cell]:
        return [cell for _, cell in self.terms]

    def __bool__(self) -> bool:
        """Python would read `low < it < high` as the second of two conditions alone."""
        raise TypeError("a comparison is neither true nor false; expected between(low, high) for two bounds")

    def told(self, text: str) -> "Condition":
        """The same with a text."""
        return dataclasses.replace(self, text=text)

    @property
    def is_pair(self) -> bool:
        """Whether results are compared with each other, rather than one with a number."""
        return len(self.terms) > 1

    @property
    def factor(self) -> float:
        """Of the sum in the texts: 100 for shares, which are shown in points."""
        return 100 if all(cell.metric in PERCENT_METRICS for cell in self.cells) else 1

    @property
    def compared(self) -> tuple[frozenset, frozenset[int]]:
        """What is compared, whatever the bounds: the results with their weights, and the seeds that decide."""
        return frozenset(self.terms), self.seeds

    def implies(self, other: "Condition") -> bool:
        """Whether what meets it meets the other as well: the same sum, within bounds that are as narrow or narrower."""
        return self.compared == other.compared and self.above >= other.above and self.below <= other.below

    def describe(self, lookup: Lookup) -> str:
        """The text with the numbers in it."""
        return self.text.format(*(format_value(cell.metric, lookup(cell)) for cell in self.cells))

    def compute_total(self, lookup: Lookup) -> float | None:
        """The sum; None if a result is missing, NaN for infinite ones that cancel each other."""
        values = [lookup(cell) for cell in self.cells]
        if any(value is None for value in values):
            return None
        return sum(weight * value for (weight, _), value in zip(self.terms, values, strict=True))

    def compute_margin(self, lookup: Lookup) -> float | None:
        """Distance to the nearer bound, negative outside of them; None if a result is missing."""
        total = self.compute_total(lookup)
        return None if total is None else min(total - self.above, self.below - total)

    def compute_by_seed(self, lookup: LookupSeeds) -> dict[int, float]:
        """The sum of each seed that counts and has all the results."""
        by_cell = {cell: lookup(cell) for cell in self.cells}
        seeds = set.intersection(*(set(values) for values in by_cell.values()))
        seeds = sorted(seeds & self.seeds if self.seeds else seeds)
        return {seed: self.compute_total(lambda cell, seed=seed: by_cell[cell][seed]) for seed in seeds}

    def admits(self, total: float) -> bool:
        """Whether a sum lies between the bounds; an infinite one does where there is no bound, NaN never."""
        is_above = total > self.above or total == self.above == -math.inf
        is_below = total < self.below or total == self.below == math.inf
        return is_above and is_below


def format_value(metric: str, value: float | None) -> str:
    """A result in the text of a claim: accuracies in per cent, rounds as they are, others with two decimals or so."""
    if value is None:
        return "not run"
    if math.isinf(value):
        return "never"
    if metric in PERCENT_METRICS:
        return f"{100 * value:.2f} %"
    if metric.startswith(COUNTS_ROUNDS):
        return f"{round(value, 2):g}"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3g}"
