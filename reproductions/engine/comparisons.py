"""Comparisons of results, written as Python: `runs("fedsikd") > runs("fedavg", round=5) + 0.18`.

`runs` is a table of results, of which a call takes one; `mean` is that of several. Results are added and subtracted,
also with numbers, and compared with `<`, `<=`, `>`, `>=`, `near` and `between`, which gives a `Condition`. What is
bounded is the larger side minus the smaller one; if one side has numbers alone, it is the other side. The terms come in
the order in which the results are written.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reproductions.engine.collection import Cell
from reproductions.engine.conditions import Condition

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
