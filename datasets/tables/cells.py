"""Columns of a table in the one form that is worked with, whatever file they come from: text, numbers, dates, blocks.

A text file says of no value what it is, so each is looked at: "1.5" is a number, "yes" a truth value, "" is missing.
Whole columns are converted at once. Where one value is no number, the different values are looked at, each once.
"""

import dataclasses
import itertools
import re
import typing

import numpy as np

if typing.TYPE_CHECKING:
    import pyarrow

TEXT, NUMBER, BOOLEAN, STRING, DATE, BLOCK = "text", "number", "boolean", "string", "date", "block"
# What stands for no value, in small letters; "?" is that of the UCI repository.
MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "#n/a", "<na>"})
BOOLEAN_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_BEGINNINGS = frozenset("0123456789.+-iI")  # of numbers; other texts need not be tried
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?|\d{1,2}:\d{2}(:\d{2}.*)?"
)


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """A column of a piece of a table.

    Attributes:
      form: "text" if each value had to be looked at, else what the file says of the column.
      is_missing: bool, shape (rows,).
      numbers: float64, shape (rows,): the numbers, truth values as 0 and 1, dates as seconds since 1970; NaN for what
        is none.
      is_boolean: bool, shape (rows,): which are truth values.
      values: as the file has them, of texts an array of pyarrow, else of NumPy, shape (rows,); of a block the numbers,
        shape (rows, ...).
      order: the texts that can stand in the column, where the file puts them in an order of its own; else ().
    """

    form: str
    is_missing: np.ndarray
    numbers: np.ndarray
    is_boolean: np.ndarray
    values: "np.ndarray | pyarrow.Array"
    order: tuple[str, ...] = ()

    @property
    def is_number(self) -> np.ndarray:
        """Which are numbers and no truth values, bool, shape (rows,)."""
        return ~(self.is_missing | self.is_boolean | np.isnan(self.numbers))

    @property
    def num_bytes(self) -> int:
        """In memory."""
        return self.values.nbytes + self.numbers.nbytes

    def get_text(self, row: int) -> str:
        """How a value is written; "" where it is missing."""
        if self.is_missing[row]:
            return ""
        value = self.values[row]
        return _write(value) if isinstance(self.values, np.ndarray) else value.as_py()

    def list_texts(self) -> tuple[np.ndarray, list[str]]:
        """(codes, texts): how the different values are written, and which of them each row has; "" where it is missing.

        The codes are int64, shape (rows,). Some text may stand in no row.
        """
        if isinstance(self.values, np.ndarray):
            found, codes = np.unique(self.values, return_inverse=True)
            texts = list(map(_write, found))
        else:
            encoded = self.values.dictionary_encode()
            texts = encoded.dictionary.to_pylist()
            codes = np.asarray(encoded.indices.fill_null(len(texts)), np.int64)
        return np.where(self.is_missing, len(texts), codes), [*texts, ""]


def _write(value: np.generic) -> str:
    """A value of NumPy; 3.0 is how a column of whole numbers with a gap in it is stored."""
    if isinstance(value, np.floating):
        number = float(value)
        return repr(int(number)) if number.is_integer() else repr(number)
    return str(value)


def spell_missing() -> list[str]:
    """All spellings of `MISSING_WORDS`, in small and large letters."""
    cases = {word: itertools.product(*({letter, letter.upper()} for letter in word)) for word in MISSING_WORDS}
    return ["".join(letters) for spelled in cases.values() for letters in spelled]


def parse_text(values: "list[str] | pyarrow.Array", has_decimal_comma: bool = False) -> Cells:
    """Cells of a text file.

    Args:
      values: as they stand in the file; null for what is known to be missing.
      has_decimal_comma: whether "1,5" is a number.
    """
    import pyarrow.compute  # late: it takes long, and only tables need it

    text = pyarrow.array(values, pyarrow.string()) if isinstance(values, list) else values
    written = pyarrow.compute.replace_substring(text, ",", ".") if has_decimal_comma else text
    try:
        numbers = np.asarray(written.cast(pyarrow.float64()).fill_null(np.nan))
    except pyarrow.ArrowInvalid:
        return _parse_different(text, has_decimal_comma)
    is_missing = np.isnan(numbers)
    if np.count_nonzero(is_missing) != text.null_count:  # -nan
        return _parse_different(text, has_decimal_comma)
    return Cells(TEXT, is_missing, numbers, np.zeros(len(numbers), bool), text)


def _parse_different(text: "pyarrow.Array", has_decimal_comma: bool) -> Cells:
    """Cells of a column that does not hold numbers alone: its different values are looked at."""
    import pyarrow.compute

    encoded = pyarrow.compute.utf8_trim_whitespace(text).dictionary_encode()
    found = encoded.dictionary.to_pylist()
    lowered = [value.lower() for value in found]
    written = [value.replace(",", ".") for value in found] if has_decimal_comma else found
    # The last is for values that are null.
    is_missing = np.array([*(value in MISSING_WORDS for value in lowered), True])
    is_boolean = np.array([*(value in BOOLEAN_WORDS for value in lowered), False])
    numbers = np.array([*map(_read_number, written), np.nan])
    numbers[is_boolean] = [BOOLEAN_WORDS[value] for value in lowered if value in BOOLEAN_WORDS]
    numbers[is_missing] = np.nan
    codes = np.asarray(encoded.indices.fill_null(len(found)))
    return Cells(TEXT, is_missing[codes], numbers[codes], is_boolean[codes], encoded)


def _read_number(value: str) -> float:
    """Of a text without blanks around it; NaN for what is no number. Infinity is written as inf."""
    if value[:1] not in _BEGINNINGS or "_" in value or not value.isascii():
        return np.nan
    try:
        return float(value)
    except ValueError:
        return np.nan


def number_cells(values: np.ndarray, is_missing: np.ndarray | None = None) -> Cells:
    """Cells of a column of numbers or truth values.

    Args:
      values: numbers or bool, shape (rows,); NaN is missing.
      is_missing: what else is.
    """
    is_truth = values.dtype.kind == "b"
    numbers = values.astype(np.float64)
    missing = np.isnan(numbers) if is_missing is None else np.isnan(numbers) | is_missing
    numbers[missing] = np.nan
    return Cells(BOOLEAN if is_truth else NUMBER, missing, numbers, np.full(len(values), is_truth) & ~missing, values)


def string_cells(values: "pyarrow.Array", order: tuple[str, ...] = ()) -> Cells:
    """Cells of a column that the file says to be text, and may put in an order; null where it is missing."""
    nothing = np.zeros(len(values), bool)
    return Cells(STRING, np.asarray(values.is_null()), np.full(len(values), np.nan), nothing, values, order)


def date_cells(values: np.ndarray) -> Cells:
    """Cells of datetime64; NaT is missing."""
    is_missing = np.isnat(values)
    seconds = values.astype("datetime64[ns]").astype(np.int64) / 1e9
    return Cells(DATE, is_missing, np.where(is_missing, np.nan, seconds), np.zeros(len(values), bool), values)


def block_cells(block: np.ndarray) -> Cells:
    """Cells that are arrays of one shape."""
    nothing = np.zeros(len(block), bool)
    return Cells(BLOCK, nothing, np.full(len(block), np.nan), nothing, block)


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
        codes, found = cells.list_texts()
        stamps = pandas.to_datetime(found, format="ISO8601", utc=True, errors="coerce")
        for form in ("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"):
            stamps = stamps.where(stamps.notna(), pandas.to_datetime(found, format=form, utc=True, errors="coerce"))
        nanoseconds = stamps.tz_localize(None).to_numpy().astype("datetime64[ns]")
        seconds = np.where(np.isnat(nanoseconds), np.nan, nanoseconds.astype(np.int64) / 1e9)
        times[is_open] = seconds[codes[is_open]]
    return times
