"""Columns of a table in the one form that is worked with, whatever file they come from: text, numbers, dates, blocks.

A text file says of no value what it is, so each is looked at: "1.5" is a number, "yes" a truth value, "" is missing.
"""

import re
from typing import NamedTuple

import numpy as np

TEXT, NUMBER, BOOLEAN, STRING, DATE, BLOCK = "text", "number", "boolean", "string", "date", "block"
# What stands for no value, in small letters; "?" is that of the UCI repository.
MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "#n/a", "<na>"})
BOOLEAN_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?|\d{1,2}:\d{2}(:\d{2}.*)?"
)


class Cells(NamedTuple):
    """A column of a piece of a table.

    Attributes:
      form: "text" if each value had to be looked at, else what the file says of the column.
      is_missing: bool, shape (rows,).
      numbers: float64, shape (rows,): the numbers, truth values as 0 and 1, dates as seconds since 1970; NaN for what
        is none.
      is_boolean: bool, shape (rows,): which are truth values.
      text: how each value is written, objects of str, shape (rows,); "" where it is missing. None for a block.
      block: numbers of shape (rows, ...), of a column that holds arrays or images; else None.
    """

    form: str
    is_missing: np.ndarray
    numbers: np.ndarray
    is_boolean: np.ndarray
    text: np.ndarray | None
    block: np.ndarray | None = None

    @property
    def is_number(self) -> np.ndarray:
        """Which are numbers and no truth values, bool, shape (rows,)."""
        return ~self.is_missing & ~self.is_boolean & ~np.isnan(self.numbers)


def parse_text(values: list[str] | np.ndarray, has_decimal_comma: bool = False) -> Cells:
    """Cells of a text file.

    Args:
      values: as they stand in the file.
      has_decimal_comma: whether "1,5" is a number.
    """
    import pandas  # late: it takes long, and only tables need it

    text = np.array([value.strip() for value in values] + [None], object)[:-1]
    nothing = np.zeros(len(text), bool)
    if not has_decimal_comma and (numbers := _parse_all_numbers(pandas, text)) is not None:
        return Cells(TEXT, nothing, numbers, nothing, text)
    codes, found = pandas.factorize(text)
    lowered = [value.lower() for value in found]
    is_missing = np.array([value in MISSING_WORDS for value in lowered], bool)
    written = [value.replace(",", ".") for value in found] if has_decimal_comma else found
    numbers = _parse_numbers(pandas, np.array([*written, None], object)[:-1])
    is_boolean = np.array([value in BOOLEAN_WORDS for value in lowered], bool)
    numbers[is_boolean] = [BOOLEAN_WORDS[value] for value in lowered if value in BOOLEAN_WORDS]
    numbers[is_missing] = np.nan
    text = np.where(is_missing[codes], "", text)
    return Cells(TEXT, is_missing[codes], numbers[codes], is_boolean[codes], text)


def _parse_all_numbers(pandas, values: np.ndarray) -> np.ndarray | None:
    """Float64, the quick way, if each is a number; else None."""
    try:
        numbers = np.array(pandas.to_numeric(values), np.float64)
    except (ValueError, TypeError):
        return None
    return None if np.isnan(numbers).any() else numbers


def _parse_numbers(pandas, values: np.ndarray) -> np.ndarray:
    """Float64; NaN for what is none. Infinity is written as inf."""
    return np.array(pandas.to_numeric(values, errors="coerce"), np.float64)


def number_cells(values: np.ndarray, is_missing: np.ndarray | None = None) -> Cells:
    """Cells of a column of numbers or truth values.

    Args:
      values: numbers or bool, shape (rows,); NaN is missing.
      is_missing: what else is.
    """
    is_boolean = np.full(len(values), values.dtype.kind == "b")
    numbers = values.astype(np.float64)
    missing = np.isnan(numbers) if is_missing is None else np.isnan(numbers) | is_missing
    if values.dtype.kind == "f":  # 3.0 is how a column of whole numbers with a gap in it is stored
        text = [repr(int(each)) if each.is_integer() else repr(each) for each in values.tolist()]
    else:
        text = [str(each) for each in values.tolist()]
    stored = np.where(missing, "", np.array([*text, None], object)[:-1])
    numbers[missing] = np.nan
    return Cells(BOOLEAN if values.dtype.kind == "b" else NUMBER, missing, numbers, is_boolean & ~missing, stored)


def string_cells(values: np.ndarray) -> Cells:
    """Cells of a column that the file says to be text: objects of str, None where it is missing."""
    is_missing = np.array([value is None for value in values], bool)
    numbers = np.full(len(values), np.nan)
    return Cells(STRING, is_missing, numbers, np.zeros(len(values), bool), np.where(is_missing, "", values))


def date_cells(values: np.ndarray) -> Cells:
    """Cells of datetime64; NaT is missing."""
    is_missing = np.isnat(values)
    seconds = values.astype("datetime64[ns]").astype(np.int64) / 1e9
    text = np.where(is_missing, "", np.array([*map(str, values), None], object)[:-1])
    return Cells(DATE, is_missing, np.where(is_missing, np.nan, seconds), np.zeros(len(values), bool), text)


def block_cells(block: np.ndarray) -> Cells:
    """Cells that are arrays of one shape."""
    nothing = np.zeros(len(block), bool)
    return Cells(BLOCK, nothing, np.full(len(block), np.nan), nothing, None, block)


def looks_like_date(value: str) -> bool:
    """Whether a text is written as a date or a time of day is."""
    return value[:1].isdigit() and _DATE.fullmatch(value) is not None


def read_times(cells: Cells) -> np.ndarray:
    """Float64: numbers as they are, dates in seconds since 1970; NaN for what is neither.

    Dates are ISO 8601, or day.month.year with dots.
    """
    if cells.form in (DATE, NUMBER, BOOLEAN):
        return cells.numbers
    import pandas

    times = np.where(cells.is_boolean, np.nan, cells.numbers)
    is_open = ~cells.is_missing & ~cells.is_boolean & np.isnan(times)
    if is_open.any():
        codes, found = pandas.factorize(cells.text[is_open])
        stamps = pandas.to_datetime(found, format="ISO8601", utc=True, errors="coerce")
        for form in ("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"):
            stamps = stamps.where(stamps.notna(), pandas.to_datetime(found, format=form, utc=True, errors="coerce"))
        nanoseconds = stamps.tz_localize(None).to_numpy().astype("datetime64[ns]")
        seconds = np.where(np.isnat(nanoseconds), np.nan, nanoseconds.astype(np.int64) / 1e9)
        times[is_open] = seconds[codes]
    return times
