"""`--data` on a table of text: CSV, TSV, packed by gzip or not, as pandas and Excel write them.

The first line names the columns. The file is read in pieces, so that it may be larger than memory.
"""

import csv
import itertools
import os
from collections import Counter
from collections.abc import Iterator

import numpy as np

from datasets.client_source import TRAIN, ClientSource
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.file_formats import FileFormat
from datasets.tables.cells import parse_text
from datasets.tables.csv_form import HEAD_BYTES, SEPARATORS, CsvForm, find_form, guard_reading, open_bytes, open_text
from datasets.tables.roles import LABEL_NAMES
from datasets.tables.source import choose_table_partition, open_table
from datasets.tables.table import Piece, Table, list_names, simplify

PIECE_CELLS = 2_000_000  # of a piece, in all its columns
ENDINGS = (".csv", ".tsv", ".tab")
_MOST_FIELD = 2**20  # characters of a field; a longer one is a quote that nobody closed


def has_csv_name(path: str) -> bool:
    """Whether a file's name is that of a table of text."""
    return path.lower().removesuffix(".gz").endswith(ENDINGS)


def is_csv(path: str) -> bool:
    """Whether it is a table of text, by its name or by its first lines."""
    if not os.path.isfile(path):
        return False
    return has_csv_name(path) or _looks_like_table(path)


def _looks_like_table(path: str) -> bool:
    """Whether the first lines are text of one width of at least two columns."""
    with open(path, "rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    try:
        with guard_reading(path), open_bytes(path, is_packed) as stream:
            head = stream.read(HEAD_BYTES // 16)
    except DatasetError:
        return False
    if b"\x00" in head or head.lstrip()[:1] in (b"{", b"[", b"<"):
        return False
    lines = head.decode("utf-8", "replace").splitlines()[:-1][:20]
    widths = [{line.count(separator) for line in lines} for separator in SEPARATORS]
    return len(lines) > 1 and any(len(each) == 1 and each != {0} for each in widths)


def open_csv(path: str, options: DatasetOptions) -> ClientSource:
    """The clients of a table.

    Raises:
      DatasetError: see `make_csv_table` and `datasets.tables.source.open_table`.
    """
    return open_table(make_csv_table(path, [(path, "", TRAIN)]), options)


def choose_csv_partition(path: str, options: DatasetOptions) -> str:
    """See `datasets.tables.source.choose_table_partition`."""
    return choose_table_partition(make_csv_table(path, [(path, "", TRAIN)]), options)


def make_csv_table(path: str, files: list[tuple[str, str, str]], has_clients: bool = False) -> Table:
    """A table in one or several files of text.

    Args:
      path: of the file, or of the folder that holds them.
      files: (path, client, split) of each.
      has_clients: whether the files name clients.

    Raises:
      DatasetError: the first file is no table, or its header is missing or names a column twice.
    """
    first = files[0][0]
    form = find_form(first)
    columns = _read_header(first, form)

    def read(names: tuple[str, ...]) -> Iterator[Piece]:
        for file, client, split in files:
            own_form = form if file == first else find_form(file)
            found = columns if file == first else _read_header(file, own_form)
            missing = [name for name in names if name not in found]
            if missing:
                raise DatasetError(
                    f"{file}: column {missing[0]!r} is missing, which {first} has; it has {list_names(found)}"
                )
            yield from _read_pieces(file, own_form, found, names, client, split)

    return Table(
        path, tuple(file for file, _, _ in files), tuple(columns), read, form.describe(), has_clients=has_clients
    )


def _read_header(path: str, form: CsvForm) -> list[str]:
    with guard_reading(path), open_text(path, form) as stream:
        try:
            reader = csv.reader(stream, delimiter=form.separator, strict=True)
            header, first = next(reader, []), next(filter(None, reader), [])
        except csv.Error as error:
            raise DatasetError(f"{path}, line {1 + form.num_skipped}: {_explain(error)}") from None
    names = [name.strip() for name in header]
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    line = f"{path}, line {1 + form.num_skipped}"
    if _are_values(names, first, form):
        raise DatasetError(
            f"{line}: {list_names(names)} are values, expected the names of the columns; write a line with names above"
        )
    if twice:
        places = [str(place + 1) for place, name in enumerate(names) if name == twice[0]]
        raise DatasetError(
            f"{line}: columns {' and '.join(places)} are all called {twice[0]!r}, expected different names"
        )
    empty = [place for place, name in enumerate(names) if not name and place]
    if empty:
        raise DatasetError(f"{line}: column {empty[0] + 1} has no name, expected one for each column")
    return names


def _are_values(names: list[str], first: list[str], form: CsvForm) -> bool:
    """Whether a header is none: it holds numbers, and texts and numbers where the row below has them.

    Names that count, as those of arrays and years do, are names, and so is a line that names a label.
    """
    cells, below = parse_text(names, form.has_decimal_comma), parse_text(first, form.has_decimal_comma)
    numbers = cells.numbers[cells.is_number]
    is_counted = len(numbers) > 1 and bool((np.diff(numbers) == 1).all())
    if not len(numbers) or is_counted or LABEL_NAMES & set(map(simplify, names)):
        return False
    return len(names) != len(first) or bool((cells.is_number == below.is_number).all())


def _read_pieces(
    path: str, form: CsvForm, columns: list[str], names: tuple[str, ...], client: str, split: str
) -> Iterator[Piece]:
    csv.field_size_limit(_MOST_FIELD)
    num_rows = max(1, PIECE_CELLS // len(columns))
    total = 0
    for rows in _read_rows(path, form, num_rows):
        _check_width(path, form, columns, rows, total)
        values = dict(zip(columns, zip(*rows, strict=True), strict=True))
        cells = {name: parse_text(list(values[name]), form.has_decimal_comma) for name in names}
        yield Piece(cells, client, split, _Locator(path, form, total))
        total += len(rows)
    if not total:
        raise DatasetError(f"{path}: no rows below the names of the columns, expected at least one")


class _Locator:
    """Says where a row of a piece stands: the line of the file, which is found by reading it again."""

    def __init__(self, path: str, form: CsvForm, first: int):
        self._path, self._form, self._first = path, form, first

    def __call__(self, row: int) -> str:
        return f"{self._path}, line {find_line(self._path, self._form, self._first + row)}"


def find_line(path: str, form: CsvForm, row: int) -> int:
    """The line, from 1, in which a row begins; rows are counted from 0, below the header, without empty lines."""
    with guard_reading(path), open_text(path, form) as stream:
        reader = csv.reader(stream, delimiter=form.separator, strict=True)
        next(reader)
        line, count = reader.line_num, 0
        for fields in reader:
            if fields:
                if count == row:
                    break
                count += 1
            line = reader.line_num
    return line + 1 + form.num_skipped


def _read_rows(path: str, form: CsvForm, num_rows: int) -> Iterator[list[list[str]]]:
    """The rows below the header, so many at a time, without empty lines."""
    with guard_reading(path), open_text(path, form) as stream:
        reader = csv.reader(stream, delimiter=form.separator, strict=True)
        next(reader)
        line = reader.line_num
        try:
            while taken := list(itertools.islice(reader, num_rows)):
                line = reader.line_num
                if rows := [row for row in taken if row]:
                    yield rows
        except csv.Error as error:
            place = _find_open_quote(path, form, line)
            raise DatasetError(f"{path}, line {place}: {_explain(error)}") from None


def _explain(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end of data" in text or "field larger than" in text:
        return 'a quote " is opened and never closed; expected a second one'
    if "expected after" in text:
        return 'text stands after a closing quote "; expected a separator there, and quotes inside a field doubled'
    return text


def _find_open_quote(path: str, form: CsvForm, line: int) -> int:
    """The line in which the row that cannot be read begins; `line` is one before it."""
    with open_text(path, form) as stream:
        reader = csv.reader(stream, delimiter=form.separator, strict=True)
        try:
            for _ in reader:
                line = reader.line_num
        except csv.Error:
            pass
    return line + 1 + form.num_skipped


def _check_width(path: str, form: CsvForm, columns: list[str], rows: list[list[str]], first: int) -> None:
    width = len(columns)
    if set(map(len, rows)) == {width}:
        return
    row = next(place for place, fields in enumerate(rows) if len(fields) != width)
    line = find_line(path, form, first + row)
    extra = "; a field that holds the separator stands in quotes" if len(rows[row]) > width else ""
    raise DatasetError(f"{path}, line {line}: {len(rows[row])} fields, expected {width} as the first line has{extra}")


FORMAT = FileFormat("a table, CSV or TSV", is_csv, open_csv, choose_csv_partition, rank=60)
