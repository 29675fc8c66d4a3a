"""How the numbers of a table are written: decided from all values of a column, then every value is read so.

Plain numbers were read already. A column that holds others, such as $45 or 1.230,50, is gone through once more; its
values must have one unit and one decimal mark. What its own values leave open, the other columns decide, or
`--decimal_mark`; else an error says what could be meant.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import REGRESSION
from datasets.npz_labels import MOST_FLOAT_CLASSES
from datasets.options import AUTO, quote_name
from datasets.tables.cells import STRING, TEXT, Cells, read_missing_words
from datasets.tables.labels import guess_table_task
from datasets.tables.scan import ColumnScan, TableScan, scan_table
from datasets.tables.table import Location, Piece, Roles, Table, drop, leave_out
from datasets.tables.written_numbers import (
    COMMA,
    EITHER,
    EXCEL_ERRORS,
    OPEN,
    PLAIN,
    POINT,
    ZERO,
    is_odd,
    is_unit,
    read_written,
)

MOST_KINDS = 1000  # of a column; what has more is text
MANY = 20  # different numbers, beside which a bound or a range is no category
WORD, ODD, ERROR = "word", "odd", "error"  # dresses of what is no number


class Kind(NamedTuple):
    """A way in which values are written, see `written_numbers.Written`.

    `read_with` is the decimal mark with which they were read already, `EITHER` if that does not matter; "" if they were
    not.
    """

    dress: str
    mark: str = EITHER
    is_code: bool = False
    is_whole: bool = True
    read_with: str = ""
    is_zero: bool = False


@dataclasses.dataclass
class Found:
    """The first value of a kind, and how many there are."""

    text: str
    where: Location
    count: int = 0


class WrittenColumn:
    """All values of a column, by the ways in which they are written.

    Attributes:
      missing_words: what stands for no value, in small letters.
      kinds: the ways that there are.
      different: the different numbers, as long as they are few.
    """

    def __init__(self, missing_words: frozenset[str]):
        self.missing_words = missing_words
        self.kinds: dict[Kind, Found] = {}
        self.different: set[float] = set()

    def add(self, cells: Cells, piece: Piece) -> None:
        """Looks at the next values; `piece` is what they are of."""
        # Then it is text, whatever comes.
        if len(self.kinds) > MOST_KINDS:
            return
        codes, texts = cells.list_texts()
        is_used = ~cells.is_missing
        numbers = np.full(len(texts), np.nan)
        numbers[codes] = cells.numbers
        kinds: dict[Kind, int] = {}
        of_text = np.full(len(texts), -1)
        for code in np.unique(codes[is_used]):
            text = texts[code]
            if text.strip().lower() not in self.missing_words:
                of_text[code] = kinds.setdefault(self._tell(text, numbers[code]), len(kinds))
        of_row = np.where(is_used, of_text[codes], -1)
        counts = np.bincount(of_row[of_row >= 0], minlength=len(kinds))
        for kind, code in kinds.items():
            if kind not in self.kinds:
                row = int(np.argmax(of_row == code))
                self.kinds[kind] = Found(texts[codes[row]].strip()[:60], piece.locate(row))
            self.kinds[kind].count += int(counts[code])

    def _tell(self, text: str, number: float) -> Kind:
        found = read_written(text)
        if found is None:
            is_error = text.strip().lower() in EXCEL_ERRORS
            return Kind(ERROR if is_error else ODD if is_odd(text) else WORD)
        if len(self.different) <= MANY:
            self.different.add(found.comma if math.isnan(found.point) else found.point)
        read_with = "" if math.isnan(number) else found.mark
        if read_with == OPEN:
            read_with = POINT if number == found.point else COMMA
        is_zero = 0 in (found.point, found.comma)
        return Kind(found.dress, found.mark, found.is_code, found.is_whole, read_with, is_zero)

    def find(self, is_it: Callable[[Kind], bool]) -> Found | None:
        """The first value of the most frequent of these kinds; None if there is none."""
        found = [found for kind, found in self.kinds.items() if is_it(kind)]
        return max(found, key=lambda each: each.count) if found else None


def is_number(kind: Kind) -> bool:
    """Whether values of a kind are numbers."""
    return kind.dress not in (WORD, ODD, ERROR)


MOST_STRAYS = 0.1  # of the values, that are mistakes among numbers; of more, the column is text
_FEW = 3  # different numbers that a word beside them, which is no known unit, needs to be a unit
_FLAG = f"--decimal_mark={POINT} or --decimal_mark={COMMA} says which"


class NumberStyle(NamedTuple):
    """How the numbers of a column are written.

    Attributes:
      mark: the decimal one, `POINT` or `COMMA`.
      dress: the unit, see `written_numbers.Written`.
      sample: a value as it is written, for messages.
    """

    mark: str
    dress: str
    sample: str

    def read(self, cells: Cells, missing_words: frozenset[str]) -> Cells:
        """The same cells with their numbers read so; NaN and not missing for what is none."""
        codes, texts = cells.list_texts()
        is_missing = cells.is_missing | np.array([text.strip().lower() in missing_words for text in texts])[codes]
        numbers = np.array([self.read_text(text) for text in texts])[codes]
        numbers[is_missing] = np.nan
        return dataclasses.replace(
            cells, kind=TEXT, is_missing=is_missing, numbers=numbers, is_boolean=np.zeros(len(numbers), bool)
        )

    def read_text(self, text: str) -> float:
        """One number; NaN for what is none of this style."""
        found = read_written(text)
        if found is None or found.dress not in (self.dress, ZERO):
            return math.nan
        return found.comma if self.mark == COMMA else found.point


def scan_numbers(
    table: Table, roles: Roles, options: DatasetOptions, most_categories: int
) -> tuple[Table, TableScan, dict[str, NumberStyle]]:
    """Reads a table once, and again where numbers are written for people.

    Args:
      table: to be read.
      roles: of its columns.
      options: the task, the decimal mark, the form of dates, and what stands for no value.
      most_categories: see `scan.scan_table`.

    Returns:
      The table with these numbers read, what is in it, and the style of each column that was read again.

    Raises:
      DatasetError: reading fails, or a column has numbers that can mean different things.
    """
    scan = scan_table(table, roles, most_categories, options.date_form)
    missing_words = read_missing_words(options.missing_words)
    columns = {name: WrittenColumn(missing_words) for name in _find_doubtful(table, roles, scan, options)}
    if not columns:
        return table, scan, {}
    for piece in table.read(roles.used):
        for name, column in columns.items():
            column.add(piece.cells[name], piece)
    styles = _choose_styles(table, roles, scan, columns, options)
    # Twice at most: again without the label, where its amounts are names of classes.
    while styles:
        again = _read_numbers(table, styles, missing_words).cache_small()
        found = scan_table(again, roles, most_categories, options.date_form)
        label = roles.labels[0]
        if options.task or len(roles.labels) > 1 or label not in styles:
            return again, found, styles
        texts = scan.columns[label].texts
        are_names = styles[label].dress != PLAIN and texts is not None and len(texts) <= MANY
        if not are_names and REGRESSION in {guess_table_task(roles, each)[0] for each in (scan, found)}:
            return again, found, styles
        del styles[label]  # classes, such as 5% and 10%, keep their names
    return table, scan, {}


def note_numbers(
    roles: Roles, scan: TableScan, styles: Mapping[str, NumberStyle], options: DatasetOptions
) -> list[str]:
    """Lines about numbers that may be meant otherwise: three digits behind each mark, and amounts that are classes."""
    columns = {name: column for name, column in scan.columns.items() if name not in styles}
    notes = []
    name = next((name for name, column in columns.items() if _is_open(column) and not column.num_texts), "")
    if name and options.decimal_mark == AUTO and not _find_marks(scan):
        column = columns[name]
        sample = column.points.sample or column.commas.sample
        written = read_written(sample)
        read, other, mark = written.point, written.comma, COMMA
        if sample == column.commas.sample:
            read, other, mark = other, read, POINT
        notes.append(
            f"column {name} has numbers such as {sample}, read as {read:.12g}; if {other:.12g} is meant, give "
            f"--decimal_mark={mark}"
        )
    label = columns.get(roles.labels[0])
    if label and label.has_written and not options.task:
        amount = next(filter(read_written, label.texts or ()), label.first_text.text)
        notes.append(
            f"the labels in {roles.labels[0]}, such as {amount!r}, are classes; if they are measurements, give "
            f"--task={REGRESSION}"
        )
    return notes


def _read_numbers(table: Table, styles: Mapping[str, NumberStyle], missing_words: frozenset[str]) -> Table:
    styles = dict(styles)

    def read(names: tuple[str, ...]) -> Iterator[Piece]:
        for piece in table.read(names):
            numbers = {
                name: styles[name].read(cells, missing_words) for name, cells in piece.cells.items() if name in styles
            }
            yield piece._replace(cells={**piece.cells, **numbers})

    return dataclasses.replace(table, read=read)


def _find_doubtful(table: Table, roles: Roles, scan: TableScan, options: DatasetOptions) -> list[str]:
    """The columns that may hold numbers that were not read, or were read with the wrong mark."""
    names = [*roles.labels] if options.task in (None, "", REGRESSION) else []
    names += [] if roles.block else roles.features
    names += [roles.weight] if roles.weight else []
    columns = {name: scan.columns[name] for name in names if scan.columns[name].kind in (TEXT, STRING)}
    votes = _find_marks(scan)
    doubtful = []
    for name, column in columns.items():
        is_misread = column.has_odd or column.points.is_strange or column.commas.is_strange
        for marks in (column.points, column.commas):
            is_misread |= bool(marks.sample) and options.decimal_mark not in (AUTO, marks.mark)
            # So it is in files of one table that are written differently.
            is_misread |= marks.is_open and bool(votes) and marks.mark not in votes
        if column.has_written or (is_misread and column.num_numbers):
            doubtful.append(name)
    # Others decide what the marks of these are.
    doubtful += [name for name, column in columns.items() if doubtful and _is_open(column)]
    return list(dict.fromkeys(doubtful))


def _is_open(column: ColumnScan) -> bool:
    """Whether plain numbers may be meant otherwise: all have three digits behind their mark."""
    return column.points.is_open or column.commas.is_open


def _find_marks(scan: TableScan) -> set[str]:
    """The decimal marks that the plain numbers of a table surely have."""
    plain = [column for column in scan.columns.values() if not column.num_texts]
    return {marks.mark for column in plain for marks in (column.points, column.commas) if marks.is_sure}


def _choose_styles(
    table: Table, roles: Roles, scan: TableScan, columns: Mapping[str, WrittenColumn], options: DatasetOptions
) -> dict[str, NumberStyle]:
    """The style of each column that has one. Raises DatasetError."""
    dresses: dict[str, str] = {}
    marks: dict[str, str] = {}
    votes = _find_marks(scan)
    for name, column in columns.items():
        try:
            dress = _choose_dress(name, column, scan.columns[name], name in roles.features)
            if dress is not None:
                dresses[name], marks[name] = dress, _choose_mark(name, column, options.decimal_mark)
        except DatasetError:
            if not _may_be_classes(name, roles, scan, options):
                raise
    votes |= {mark for mark in marks.values() if mark in (POINT, COMMA)}
    styles = {}
    for name, dress in dresses.items():
        mark, points, commas = marks[name], scan.columns[name].points, scan.columns[name].commas
        if mark == OPEN and len(votes) == 1:
            mark = next(iter(votes))
        elif mark == OPEN and points.is_open != commas.is_open and not (points.is_strange or commas.is_strange):
            mark = POINT if points.is_open else COMMA
        elif mark == OPEN:
            if _may_be_classes(name, roles, scan, options):
                continue
            found = columns[name].find(lambda kind: kind.mark == OPEN)
            written = read_written(found.text)
            raise DatasetError(
                f"{found.where}: column {name!r} has {found.text!r}, which is {written.point:.12g} or "
                f"{written.comma:.12g}, and no other value tells; {_FLAG}",
                {"decimal_mark": POINT},
            )
        style = NumberStyle(COMMA if mark == COMMA else POINT, dress, "")
        new = {
            kind: found
            for kind, found in columns[name].kinds.items()
            if kind.dress == dress and (not kind.read_with or (kind.mark == OPEN and kind.read_with != style.mark))
        }
        if new:  # else all numbers were read so at once
            # The one that tells most: what a mark that may mean two things was taken for.
            clearest = max(
                new,
                key=lambda kind: (
                    kind.mark == OPEN,
                    not kind.is_zero,
                    bool(kind.dress) or not kind.is_whole,
                    new[kind].count,
                ),
            )
            styles[name] = style._replace(sample=new[clearest].text)
    return styles


def _may_be_classes(name: str, roles: Roles, scan: TableScan, options: DatasetOptions) -> bool:
    """Whether it is a label with few different texts, such as 5 kg and 10 lb, which are names of classes."""
    texts = scan.columns[name].texts
    is_few = bool(scan.columns[name].num_texts) and texts is not None and len(texts) <= MOST_FLOAT_CLASSES
    return is_few and roles.labels == (name,) and not options.task


def _choose_dress(name: str, column: WrittenColumn, scan: ColumnScan, is_feature: bool) -> str | None:
    """The unit of a column of numbers; None if the column is text.

    Raises:
      DatasetError: it has several units, or values that are wrong among numbers.
    """
    counts: Counter[str] = Counter()
    for kind, found in column.kinds.items():
        if is_number(kind):
            counts[kind.dress] += found.count
    num_numbers, total = counts.total(), sum(found.count for found in column.kinds.values())
    if not num_numbers or len(column.kinds) > MOST_KINDS:
        return None
    # A zero without a unit is one in any.
    del counts[ZERO]
    main = counts.most_common(1)[0][0] if counts else PLAIN
    usual = column.find(lambda kind: kind.dress == main) or column.find(is_number)
    wrong = column.find(lambda kind: kind.dress == ERROR)
    is_text = total - num_numbers > MOST_STRAYS * total
    if not wrong and is_text and len(column.different) > MANY and not column.find(lambda kind: kind.dress == WORD):
        # Of a column of a text type, plain numbers may be codes.
        wrong = column.find(lambda kind: kind.dress == ODD) if scan.kind == TEXT or main != PLAIN else None
    dress = None if wrong or is_text else _find_unit(name, column, counts, total, scan.kind)
    if dress is None and not wrong and is_feature and scan.texts is None and num_numbers > total / 2:
        wrong = column.find(lambda kind: not is_number(kind))
    if wrong:
        raise DatasetError(
            f"{wrong.where}: column {name!r} has {wrong.text!r}, expected a number as {usual.text!r} in other rows; "
            f"leave the field empty if the value is missing, or {leave_out(name)}",
            {"missing_words": quote_name(wrong.text)} if wrong.text.lower() in EXCEL_ERRORS else drop(name),
        )
    return dress


def _find_unit(name: str, column: WrittenColumn, counts: Counter[str], total: int, cell_kind: str) -> str | None:
    """The unit of a column that is numbers but for a few values; None if they may be names. Raises DatasetError.

    Args:
      name: of the column.
      column: its values.
      counts: of the numbers of each unit, but for zeros without one.
      total: of the values.
      cell_kind: that of the cells.
    """
    numbers = [kind for kind in column.kinds if is_number(kind)]
    has_others = len(numbers) < len(column.kinds)
    main = counts.most_common(1)[0][0] if counts else PLAIN
    if len(counts) <= 1:
        if main == PLAIN:
            are_codes = any(kind.is_code for kind in numbers)
            may_be_codes = cell_kind == STRING and (has_others or all(kind.is_whole for kind in numbers))
            return None if are_codes or may_be_codes else PLAIN
        is_word = len(main) > 1 or not main.isascii()  # 12A and 12B are no amounts
        is_shared_word = not has_others and is_word and len(column.different) >= _FEW
        return main if is_unit(main) or is_shared_word else None
    known = [dress for dress, _ in counts.most_common() if is_unit(dress)]
    num_unknown = sum(count for dress, count in counts.items() if dress not in known)
    are_codes = cell_kind == STRING and main == PLAIN and counts.total() - counts[PLAIN] <= MOST_STRAYS * total
    if num_unknown > MOST_STRAYS * total or are_codes:
        return None
    if len(known) > 1:
        first, second = (column.find(lambda kind, dress=dress: kind.dress == dress) for dress in known[:2])
        raise DatasetError(
            f"{second.where}: column {name!r} has {second.text!r}, but {first.text!r} in other rows ({first.where}), "
            f"expected numbers of one unit; write all in one, or {leave_out(name)}",
            drop(name),
        )
    return main if main != PLAIN else None


def _choose_mark(name: str, column: WrittenColumn, asked: str) -> str:
    """The decimal mark of a column of numbers: `POINT`, `COMMA`, `OPEN` or `EITHER`.

    Raises:
      DatasetError: some values have one and some the other, or another one than `asked`.
    """
    points, commas = (
        column.find(lambda kind, mark=mark: is_number(kind) and kind.mark == mark) for mark in (POINT, COMMA)
    )
    if asked != AUTO:
        other = commas if asked == POINT else points
        if other:
            raise DatasetError(
                f"{other.where}: column {name!r} has {other.text!r}, which is no number with a decimal {asked}, as "
                f"--decimal_mark={asked} says; expected such numbers in all columns"
            )
        return asked
    if points and commas:
        few, many = sorted((points, commas), key=lambda each: each.count)
        raise DatasetError(
            f"{few.where}: column {name!r} has {few.text!r}, but {many.text!r} in other rows ({many.where}), expected "
            f"one decimal mark; write all numbers with the same, or {leave_out(name)}",
            drop(name),
        )
    if points or commas:
        return POINT if points else COMMA
    return OPEN if column.find(lambda kind: is_number(kind) and kind.mark == OPEN) else EITHER
