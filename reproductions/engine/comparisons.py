"""The notation of a comparison in `claims.toml`, one string: "fedsikd > fedavg(round=5) + 0.18".

Python's grammar, of which this is allowed:

- A cell: `algo`, `algo.metric`, `algo(round=5, setting=0.1)`, or `cell(algo="old1.25", ...)` if its name is no
  identifier. What is not said comes from the row. A list stands for several cells, the first keyword outermost:
  `mean(cell(setting=[random, frequency], algo=[equal, fresh]))`.
- `+`, `-`, and `mean(a, b, ...)`.
- `a > b`: what is bounded is the larger side minus the smaller one. If one side has numbers alone, it is the other
  side. `low < a < high` has the same cells in `low` and `high`, or none. `>=` and `<=` may be met.
- `near(a, 0.51, 0.05)`: closer than that to a printed number.

The terms come in the order in which the cells are written.
"""

import ast
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from reproductions.engine.collection import Cell
from reproductions.engine.conditions import Condition

FIELDS = ("dataset", "setting", "algo", "round", "metric")  # of a cell, in its order
SLACK = 1e-6  # by which a bound that may be met is moved, since comparisons are strict
ALLOWED = "cells, numbers, +, -, mean(...), near(...) and one of <, <=, >, >= or low < ... < high"


class ComparisonError(ValueError):
    """A comparison that cannot be read; the message says what is wrong with it."""


class _Sum(NamedTuple):
    weights: Mapping[Cell, float]
    number: float = 0.0

    def add(self, other: "_Sum", factor: float = 1.0) -> "_Sum":
        weights = dict(self.weights)
        for cell, weight in other.weights.items():
            weights[cell] = weights.get(cell, 0.0) + factor * weight
        return _Sum(weights, self.number + factor * other.number)


def parse_comparison(text: str, at: Mapping[str, object], check: Callable[[str, object], None]) -> Condition:
    """Reads a comparison; what it is called is left open.

    Args:
      text: the notation.
      at: what a cell has where the notation does not say it, by the names of its fields.
      check: (field, value) raises ComparisonError for a value that is not known.

    Raises:
      ComparisonError: it cannot be read.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ComparisonError(f"{text!r} cannot be read; expected {ALLOWED}") from None
    reader = _Reader(at, check)
    if isinstance(node, ast.Call) and _name_of(node.func) == "near":
        return reader.read_near(node)
    if isinstance(node, ast.Compare):
        return reader.read_compare(node)
    raise ComparisonError(f"{text!r} compares nothing; expected {ALLOWED}")


class _Reader:
    def __init__(self, at: Mapping[str, object], check: Callable[[str, object], None]) -> None:
        self._at, self._check = at, check

    def read_near(self, node: ast.Call) -> Condition:
        if len(node.args) != 3 or node.keywords:
            raise ComparisonError(f"'{ast.unparse(node)}': expected near(cell, number, margin)")
        (weights, _), (_, value), (_, margin) = (self._read_sum(each) for each in node.args)
        return Condition(_order(weights, weights), above=value - margin, below=value + margin, is_near=True)

    def read_compare(self, node: ast.Compare) -> Condition:
        sides = [self._read_sum(each) for each in (node.left, *node.comparators)]
        if len(sides) == 3 and all(isinstance(op, ast.Lt) for op in node.ops):
            return _bound_both(ast.unparse(node), *sides)
        if len(sides) != 2 or not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            raise ComparisonError(f"'{ast.unparse(node)}': expected {ALLOWED}")
        may_be_met = isinstance(node.ops[0], ast.LtE | ast.GtE)
        small, large = sides if isinstance(node.ops[0], ast.Lt | ast.LtE) else reversed(sides)
        slack = SLACK if may_be_met else 0.0
        written = {**sides[0].weights, **sides[1].weights}
        if not written:
            raise ComparisonError(f"'{ast.unparse(node)}' has no cell")
        if not large.weights:
            return Condition(_order(small.weights, written), below=large.number - small.number + slack)
        return Condition(_order(large.add(small, -1).weights, written), above=small.number - large.number - slack)

    def _read_sum(self, node: ast.expr) -> _Sum:
        match node:
            case ast.Constant(value=int() | float() as number):
                return _Sum({}, float(number))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return _Sum({}, -float(number))
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
                return self._read_sum(left).add(self._read_sum(right), 1 if isinstance(sign, ast.Add) else -1)
            case ast.Call(func=ast.Name(id="mean"), args=args, keywords=[]) if args:
                cells = [cell for each in args for cell in self._read_cells(each)]
                return _Sum(dict.fromkeys(cells, 1 / len(cells)))
        cells = self._read_cells(node)
        if len(cells) > 1:
            raise ComparisonError(f"'{ast.unparse(node)}' are {len(cells)} cells; expected mean(...) around them")
        return _Sum({cells[0]: 1.0})

    def _read_cells(self, node: ast.expr) -> list[Cell]:
        fields: dict[str, list[object]] = {}
        head = node.func if isinstance(node, ast.Call) else node
        if isinstance(head, ast.Attribute):
            fields["metric"] = [head.attr]
            head = head.value
        name = _name_of(head)
        if not name or (isinstance(node, ast.Call) and node.args):
            raise ComparisonError(f"'{ast.unparse(node)}' is no cell, such as fedavg.test_loss(round=5)")
        if name != "cell":
            fields["algo"] = [name]
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            values = keyword.value.elts if isinstance(keyword.value, ast.List) else [keyword.value]
            fields[keyword.arg or "**"] = [_read_value(value) for value in values]
        return [self._make_cell(dict(zip(fields, each, strict=True))) for each in itertools.product(*fields.values())]

    def _make_cell(self, fields: Mapping[str, object]) -> Cell:
        fields = {**self._at, **fields}
        if unknown := fields.keys() - set(FIELDS):
            raise ComparisonError(f"{min(unknown)!r} is no field of a cell; expected {', '.join(FIELDS)}")
        if missing := [field for field in FIELDS if field not in fields]:
            raise ComparisonError(f"a cell without its {missing[0]}; say it in the cell or in `at`")
        values = [spell_value(field, fields[field]) for field in FIELDS]
        for field, value in zip(FIELDS, values, strict=True):
            self._check(field, value)
        return Cell(*values)


def _bound_both(text: str, low: _Sum, middle: _Sum, high: _Sum) -> Condition:
    if low.weights != high.weights:
        raise ComparisonError(f"'{text}': expected the same cells on the left and on the right")
    if not middle.weights:
        raise ComparisonError(f"'{text}' has no cell in the middle")
    total = middle.add(low, -1).weights
    terms = _order(total, {**low.weights, **middle.weights})
    return Condition(terms, above=low.number - middle.number, below=high.number - middle.number)


def _order(weights: Mapping[Cell, float], written: Sequence[Cell] | Mapping[Cell, float]) -> tuple:
    return tuple((weights[cell], cell) for cell in written)


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _read_value(node: ast.expr) -> object:
    match node:
        case ast.Name(id=value) | ast.Constant(value=str() | int() | float() as value):
            return value
    raise ComparisonError(f"'{ast.unparse(node)}' is no value of a cell; expected a word, a number or a quoted text")


def spell_value(field: str, value: object) -> str | int:
    """A value as cells have it: a whole number of the round, a text of everything else ("1", not "1.0").

    Raises:
      ComparisonError: a round that is no whole number.
    """
    if field == "round":
        try:
            return int(str(value))
        except ValueError:
            raise ComparisonError(f"round {value!r}: expected a whole number") from None
    return value if isinstance(value, str) else f"{value:g}"
