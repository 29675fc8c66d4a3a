"""Columns of a table as they are worked with, whatever file they come from: text, numbers, dates, blocks.

A text file says of no value what it is, so each is looked at: "1.5" is a number, "yes" a truth value, "" is missing.
Whole columns are converted at once. Where one value is no number, the different values are looked at, each once.
"""

import dataclasses
import typing
from collections.abc import Mapping

import numpy as np

from datasets.options import DEFAULT_MISSING_WORDS, split_names

if typing.TYPE_CHECKING:
    import pyarrow

TEXT, NUMBER, BOOLEAN, STRING, DATE, BLOCK = "text", "number", "boolean", "string", "date", "block"
# What stands for no value, in small letters; "?" is that of the UCI repository. An empty field always does.
MISSING_WORDS = frozenset({"", *DEFAULT_MISSING_WORDS.split(",")})
BOOLEAN_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_BEGINNINGS = frozenset("0123456789.+-iI")  # of numbers; other texts need not be tried


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """A column of a piece of a table.

    Attributes:
      kind: "text" if each value had to be looked at, else what the file says of the column.
      is_missing: bool, shape (rows,).
      numbers: float64, shape (rows,): the numbers, truth values as 0 and 1, dates as seconds since 1970; NaN for what
        is none.
      is_boolean: bool, shape (rows,): which are truth values.
      values: as the file has them, of texts an array of pyarrow, else of NumPy, shape (rows,); of a block the numbers,
        shape (rows, ...).
      order: the texts that can stand in the column, where the file puts them in an order of its own; else ().
      missing_words: what is written where a value is missing and the field not empty, and how often.
    """

    kind: str
    is_missing: np.ndarray
    numbers: np.ndarray
    is_boolean: np.ndarray
    values: "np.ndarray | pyarrow.Array"
    order: tuple[str, ...] = ()
    missing_words: Mapping[str, int] = dataclasses.field(default_factory=dict)

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
        # A value may be missing that is written, such as n/a.
        return np.where(self.is_missing, len(texts), codes), [*texts, ""]


def _write(value: np.generic) -> str:
    """A value of NumPy; 3.0 is how a column of whole numbers with a gap in it is stored. Dates have no empty hours."""
    if isinstance(value, np.floating):
        number = float(value)
        return repr(int(number)) if number.is_integer() else repr(number)
    return np.datetime_as_string(value, "auto") if isinstance(value, np.datetime64) else str(value)


def read_missing_words(option: str) -> frozenset[str]:
    """What `--missing_words` names, in small letters, and the empty field."""
    return frozenset({"", *(word.lower() for word in split_names(option))})


def parse_text(
    values: "list[str] | pyarrow.Array", has_decimal_comma: bool = False, missing_words: frozenset[str] = MISSING_WORDS
) -> Cells:
    """Cells of a text file.

    Args:
      values: as they stand in the file; null for what is known to be missing.
      has_decimal_comma: whether "1,5" is a number.
      missing_words: what stands for no value, in small letters; words that are numbers stand for all equal numbers.
    """
    import pyarrow.compute  # late: it takes long, and only tables need it

    text = pyarrow.array(values, pyarrow.string()) if isinstance(values, list) else values
    written = text
    if has_decimal_comma:
        if pyarrow.compute.any(pyarrow.compute.match_substring(text, ".")).as_py():  # 1.230 is not 1.23 there
            return _parse_different(text, has_decimal_comma)
        written = pyarrow.compute.replace_substring(text, ",", ".")
    try:
        # One text makes the cast fail; then each different value is looked at.
        numbers = np.asarray(written.cast(pyarrow.float64()).fill_null(np.nan))
    except pyarrow.ArrowInvalid:
        numbers = None
    if numbers is None or np.count_nonzero(np.isnan(numbers)) != text.null_count:  # also of nan
        rest, words = _take_words(text, missing_words)
        if rest.null_count > text.null_count:
            cells = parse_text(rest, has_decimal_comma, missing_words)
            return dataclasses.replace(cells, missing_words={**cells.missing_words, **words})
        return mark_missing(_parse_different(text, has_decimal_comma), missing_words)
    return mark_missing(Cells(TEXT, np.isnan(numbers), numbers, np.zeros(len(numbers), bool), text), missing_words)


def _take_words(text: "pyarrow.Array", missing_words: frozenset[str]) -> "tuple[pyarrow.Array, dict[str, int]]":
    """(null for these words, how often each stands there as it is written, "" left out)."""
    import pyarrow
    import pyarrow.compute as compute

    words = pyarrow.array(sorted(missing_words), pyarrow.string())
    is_word = compute.is_in(compute.utf8_lower(compute.utf8_trim_whitespace(text)), words)
    if not compute.any(is_word).as_py():
        return text, {}
    counts = compute.value_counts(compute.utf8_trim_whitespace(text.filter(is_word))).to_pylist()
    found = {each["values"]: each["counts"] for each in counts if each["values"]}
    return compute.if_else(is_word, pyarrow.scalar(None, pyarrow.string()), text), found


def mark_missing(cells: Cells, missing_words: frozenset[str]) -> Cells:
    """The same cells, without a value where a number stands that is one of the words, or a text of a typed file is."""
    if not missing_words:
        return cells
    # -999 stands for -999.0, too.
    given = np.array([number for word in missing_words if not np.isnan(number := read_number(word))])
    if cells.kind == STRING:
        text, words = _take_words(cells.values, missing_words)
        return dataclasses.replace(
            cells, values=text, is_missing=np.asarray(text.is_null()), missing_words={**cells.missing_words, **words}
        )
    is_word = np.isin(cells.numbers, given) & cells.is_number if len(given) else np.zeros(0, bool)
    if not is_word.any() or cells.kind == DATE:
        return cells
    numbers, counts = np.unique(cells.numbers[is_word], return_counts=True)
    words = {f"{number:.15g}": int(count) for number, count in zip(numbers, counts, strict=True)}
    return dataclasses.replace(
        cells,
        is_missing=cells.is_missing | is_word,
        numbers=np.where(is_word, np.nan, cells.numbers),
        missing_words={**cells.missing_words, **words},
    )


def _parse_different(text: "pyarrow.Array", has_decimal_comma: bool) -> Cells:
    """Cells of a column that does not hold numbers alone: its different values are looked at."""
    import pyarrow.compute

    encoded = pyarrow.compute.utf8_trim_whitespace(text).dictionary_encode()
    found = encoded.dictionary.to_pylist()
    lowered = [value.lower() for value in found]
    # The last is for values that are null.
    is_missing = np.array([*(not value for value in found), True])
    is_boolean = np.array([*(value in BOOLEAN_WORDS for value in lowered), False])
    numbers = np.array([*(read_number(value, has_decimal_comma) for value in found), np.nan])
    numbers[is_boolean] = [BOOLEAN_WORDS[value] for value in lowered if value in BOOLEAN_WORDS]
    codes = np.asarray(encoded.indices.fill_null(len(found)))
    return Cells(TEXT, is_missing[codes], numbers[codes], is_boolean[codes], encoded)


def read_number(value: str, has_decimal_comma: bool = False) -> float:
    """Of a text without blanks around it; NaN for what is no plain number. Infinity is written as inf."""
    if has_decimal_comma:
        value = "" if "." in value else value.replace(",", ".")
    # Python reads 1_000, nan and digits of other scripts as numbers, too.
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
    # Whole numbers have some number where they are missing.
    numbers[missing] = np.nan
    return Cells(BOOLEAN if is_truth else NUMBER, missing, numbers, np.full(len(values), is_truth) & ~missing, values)


def string_cells(values: "pyarrow.Array", order: tuple[str, ...] = ()) -> Cells:
    """Cells of a column that the file says to be text, and may put in an order; null where it is missing."""
    nothing = np.zeros(len(values), bool)
    return Cells(STRING, np.asarray(values.is_null()), np.full(len(values), np.nan), nothing, values, order)


def date_cells(values: np.ndarray) -> Cells:
    """Cells of datetime64; NaT is missing."""
    is_missing = np.isnat(values)
    # Of NaT this is a number, too, which is taken out below.
    seconds = values.astype("datetime64[ns]").astype(np.int64) / 1e9
    return Cells(DATE, is_missing, np.where(is_missing, np.nan, seconds), np.zeros(len(values), bool), values)


def block_cells(block: np.ndarray) -> Cells:
    """Cells that are arrays of one shape."""
    nothing = np.zeros(len(block), bool)
    return Cells(BLOCK, nothing, np.full(len(block), np.nan), nothing, block)
