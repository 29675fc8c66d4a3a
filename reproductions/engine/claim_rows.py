"""Reads `claims.toml`, which has the claims of a paper as rows; `comparisons` explains how one says what is compared.

Tables of the file that rows share:

- `[at]`: fields of every cell, unless the row or the comparison says otherwise.
- `[names.<field>]`: the known values of a field, and what words call them. A field without such a table takes any.
- `[axes]`: lists that axes name.
- `[seeds]`: by data set, the seeds that decide ("5-19"), where some had been looked at before; all, if it says nothing.
- `[words]`: texts that the rows' texts use as `$name`.
- `[texts]`: what stands for a comparison, with `{0}`, `{1}` for its results as they are written, and `{0.algo}` for the
  name of a field. A comparison without `text` takes the one whose name is the number of its results.

Every other array of tables is a family of rows, `[[claim]]` and `[[further]]` at least. A row has the fields of `Claim`
and

- `compare`: a comparison, or several that must all hold; one is a string or a table of `that`, `text`, `at` and `all`,
- `text`, `at`, `all`: of its comparisons that have none of their own,
- `seeds`: that decide it, in place of those of its data,
- `each`: axes, of which each combination makes a claim; those of `all` make a comparison of the same claim.

Axes are a table of lists, all combinations, the first outermost; or a list of tables. `$axis` is its value in a
comparison, and the name of its value in words. An axis that is called like a field of a cell sets it.
"""

import dataclasses
import itertools
import pathlib
import re
import string
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from launch.settings.errors import FlagError
from launch.settings.seeds import read_seeds
from reproductions.engine.claims import Claim
from reproductions.engine.comparisons import FIELDS, ComparisonError, parse_comparison, spell_value
from reproductions.engine.conditions import Condition

TEXT_KEYS = ("section", "words", "rule", "by_construction", "not_comparable")
ROW_KEYS = (*TEXT_KEYS, "constructed_in", "not_comparable_in", "compare", "text", "at", "all", "seeds", "each")
COMPARISON_KEYS = ("that", "text", "at", "all")
SHARED_KEYS = ("at", "names", "axes", "words", "texts", "seeds")
_PLACE = re.compile(r"\{(\d+)(?:\.(\w+))?\}")

Row = Mapping[str, Any]
Axes = Mapping[str, Any]  # the value of each


class ClaimError(ValueError):
    """A row that cannot be read: file, row and what is wrong, in one line."""


def load_claims(path: pathlib.Path) -> dict[str, tuple[Claim, ...]]:
    """The claims of a file by family, in its order.

    Raises:
      ClaimError: a row cannot be read, or the file is not TOML.
      OSError: there is no such file.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ClaimError(f"{path}: not TOML: {error}") from None
    families = {name: rows for name, rows in content.items() if name not in SHARED_KEYS}
    try:
        book = _Book(content)
    except ComparisonError as error:
        raise ClaimError(f"{path}: {error}") from None
    claims = {}
    for family, rows in families.items():
        if not isinstance(rows, list):
            raise ClaimError(f"{path}: [{family}]: expected [[{family}]], or one of {', '.join(SHARED_KEYS)}")
        claims[family] = ()
        for number, row in enumerate(rows, 1):
            try:
                claims[family] += tuple(book.read_row(row))
            except ComparisonError as error:
                where = f"{family} {number} ({row.get('words', 'without words')})"
                raise ClaimError(f"{path}: {where}: {error}") from None
    return claims


def load_words(path: pathlib.Path) -> dict[str, str]:
    """The texts that the rows of a file share, by name."""
    return _Book(tomllib.loads(path.read_text(encoding="utf-8"))).words


class _Book:
    """What the rows of a file share, and how one is read."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._at: Mapping[str, Any] = content.get("at", {})
        self._names: Mapping[str, Mapping[str, str]] = content.get("names", {})
        self._axes: Mapping[str, Sequence[Any]] = content.get("axes", {})
        self._texts: Mapping[str, str] = content.get("texts", {})
        self._seeds: Mapping[str, str] = content.get("seeds", {})
        self.words: dict[str, str] = {}
        for name, text in content.get("words", {}).items():
            self.words[name] = _fill(text, self.words)
        for dataset in self._seeds:
            self._check("dataset", dataset)

    def read_row(self, row: Row) -> Iterator[Claim]:
        """The claims of a row, one for each combination of its axes `each`."""
        _check_keys(row, ROW_KEYS, needed="words")
        compared = row.get("compare", ())
        compared = [compared] if isinstance(compared, str | dict) else compared
        if not (compared or row.get("by_construction") or row.get("not_comparable")):
            raise ComparisonError("nothing is compared; expected compare, by_construction or not_comparable")
        for axes in self._expand(row.get("each", {})):
            at = {**self._at, **row.get("at", {})}
            texts = {key: _fill(row.get(key, ""), self._name(at | axes)) for key in TEXT_KEYS}
            conditions = tuple(
                condition for each in compared for condition in self._read_comparison(each, row, at, axes)
            )
            yield Claim(
                section=texts["section"],
                text=texts["words"],
                rule=texts["rule"],
                conditions=conditions,
                by_construction=texts["by_construction"],
                constructed_in=frozenset(row.get("constructed_in", ())),
                not_comparable=texts["not_comparable"],
                not_comparable_in=frozenset(row.get("not_comparable_in", ())),
            )

    def _read_comparison(self, compared: str | Row, row: Row, at: Axes, axes: Axes) -> Iterator[Condition]:
        compared = {"that": compared} if isinstance(compared, str) else compared
        _check_keys(compared, COMPARISON_KEYS, needed="that")
        for own in self._expand(compared.get("all", row.get("all", {}))):
            values = at | axes | compared.get("at", {}) | own
            fields = {field: values[field] for field in FIELDS if field in values}
            fields = {field: _fill(value, values) for field, value in fields.items()}
            condition = parse_comparison(_fill(compared["that"], values), fields, self._check)
            cells = [[spell_value("", value) for value in cell] for cell in condition.cells]
            text = compared.get("text", row.get("text", str(len(cells))))
            text = _fill(self._texts.get(text, text), self._name(values))
            if text.isdigit():
                raise ComparisonError(f"no text for a comparison of {text} results; expected text or {text} in [texts]")
            seeds = self._find_seeds(row, condition)
            yield dataclasses.replace(condition, text=self._name_fields(text, cells), seeds=seeds)

    def _find_seeds(self, row: Row, condition: Condition) -> frozenset[int]:
        """The seeds that decide: the row's, else those of its data; none, which means all, if neither says any."""
        of_data = {self._seeds[cell.dataset] for cell in condition.cells if cell.dataset in self._seeds}
        said = [row["seeds"]] if "seeds" in row else sorted(of_data)
        if len(said) > 1:
            raise ComparisonError(f"data with other seeds each, {' and '.join(said)}; expected seeds in the row")
        try:
            return frozenset(int(seed) for text in said for seed in read_seeds(text.split(","), "seeds"))
        except FlagError as error:
            raise ComparisonError(str(error)) from None

    def _expand(self, axes: Any) -> list[Axes]:
        """Every combination of the axes."""
        if isinstance(axes, list):
            return axes
        lists = []
        for name, values in axes.items():
            if isinstance(values, str):
                if values not in self._axes:
                    raise ComparisonError(f"axis {name}: no list {values!r} in [axes]")
                values = self._axes[values]
            lists.append(values)
        return [dict(zip(axes, values, strict=True)) for values in itertools.product(*lists)]

    def _check(self, field: str, value: object) -> None:
        known = self._names.get(field)
        if known is not None and value not in known:
            raise ComparisonError(f"{value!r} is no {field}; expected one of {', '.join(known)}")

    def _name(self, values: Axes) -> dict[str, str]:
        """What words call the values of axes and fields, and the words of the file."""
        return {**self.words, **{field: self._name_value(field, value) for field, value in values.items()}}

    def _name_value(self, field: str, value: object) -> str:
        value = spell_value("", value)
        tables = [self._names[field]] if field in self._names else self._names.values()
        return next((table[value] for table in tables if value in table), value)

    def _name_fields(self, text: str, cells: Sequence[Sequence[str]]) -> str:
        """The text with the names of the fields in it, and places for the results."""

        def name(match: re.Match) -> str:
            index, field = int(match[1]), match[2]
            if index >= len(cells) or field not in (None, *FIELDS):
                raise ComparisonError(f"text {text!r}: {match[0]} of {len(cells)} results")
            return match[0] if field is None else self._name_value(field, cells[index][FIELDS.index(field)])

        return _PLACE.sub(name, text)


def _fill(text: Any, values: Mapping[str, Any]) -> Any:
    """A text with the values of its `$names`; anything else as it is."""
    if not isinstance(text, str):
        return text
    try:
        return string.Template(text).substitute({name: spell_value("", value) for name, value in values.items()})
    except (KeyError, ValueError) as error:
        raise ComparisonError(f"{text!r}: no axis or word {error}; expected one of {', '.join(values)}") from None


def _check_keys(table: Row, keys: Sequence[str], needed: str) -> None:
    if unknown := [key for key in table if key not in keys]:
        raise ComparisonError(f"unknown key {unknown[0]!r}; expected {', '.join(keys)}")
    if needed not in table:
        raise ComparisonError(f"{needed} is missing")
