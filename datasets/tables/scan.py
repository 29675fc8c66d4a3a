"""Looks through a table once: what each column holds, where the first odd value is, and which values are different."""

import dataclasses
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from datasets.client_source import TEST, TRAIN
from datasets.errors import DatasetError, propose
from datasets.names import MOST_LETTERS, sort_key
from datasets.options import AUTO, quote_name
from datasets.stored_source import SPLIT_ORDER
from datasets.tables.cells import DATE, STRING, TEXT, Cells
from datasets.tables.table import NO_COLUMN, SPLIT_NAMES, Location, Piece, Roles, Sighting, Table
from datasets.tables.times import TimeScan, TimeStyle, are_whole_dates, read_times
from datasets.tables.written_numbers import COMMA, POINT, is_odd, read_written

if TYPE_CHECKING:
    import pyarrow

_SIGNS = {POINT: ".", COMMA: ","}
_NUM_QUICK = 1000  # texts that are looked at before the others
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?|\d{1,2}:\d{2}(:\d{2}.*)?"
)  # or a time of day


@dataclasses.dataclass
class PlainMarks:
    """What the marks of a column can mean, as far as it was looked at.

    Attributes:
      mark: which they are, `POINT` or `COMMA`.
      is_sure: whether some mark surely begins decimals; then nothing more is looked at.
      sample: the first number with a mark; "" if there is none.
      has_none: whether some number has none.
      ends_in_zero: whether some number ends in a zero behind its mark.
    """

    mark: str
    is_sure: bool = False
    sample: str = ""
    has_none: bool = False
    ends_in_zero: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the marks may stand between groups of three digits."""
        return bool(self.sample) and not self.is_sure

    @property
    def is_strange(self) -> bool:
        """Whether no program writes decimals so: 1.230 beside 900, which would be 900.000, or the other 1.23."""
        return self.is_open and self.has_none and self.ends_in_zero

    def add(self, cells: Cells) -> None:
        """Looks at the next values, of a column of the kind "text"."""
        if self.is_sure:
            return
        import pyarrow

        # Where each value was looked at, the different texts are at hand, and enough.
        texts = cells.values.dictionary if isinstance(cells.values, pyarrow.DictionaryArray) else cells.values
        if _SIGNS[self.mark].encode() not in bytes(texts.buffers()[2] or b""):  # of whole numbers, in no time
            self.has_none = True
            return
        self._look(texts.slice(0, _NUM_QUICK))
        if not self.is_sure and len(texts) > _NUM_QUICK:
            self._look(texts)

    def _look(self, texts: "pyarrow.Array") -> None:
        import pyarrow.compute

        marked = texts.filter(pyarrow.compute.match_substring(texts, _SIGNS[self.mark]))
        self.has_none |= len(marked) < len(texts) - texts.null_count
        if len(marked):
            grouped = rf"^\s*[+-]?[1-9]\d{{0,2}}{re.escape(_SIGNS[self.mark])}\d{{3}}\s*$"
            self.is_sure = not pyarrow.compute.all(pyarrow.compute.match_substring_regex(marked, grouped)).as_py()
            self.sample = self.sample or marked[0].as_py().strip()
            self.ends_in_zero |= pyarrow.compute.any(pyarrow.compute.match_substring_regex(marked, r"0\s*$")).as_py()


MOST_WORDS = 5  # different texts among numbers that may each stand for no value
MOST_DIFFERENT = 10_000  # different values of a column that are counted; of a label, the most classes
MOST_NUMBERS = 1000  # of them, as long as all are numbers
LARGEST = float(np.finfo(np.float32).max)
# Numbers that people write for no value: below all others, or far above them.
PLACEHOLDERS = (-9.0, -99.0, -999.0, -9999.0, -99999.0)
HIGH_PLACEHOLDERS = (999.0, 9999.0, 99999.0, 999999.0)
_TEST_WORDS = {"true": TEST, "1": TEST, "yes": TEST, "false": TRAIN, "0": TRAIN, "no": TRAIN, **SPLIT_NAMES}
_MOST_LOOKED_AT = 4 * MOST_NUMBERS  # rows, to tell quickly that a column has more different numbers than are counted


@dataclasses.dataclass
class ColumnScan:
    """What a column holds.

    Attributes:
      kind: of its cells.
      num_rows: looked at.
      num_missing: values that are.
      missing_words: what is written where a value is missing and the field not empty, and how often.
      placeholders: numbers such as -999 that may stand for no value, and how often.
      lowest_other: number that is none of these.
      highest_other: number that is none of these.
      first_missing: where; None for nowhere, as with the next.
      num_numbers: values that are numbers and no truth values.
      num_booleans: truth values.
      num_dates: texts that are written as dates, of a column of the kind "date" all.
      first_text: (value, where) of the first that is neither number nor truth value.
      first_number: the same of the first number.
      first_endless: the same of the first number that float32 cannot hold.
      is_whole: whether all numbers are.
      is_row_number: whether the numbers count the rows.
      are_dates: whether all numbers are dates with a year of four digits, such as 31122024.
      lowest: number.
      highest: number.
      numbers: the different ones; None if they are more than `most_different`, or not looked for.
      texts: the different values as they are written, where they are text or may be, and how often each stands in a row
        that is not for the test; None if they are more.
      order: the texts that can be there, where the file puts them in an order of its own; else ().
      test_texts: how often each of them stands in a row that is for the test.
      most_different: values that are counted.
      points: what the points in plain numbers can mean.
      commas: the same of commas, of files in which plain numbers have these.
      has_written: whether some text is a number written for people, and not digits alone.
      has_odd: whether some text is a bound, a range or the like.
      num_different: texts, each counted once in each piece.
      num_blanks: in these.
    """

    most_different: int = MOST_DIFFERENT
    kind: str = ""
    num_rows: int = 0
    num_missing: int = 0
    missing_words: Counter[str] = dataclasses.field(default_factory=Counter)
    placeholders: Counter[float] = dataclasses.field(default_factory=Counter)
    lowest_other: float = np.inf
    highest_other: float = -np.inf
    first_missing: Location | None = None
    num_numbers: int = 0
    num_booleans: int = 0
    num_dates: int = 0
    first_text: Sighting | None = None
    first_number: Sighting | None = None
    first_endless: Sighting | None = None
    is_whole: bool = True
    is_row_number: bool = True
    are_dates: bool = True
    lowest: float = np.inf
    highest: float = -np.inf
    numbers: set[float] | None = dataclasses.field(default_factory=set)
    texts: Counter[str] | None = dataclasses.field(default_factory=Counter)
    order: tuple[str, ...] = ()
    test_texts: Counter[str] = dataclasses.field(default_factory=Counter)
    points: PlainMarks = dataclasses.field(default_factory=lambda: PlainMarks(POINT))
    commas: PlainMarks = dataclasses.field(default_factory=lambda: PlainMarks(COMMA))
    has_written: bool = False
    has_odd: bool = False
    num_different: int = 0
    num_blanks: int = 0

    @property
    def num_texts(self) -> int:
        """Values that are neither missing, nor a number, nor a truth value."""
        return self.num_rows - self.num_missing - self.num_numbers - self.num_booleans

    def add(self, cells: Cells, is_test: np.ndarray, piece: Piece) -> None:
        """Looks at the next values.

        Args:
          cells: of the column.
          is_test: which rows are for the test.
          piece: that they are of.
        """
        if self.kind not in ("", cells.kind):
            raise DatasetError(
                f"{piece.locate(0)}: {cells.kind}, before it was {self.kind}; expected one kind of values"
            )
        self.kind, self.order = cells.kind, self.order or cells.order
        self.add_missing(cells, piece)
        is_number = cells.is_number
        is_text = ~(is_number | cells.is_missing | cells.is_boolean)
        self.first_text = self.first_text or piece.find_first(cells, is_text)
        self.first_number = self.first_number or piece.find_first(cells, is_number)
        with np.errstate(invalid="ignore"):
            is_endless = is_number & (np.abs(cells.numbers) > LARGEST)
        self.first_endless = self.first_endless or piece.find_first(cells, is_endless)
        numbers, num_rows = cells.numbers[is_number], len(is_number)
        if self.is_row_number:
            lowest = self.lowest if np.isfinite(self.lowest) else numbers[0] if len(numbers) else 0
            # Rows may be counted from any number on.
            first = self.num_rows - num_rows + lowest
            self.is_row_number = len(numbers) == num_rows and bool((numbers == first + np.arange(num_rows)).all())
        # One number that is none decides, so that later pieces cost nothing.
        self.are_dates = self.are_dates and are_whole_dates(numbers)
        if len(numbers):
            self.lowest, self.highest = min(self.lowest, numbers.min()), max(self.highest, numbers.max())
            self.is_whole = self.is_whole and bool((numbers == np.rint(numbers)).all())
            self._add_placeholders(numbers)
        if len(numbers) and self.numbers is not None:
            self.numbers.update(np.unique(numbers).tolist())
            self.numbers = None if len(self.numbers) > self.most_different else self.numbers
        if cells.kind == TEXT and len(numbers):
            self.points.add(cells)
            self.commas.add(cells)
        self._add_texts(cells, is_text, is_test)
        self.num_numbers += len(numbers)
        self.num_booleans += int(cells.is_boolean.sum())

    def sort_texts(self) -> tuple[str, ...]:
        """The different values in the file's own order, or as people sort them. They must not be too many."""
        ranks = {text: rank for rank, text in enumerate(self.order)}
        return tuple(sorted(self.texts, key=lambda text: (ranks.get(text, len(ranks)), sort_key(text))))

    def add_missing(self, cells: Cells, piece: Piece) -> None:
        """Looks at which of the next values are missing, and at nothing else."""
        if self.first_missing is None and cells.is_missing.any():
            self.first_missing = piece.locate(int(np.argmax(cells.is_missing)))
        self.missing_words.update(cells.missing_words)
        self.num_missing += int(cells.is_missing.sum())
        self.num_rows += len(cells.is_missing)

    def _add_placeholders(self, numbers: np.ndarray) -> None:
        others = numbers
        # Of most columns the bounds tell at once that there is none.
        if self.lowest < 0 or self.highest in HIGH_PLACEHOLDERS:
            is_placeholder = np.isin(numbers, PLACEHOLDERS if self.lowest < 0 else HIGH_PLACEHOLDERS)
            self.placeholders.update(numbers[is_placeholder].tolist())
            others = numbers[~is_placeholder]
        self.lowest_other = min(self.lowest_other, others.min(initial=np.inf))
        self.highest_other = max(self.highest_other, others.max(initial=-np.inf))

    def _add_texts(self, cells: Cells, is_text: np.ndarray, is_test: np.ndarray) -> None:
        if self.kind == DATE:
            self.num_dates += int(is_text.sum() + cells.is_number.sum())
            return
        # Numbers are no categories, and a table can have very many columns of them.
        most = self.most_different if self.first_text else min(self.most_different, MOST_NUMBERS)
        if self.texts is not None and cells.kind in (TEXT, STRING) and not self.first_text:
            few = cells.numbers[:_MOST_LOOKED_AT]
            self.texts = None if len(np.unique(few)) > most + 1 else self.texts
        if not is_text.any() and (self.texts is None or cells.kind not in (TEXT, STRING)):
            return
        codes, texts = cells.list_texts()
        if is_text.any():
            is_date = np.array([text[:1].isdigit() and _DATE.fullmatch(text) is not None for text in texts])
            self.num_dates += int(is_date[codes[is_text]].sum())
            found = [texts[code] for code in np.unique(codes[is_text])]
            self.has_written = self.has_written or any(
                read_written(text) for text in found if not (text.isascii() and text.isdigit())
            )
            self.has_odd = self.has_odd or any(map(is_odd, found))
            self.num_different += len(found)
            self.num_blanks += sum(text.count(" ") for text in found)
        if self.texts is not None and cells.kind in (TEXT, STRING):
            counts = np.bincount(codes[~cells.is_missing], minlength=len(texts))
            in_test = np.bincount(codes[~cells.is_missing & is_test], minlength=len(texts))
            self.texts.update({texts[code]: int(counts[code] - in_test[code]) for code in np.flatnonzero(counts)})
            self.test_texts.update({texts[code]: int(in_test[code]) for code in np.flatnonzero(in_test)})
            self.texts = None if len(self.texts) > most else self.texts


@dataclasses.dataclass
class TableScan:
    """What a table holds.

    Attributes:
      columns: of all that are used and no block.
      num_rows: of the table.
      num_incomplete: rows in which a column that is used has no value.
      block_shape: of an example, where a block is the feature; () before the first row.
      block_dtype: of it.
      most_ones: of several label columns, the most ones in a row; -1 if there are other numbers than 0 and 1.
      fewest_ones: the fewest.
      time_style: what the values are that order the rows.
    """

    columns: dict[str, ColumnScan]
    num_rows: int = 0
    num_incomplete: int = 0
    block_shape: tuple[int, ...] = ()
    block_dtype: str = ""
    most_ones: int = 0
    fewest_ones: int = 2**31
    time_style: TimeStyle = TimeStyle()


def scan_table(table: Table, roles: Roles, most_categories: int = MOST_DIFFERENT, date_form: str = AUTO) -> TableScan:
    """Reads a table once.

    Args:
      table: to be read.
      roles: of its columns.
      most_categories: different texts of a feature that are counted.
      date_form: what `--date_form` says.

    Raises:
      DatasetError: it has no row, a row has no client, time or test mark that can be read, or reading fails.
    """
    columns = {name: ColumnScan(most_categories, numbers=None) for name in roles.used}
    scan = TableScan(columns | {name: ColumnScan() for name in roles.labels})
    times = TimeScan(roles.time, date_form)
    values = {*roles.labels, roles.weight, *roles.features}  # of others it only matters whether they are there
    for piece in table.read(roles.used):
        scan.num_rows += piece.num_rows
        is_test = read_splits(piece, roles) == SPLIT_ORDER.index(TEST)
        piece = ignore_test_weights(piece, roles, is_test)
        is_incomplete = np.zeros(piece.num_rows, bool)
        for name, column in scan.columns.items():
            if name in values:
                column.add(piece.cells[name], is_test, piece)
            else:
                column.add_missing(piece.cells[name], piece)
            is_incomplete |= piece.cells[name].is_missing
        scan.num_incomplete += int(is_incomplete.sum())
        if roles.time:
            with propose(time_column=NO_COLUMN):
                times.add(piece.cells[roles.time], piece)
        if len(roles.labels) > 1:
            rows = np.stack([piece.cells[name].numbers for name in roles.labels], axis=1)
            rows = rows[~np.isnan(rows).any(axis=1)]
            if not ((rows == 0) | (rows == 1)).all():
                scan.most_ones = -1
            if len(rows) and scan.most_ones >= 0:
                ones = rows.sum(axis=1)
                scan.most_ones = max(scan.most_ones, int(ones.max()))
                scan.fewest_ones = min(scan.fewest_ones, int(ones.min()))
    if not scan.num_rows:
        raise DatasetError(f"{table.path}: no rows below the names of the columns, expected at least one")
    with propose(time_column=NO_COLUMN):
        scan.time_style = times.decide()
    for piece in table.read((roles.block,)) if roles.block and not roles.text else ():
        # The shape of the first example; whether all have it is seen when they are read.
        block = piece.cells[roles.block].values
        scan.block_shape, scan.block_dtype = tuple(block.shape[1:]), block.dtype.name
        break
    return scan


def read_splits(piece: Piece, roles: Roles) -> np.ndarray:
    """The part that each row is in, as index into `SPLIT_ORDER`, uint8 (rows,).

    Raises:
      DatasetError: the column says something else; it names the row.
    """
    if not roles.test:
        return np.full(piece.num_rows, SPLIT_ORDER.index(piece.split), np.uint8)
    cells = piece.cells[roles.test]
    codes, texts = cells.list_texts()
    splits = [_TEST_WORDS.get(text.lower()) for text in texts]
    wrong = piece.find_first(cells, np.array([split is None for split in splits])[codes])
    if wrong:
        said = repr(wrong.text) if wrong.text else "nothing"
        raise DatasetError(
            f"{wrong.where}: column {roles.test!r} says {said}, expected true, 1 or test for the rows of the "
            f"test, false, 0 or train for others, or validation; --test_column names another column, or is {NO_COLUMN}",
            {"test_column": NO_COLUMN},
        )
    return np.array([SPLIT_ORDER.index(split or TRAIN) for split in splits], np.uint8)[codes]


def read_row_times(piece: Piece, roles: Roles, style: TimeStyle) -> np.ndarray:
    """The time of each row, float64, of a column that `TimeScan` has looked through; NaN where it is missing.

    Raises:
      DatasetError: it is no time; it names the row.
    """
    cells = piece.cells[roles.time]
    times = read_times(cells, style)
    wrong = piece.find_first(cells, ~cells.is_missing & ~np.isfinite(times))
    if wrong:
        raise DatasetError(
            f"{wrong.where}: column {roles.time!r} has {wrong.text!r}, expected numbers, "
            f"dates as in 2024-12-31 23:59:59, or 31.12.2024; --time_column names another column, or is {NO_COLUMN}",
            {"time_column": NO_COLUMN},
        )
    return times


def ignore_test_weights(piece: Piece, roles: Roles, is_test: np.ndarray) -> Piece:
    """The piece whose test rows weigh 0, whatever stands there: what is tested is not weighed."""
    if not (roles.weight and is_test.any()):
        return piece
    cells = piece.cells[roles.weight]
    changed = {name: getattr(cells, name) & ~is_test for name in ("is_missing", "is_boolean")}
    # A weight of a test row may even be missing or a text.
    cells = dataclasses.replace(cells, numbers=np.where(is_test, 0.0, cells.numbers), **changed)
    return piece._replace(cells={**piece.cells, roles.weight: cells})


def read_row_weights(piece: Piece, roles: Roles) -> np.ndarray:
    """The weight of each row, float32, shape (rows,); 0 where it is missing.

    Raises:
      DatasetError: it is no number of at least 0 that float32 can hold; it names the row.
    """
    cells = piece.cells[roles.weight]
    # Dates have numbers, the seconds since 1970, which are no weights.
    numbers = np.full(piece.num_rows, np.nan) if cells.kind == DATE else cells.numbers
    wrong = piece.find_first(cells, ~cells.is_missing & ~((numbers >= 0) & (numbers <= LARGEST)))
    if wrong:
        raise DatasetError(
            f"{wrong.where}: weight column {roles.weight!r} has {wrong.text!r}, expected "
            f"a finite number of at least 0; correct it, or name another by --weight_column"
        )
    return np.where(cells.is_missing, 0.0, numbers).astype(np.float32)


def count_as_missing(column: ColumnScan) -> dict[str, str]:
    """The flag, as in `DatasetError.fix`, that takes the first text among numbers for no value; {} of many texts."""
    is_whole = len(column.first_text.text) <= MOST_LETTERS
    is_taken = is_whole and column.num_different <= MOST_WORDS
    return {"missing_words": quote_name(column.first_text.text)} if is_taken else {}


def is_free_text(column: ColumnScan) -> bool:
    """Whether its values are sentences, or nearly each row has another one, as names and ids are."""
    return column.num_blanks >= 3 * column.num_different or column.num_different > 0.5 * column.num_texts


def is_text_column(column: ColumnScan) -> bool:
    """Whether its values are names of something, and not numbers with a mistake among them."""
    if column.kind == STRING:
        return True
    known = column.num_numbers + column.num_booleans + column.num_texts
    return column.num_texts > 0.1 * known or (column.num_texts > 0 and not column.num_numbers)
