"""Comparisons of results, written as Python: `runs("fedsikd") > runs("fedavg", round=5) + 0.18`.

`runs` is a table of results, of which a call takes one; `mean` is that of several. Results are added and subtracted,
also with numbers, and compared with `<`, `<=`, `>`, `>=`, `near` and `between`, which gives a `Condition`. What is
bounded is the larger side minus the smaller one; if one side has numbers alone, it is the other side. The terms come in
the order in which the results are written.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

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
        found = [lookup(cell) for cell in self.cells]
        values = [value for value in found if value is not None]
        if len(values) < len(found):
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
        counted = sorted(seeds & self.seeds if self.seeds else seeds)
        totals = {seed: self.compute_total({cell: by_cell[cell][seed] for cell in by_cell}.get) for seed in counted}
        return {seed: total for seed, total in totals.items() if total is not None}

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


FIELDS = ("dataset", "setting", "algo", "round", "metric")  # of a result, in the order of a cell's
SLACK = 1e-6  # by which a bound that may be met is moved, since comparisons are strict

Number = int | float


@dataclasses.dataclass(frozen=True, eq=False)
class Sum:
    """A weighted sum of results, plus a number."""

    weights: Mapping[Cell, float]
    number: float = 0.0

    def add(self, other: "Sum | Number", factor: float = 1.0) -> "Sum":
        """It and so many times the other."""
        other = _read_sum(other)
        weights = dict(self.weights)
        for cell, weight in other.weights.items():
            weights[cell] = weights.get(cell, 0.0) + factor * weight
        return Sum(weights, self.number + factor * other.number)

    def __add__(self, other: "Sum | Number") -> "Sum":
        return self.add(other)

    def __sub__(self, other: "Sum | Number") -> "Sum":
        return self.add(other, -1)

    def __lt__(self, other: "Sum | Number") -> Condition:
        return _compare(self, _read_sum(other), (self, _read_sum(other)))

    def __le__(self, other: "Sum | Number") -> Condition:
        return _compare(self, _read_sum(other), (self, _read_sum(other)), SLACK)

    def __gt__(self, other: "Sum | Number") -> Condition:
        return _compare(_read_sum(other), self, (self, _read_sum(other)))

    def __ge__(self, other: "Sum | Number") -> Condition:
        return _compare(_read_sum(other), self, (self, _read_sum(other)), SLACK)

    def between(self, low: "Sum | Number", high: "Sum | Number") -> Condition:
        """`low < it < high`, which have the same results in them, or none."""
        low, high = _read_sum(low), _read_sum(high)
        if low.weights != high.weights or not self.weights:
            raise ValueError("between: expected a result, and the same ones, or none, in both bounds")
        terms = _order(self.add(low, -1), (low, self))
        return Condition(terms, above=low.number - self.number, below=high.number - self.number)

    def near(self, value: float, margin: float) -> Condition:
        """Closer than `margin` to a printed number."""
        return Condition(_order(self, (self,)), above=value - margin, below=value + margin, is_near=True)


class Results:
    """A table of results, of which a call takes one: `runs("fedsikd", "test_loss", round=1)`."""

    def __init__(self, at: Mapping[str, Any], names: Mapping[str, Mapping[str, str]]):
        """`at` has what a call does not say, and `names` the known values of fields; others take any."""
        self._at, self._names = at, names

    def __call__(self, algo: str = "", metric: str = "", **fields: Any) -> Sum:
        """One result. Raises ValueError for a field that is missing or unknown, or a value that is not known."""
        given = {"algo": algo, "metric": metric}
        values = {**self._at, **{field: value for field, value in given.items() if value}, **fields}
        if values.keys() != set(FIELDS):
            raise ValueError(f"a result with {', '.join(values)}; expected {', '.join(FIELDS)}")
        for field, known in self._names.items():
            if field in values and values[field] not in known:
                raise ValueError(f"{values[field]!r} is no {field}; expected one of {', '.join(known)}")
        return Sum({Cell(*(values[field] for field in FIELDS)): 1.0})


def mean(results: Iterable[Sum]) -> Sum:
    """The mean of different results."""
    cells = [cell for each in results for cell in each.weights]
    return Sum(dict.fromkeys(cells, 1 / len(cells)))


def _read_sum(value: Sum | Number) -> Sum:
    return value if isinstance(value, Sum) else Sum({}, float(value))


def _compare(small: Sum, large: Sum, written: Sequence[Sum], slack: float = 0.0) -> Condition:
    if not (small.weights or large.weights):
        raise ValueError("two numbers; expected a result on one side")
    if not large.weights:
        return Condition(_order(small, written), below=large.number - small.number + slack)
    return Condition(_order(large.add(small, -1), written), above=small.number - large.number - slack)


def _order(total: Sum, written: Iterable[Sum]) -> tuple[tuple[float, Cell], ...]:
    return tuple(
        (total.weights[cell], cell) for cell in dict.fromkeys(cell for each in written for cell in each.weights)
    )
