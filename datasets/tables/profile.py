"""What each column of a table is by its values: a number, a category, a date, sentences, a name of its row.

Nothing is decided here about what a column is for, so that a table can be shown that a run would refuse.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import REGRESSION
from datasets.options import split_names
from datasets.tables.cells import DATE as DATE_CELLS
from datasets.tables.number_styles import scan_numbers
from datasets.tables.scan import MOST_DIFFERENT, ColumnScan, is_text_column, scan_table
from datasets.tables.sentences import holds_sentences
from datasets.tables.table import CLIENT_NAMES, TEST_NAMES, TIME_NAMES, Roles, Table, simplify

NUMBER, CATEGORY, DATE, SENTENCE, ID = "number", "category", "date", "sentences", "id"
EMPTY, ARRAY, UNREAD = "empty", "array", "not read"
NUM_EXAMPLES = 3
MOST_CLASSES = 20  # of a column that may be the label
LEAST_ROWS = 10  # of texts, to tell from them that each row has another one
_NEARLY_ALL = 0.95


class ColumnProfile(NamedTuple):
    """A column as a person looks at it.

    Attributes:
      name: of it.
      kind: one of the words above.
      num_missing: rows without a value.
      num_different: values; None if they are too many to be counted.
      lowest: number; NaN if there is none.
      highest: number.
      examples: some different values, as they are written, in the order of the file.
    """

    name: str
    kind: str
    num_missing: int = 0
    num_different: int | None = None
    lowest: float = float("nan")
    highest: float = float("nan")
    examples: tuple[str, ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether it has one value in all rows."""
        return self.num_different == 1 and not self.num_missing

    def describe_range(self) -> str:
        """From where to where numbers go, or how many values there are, in words."""
        if self.kind == NUMBER:
            return f"{self.lowest:.6g} to {self.highest:.6g}"
        return f"{self.num_different:,} different" if self.num_different else ""


def tell_kind(column: ColumnScan) -> str:
    """What a column is, by what was seen of its values."""
    if column.num_missing == column.num_rows:
        return EMPTY
    if column.kind == DATE_CELLS or column.num_dates > 0.5 * max(1, column.num_texts):
        return DATE
    if not is_text_column(column):
        if column.num_booleans and not column.num_numbers:
            return CATEGORY
        return ID if column.is_row_number and column.num_rows > 2 else NUMBER
    if holds_sentences(column):
        return SENTENCE
    are_different = column.num_different > _NEARLY_ALL * column.num_texts
    return ID if are_different and column.num_texts >= LEAST_ROWS else CATEGORY


def profile_table(table: Table, options: DatasetOptions) -> tuple[ColumnProfile, ...]:
    """What each column is; reads the table once or twice.

    Raises:
      DatasetError: a row cannot be read.
    """
    table, names = table.cache_small(), tuple(name for name in table.columns if name not in table.blocks)
    scanned: Mapping[str, ColumnScan] = {}
    while names:
        try:
            scanned = _scan(table, names, options)
            break
        except DatasetError as error:
            # A column of a type that is not read, which the others do not suffer for.
            unread = {name for name in split_names(error.fix.get("drop_columns", "")) if name in names}
            if not unread:
                raise
            names = tuple(name for name in names if name not in unread)
    examples = _take_examples(table, names) if names else {}
    return tuple(
        _profile(name, scanned[name], examples[name])
        if name in scanned
        else ColumnProfile(name, ARRAY if name in table.blocks else UNREAD)
        for name in table.columns
    )


def _scan(table: Table, names: tuple[str, ...], options: DatasetOptions) -> Mapping[str, ColumnScan]:
    # As labels, since of these different numbers are counted.
    roles = Roles("", names, (), "", "", "", frozenset())
    try:
        return scan_numbers(table, roles, dataclasses.replace(options, task=REGRESSION), MOST_DIFFERENT)[1].columns
    except DatasetError:
        return scan_table(table, roles).columns  # where it is left open what numbers are, they are texts here


def _take_examples(table: Table, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The first different values of each column, of the first piece of the table."""
    piece = next(iter(table.read(names)))

    def iterate(name: str) -> Iterator[str]:
        cells, seen = piece.cells[name], set()
        for row in range(piece.num_rows):
            text = cells.get_text(row).strip()
            if text and text not in seen:
                seen.add(text)
                yield text
            if len(seen) == NUM_EXAMPLES:
                return

    return {name: tuple(iterate(name)) for name in names}


def _profile(name: str, column: ColumnScan, examples: tuple[str, ...]) -> ColumnProfile:
    kind = tell_kind(column)
    if is_text_column(column) or column.num_booleans:
        number = None if column.texts is None else len(column.texts)
    else:
        number = None if column.numbers is None else len(column.numbers)
    lowest, highest = (column.lowest, column.highest) if column.num_numbers else (float("nan"), float("nan"))
    return ColumnProfile(name, kind, column.num_missing, number, lowest, highest, examples)


def choose_label(columns: Collection[ColumnProfile], taken: Collection[str] = ()) -> str:
    """The column that is most likely to be predicted, of a table that does not say; "" if none can be.

    The last one with few different values, else the last number; none that is something else by its name.

    Args:
      columns: of the table.
      taken: names of those that are used otherwise.
    """
    others = CLIENT_NAMES | TIME_NAMES | TEST_NAMES | {simplify(name) for name in taken}
    free = [each for each in columns if simplify(each.name) not in others and not each.is_constant]
    few = [each for each in free if each.kind in (CATEGORY, NUMBER) and (each.num_different or 99) <= MOST_CLASSES]
    numbers = [each for each in free if each.kind == NUMBER]
    return next((each.name for each in (*reversed(few), *reversed(numbers))), "")
