"""`--data` on a table of text: CSV, TSV, packed by gzip or not, as pandas and Excel write them.

The first line names the columns. The file is read in blocks of whole rows, so that it may be larger than memory, and
pyarrow makes columns of each block, without threads: a sweep forks. All columns are text at first, since the last row
may decide what a column is. Python's `csv` is the judge of quotes: it reads the blocks in which they do not stand as
they should, and finds the line of a row for an error.
"""

import codecs
import contextlib
import csv
import gzip
import io
import itertools
import os
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from datasets.client_source import TRAIN
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.tables.cells import parse_text, read_missing_words
from datasets.tables.source import make_table_format
from datasets.tables.table import (
    LABEL_NAMES,
    MOST_LISTED,
    ClientFile,
    Piece,
    Table,
    check_same_columns,
    list_names,
    simplify,
)
from files.reading import explain_errors

if TYPE_CHECKING:
    import pyarrow

SEPARATORS = {",": "comma-separated", ";": "semicolon-separated", "\t": "tab-separated", "|": "separated by |"}
HEAD_BYTES = 2**18  # that the dialect is found in
LINE_BYTES = 2**24  # of a line, and of a row; more than that is not held in memory
_BLOCK_BYTES = 2**20
_GZIP = b"\x1f\x8b"
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_TITLES = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8 with a mark", "utf-16": "UTF-16", "cp1252": "Windows-1252"}
_OTHER_KINDS = {  # by their first bytes, and what to do with it
    b"PK\x03\x04": "a zip archive; unpack it",
    b"PAR1": "a parquet file; give --data_format=parquet",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file; save its table with pandas.DataFrame.to_csv",
    b"BZh": "a bzip2 file; unpack it",
    b"\xfd7zXZ": "an xz file; unpack it",
    b"\x80": "a pickle; save its table with pandas.DataFrame.to_csv where you trust it",
    b"%PDF": "a PDF",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
}
_WORKBOOK = "an Excel workbook; save the sheet as CSV"
_WORKBOOK_ENDINGS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_WORKBOOK_MARKS = (b"[Content_Types].xml", b"xl/", b"opendocument.spreadsheet")  # near the start of a zip archive
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_ANY_COMMA = re.compile(r"\s*-?\d+,\d+\s*")
# Numbers whose mark can be no other than the decimal one: 1,230 and 1.230 are not.
_COMMA_NUMBER, _POINT_NUMBER = (
    re.compile(rf"\s*-?(?:\d+{mark}(?:\d{{1,2}}|\d{{4,}})|(?:0\d*|\d{{4,}}){mark}\d+)\s*") for mark in (",", r"\.")
)
_NUM_SAMPLE_ROWS = 200


class CsvDialect(NamedTuple):
    """How a file is written.

    Attributes:
      is_packed: by gzip.
      encoding: Python's name.
      separator: between columns.
      has_decimal_comma: whether "1,5" is a number.
      num_skipped: lines above the names of the columns.
    """

    is_packed: bool
    encoding: str
    separator: str
    has_decimal_comma: bool
    num_skipped: int

    def describe(self) -> str:
        """In words."""
        extra = ["decimal comma"] * self.has_decimal_comma + ["gzip"] * self.is_packed
        return ", ".join([SEPARATORS[self.separator], _TITLES[self.encoding], *extra])


def find_dialect(path: str) -> CsvDialect:
    """Finds how a file is written, by looking.

    Raises:
      DatasetError: it is empty, no text, of one column, or has a line that is too long.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # Python would wait at a pipe without end
        kind = "a folder" if os.path.isdir(path) else "no regular file"
        raise DatasetError(f"{path}: {kind}, expected a table of text, CSV or TSV")
    head, is_packed = read_head(path, HEAD_BYTES)
    if _is_workbook(path, head):
        raise DatasetError(f"{path}: no table of text but {_WORKBOOK}")
    if not head.strip():
        raise DatasetError(f"{path}: empty, expected the names of the columns in the first line and rows below it")
    if kind := next((kind for start, kind in _OTHER_KINDS.items() if head.startswith(start)), ""):
        raise DatasetError(f"{path}: no table of text but {kind}")
    encoding = next((name for mark, name in _BOMS.items() if head.startswith(mark)), "")
    if not encoding and b"\x00" in head:
        raise DatasetError(f"{path}: a binary file, byte {head.index(0)} is 0; expected a table of text, CSV or TSV")
    encoding = encoding or _find_encoding(path)
    # The head may end within a character.
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    lines = re.split("\r\n|\r|\n", text)
    if len(head) == HEAD_BYTES and len(lines) > 1:
        lines.pop()  # it may be cut
    marked = re.fullmatch("sep=([,;\t|])", lines[0], re.IGNORECASE)  # which Excel writes and reads
    lines = lines[bool(marked) :][:_NUM_SAMPLE_ROWS]
    # The separator that gives most rows the same number of columns, at least two; the most columns where several do.
    scores = {marked[1]: ()} if marked else {}
    for separator in () if marked else SEPARATORS:
        widths = [len(row) for row in _split(lines, separator) if row]
        if widths and widths[0] > 1:
            # Rounded, so that a stray separator in a text does not outweigh a column more.
            scores[separator] = (round(Counter(widths)[widths[0]] / len(widths), 1), widths[0])
    if not scores:
        raise DatasetError(
            f"{path}: one column only, the first line is {lines[0][:60]!r}; expected columns separated by comma, "
            f"semicolon, tab or |"
        )
    separator = max(scores, key=scores.__getitem__)
    cells = [cell for row in _split(lines[1:], separator) for cell in row]
    # Semicolons separate since commas are taken; so 1,230 is 1.23 there. Beside tabs it is left open.
    comma_number = _ANY_COMMA if separator == ";" else _COMMA_NUMBER
    has_comma = separator != "," and any(map(comma_number.fullmatch, cells))
    has_comma = has_comma and not any(map(_POINT_NUMBER.fullmatch, cells))
    return CsvDialect(is_packed, encoding, separator, has_comma, int(bool(marked)))


def _is_workbook(path: str, head: bytes) -> bool:
    """Whether a file is Excel's, whole or broken; programs call tables of text so, too, which are read."""
    is_zip = head.startswith(b"PK")
    if head.startswith(_OLD_WORKBOOK) or (is_zip and any(mark in head for mark in _WORKBOOK_MARKS)):
        return True
    return path.lower().endswith(_WORKBOOK_ENDINGS) and (is_zip or not head.strip() or b"\x00" in head)


@contextlib.contextmanager
def open_bytes(path: str) -> Iterator[tuple[IO[bytes], bool]]:
    """(the file's bytes, unpacked; whether it is packed). What fails on the way is one line."""
    with explain_errors(path, DatasetError):
        try:
            with open(path, "rb") as file:
                is_packed = file.peek(2).startswith(_GZIP)
                yield (gzip.open(file) if is_packed else file), is_packed  # noqa: SIM115 - it reads from the file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DatasetError(f"{path}: damaged or cut gzip file ({error}); expected a whole one") from None
        except UnicodeError as error:
            raise DatasetError(f"{path}: damaged text ({error}); expected it whole, or save it as UTF-8") from None


def read_head(path: str, num_bytes: int) -> tuple[bytes, bool]:
    """(first bytes, unpacked; whether the file is packed). Raises DatasetError."""
    with open_bytes(path) as (stream, is_packed):
        return stream.read(num_bytes), is_packed


def refuse_long_line(path: str, line: int) -> DatasetError:
    """The error of a line, or a row, of more than `LINE_BYTES`."""
    return DatasetError(
        f"{path}, line {line}: more than {LINE_BYTES >> 20} MB without an end of the row, expected a row of a table in "
        f"each line"
    )


def _find_encoding(path: str) -> str:
    """UTF-8 if the whole file is, else Windows-1252.

    Raises:
      DatasetError: it is neither, or a line is too long.
    """
    wrong = []
    # Nearly all bytes are Windows-1252, so that it is tried last.
    for encoding in ("utf-8", "cp1252"):
        decoder = codecs.getincrementaldecoder(encoding)()
        line, num_open = 1, 0  # the line that a block begins in, and how many bytes of it came before
        with open_bytes(path) as (stream, _):
            try:
                while block := stream.read(_BLOCK_BYTES):
                    decoder.decode(block)
                    end = max(block.rfind(b"\n"), block.rfind(b"\r"))
                    line += block.count(b"\n")
                    num_open = len(block) - end - 1 + (num_open if end < 0 else 0)
                    if num_open > LINE_BYTES:
                        raise refuse_long_line(path, line)
                decoder.decode(b"", final=True)
                return encoding
            except UnicodeDecodeError as error:
                wrong.append(line + error.object[: error.start].count(b"\n"))
    raise DatasetError(
        f"{path}, line {wrong[0]}: neither UTF-8 nor Windows-1252 (line {wrong[1]}); expected text in UTF-8, save it so"
    )


def _split(lines: list[str], separator: str) -> list[list[str]]:
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # said when the file is read
        rows.extend(csv.reader([f"{line}\n" for line in lines], delimiter=separator))
    return rows


BLOCK_BYTES = 2**23  # of the file, that become a piece
ENDINGS = (".csv", ".tsv", ".tab")
_MOST_FIELD = 2**20  # characters of a field in a row that `csv` reads; a longer one is a quote that nobody closed
_EXPLAINED = {  # what `csv` says, and what a person understands
    "unexpected end of data": 'a quote " is opened and never closed; expected a second one',
    "field larger than": 'a quote " is opened and never closed; expected a second one',
    "expected after": (
        'text stands after a closing quote "; expected a separator there, and quotes inside a field doubled'
    ),
}


def has_csv_name(path: str) -> bool:
    """Whether a file's name is that of a table of text."""
    return path.lower().removesuffix(".gz").endswith(ENDINGS)


def is_csv(path: str) -> bool:
    """Whether it is a table of text, by its name, or since its first lines are text of one width of several columns."""
    if not os.path.isfile(path) or has_csv_name(path) or path.lower().endswith(_WORKBOOK_ENDINGS):
        return os.path.isfile(path)
    try:
        head, _ = read_head(path, 2**14)
    except DatasetError:
        return False
    if b"\x00" in head or head.lstrip()[:1] in (b"{", b"[", b"<"):
        return False
    # The last line may be cut.
    lines = head.decode("utf-8", "replace").splitlines()[:-1][:20]
    widths = [{line.count(separator) for line in lines} for separator in SEPARATORS]
    return len(lines) > 1 and any(len(each) == 1 and each != {0} for each in widths)


def make_csv_table(path: str, options: DatasetOptions, files: list[ClientFile] | None = None) -> Table:
    """A table in one or several files of text.

    Args:
      path: of the file, or of the folder that holds them.
      options: what stands for no value.
      files: those of the folder.

    Raises:
      DatasetError: the first file is no table, or its header is missing or names a column twice.
    """
    files = files or [ClientFile(path, "", TRAIN)]
    first = _CsvFile(files[0].path)
    missing_words = read_missing_words(options.missing_words)

    def read(names: tuple[str, ...]) -> Iterator[Piece]:
        for path, client, split, _ in files:
            file = first if path == first.path else _CsvFile(path)
            check_same_columns(path, file.columns, names, first.path)
            yield from file.read(names, client, split, missing_words)

    paths, has_clients = tuple(file.path for file in files), all(file.client for file in files)
    return Table(path, paths, tuple(first.columns), read, first.dialect.describe(), has_clients=has_clients)


class _CsvFile:
    """A file of a table: its dialect, and the names of its columns."""

    def __init__(self, path: str):
        self.path, self.dialect = path, find_dialect(path)
        lines = io.StringIO(next(self._read_utf8(), b"").decode("utf-8", "replace"), newline="")
        # Without `strict`, text behind a closing quote would become a part of the field.
        reader = csv.reader(lines, delimiter=self.dialect.separator, strict=True)
        number = 1 + self.dialect.num_skipped
        try:
            header, num_lines, first = next(reader, []), reader.line_num, []
        except csv.Error as error:
            raise DatasetError(f"{self.path}, line {number}: {_explain(error)}") from None
        with contextlib.suppress(csv.Error):  # said when the rows are read
            first = next(filter(None, reader), [])
        names, line = [name.strip() for name in header], f"{self.path}, line {number}"
        if self._are_values(names, first):
            example = [*(f"x{number}" for number in range(1, len(names))), "label"]
            example = example if len(example) <= MOST_LISTED else [*example[:2], "...", "label"]
            raise DatasetError(
                f"{line}: no header, {list_names(names)} are values, expected the names of the columns; add a first "
                f"line with names, as in {self.dialect.separator.join(example)}"
            )
        if twice := [name for name, count in Counter(names).items() if count > 1 and name]:
            numbers = [str(number) for number, name in enumerate(names, 1) if name == twice[0]]
            raise DatasetError(
                f"{line}: columns {' and '.join(numbers)} are all called {twice[0]!r}, expected different names"
            )
        if "" in names[1:]:
            raise DatasetError(f"{line}: column {names.index('', 1) + 1} has no name, expected one for each column")
        lines.seek(0)
        self.columns, self._header_lines = names, num_lines
        self._header_bytes = len("".join(itertools.islice(lines, num_lines)).encode())

    def read(self, names: tuple[str, ...], client: str, split: str, missing_words: frozenset[str]) -> Iterator[Piece]:
        """Its pieces, with these columns. Raises DatasetError: a row that cannot be read, or none."""
        line, skip = 1 + self.dialect.num_skipped + self._header_lines, self._header_bytes
        waiting, num_rows = b"", 0
        for block in itertools.chain(self._read_utf8(), [b""]):
            waiting, skip = waiting + block[skip:], 0
            columns, end = self._parse(waiting, line, not block, names)
            if not end and len(waiting) > LINE_BYTES:
                raise refuse_long_line(self.path, line)
            whole, waiting = waiting[:end], waiting[end:]
            # Lines end in \n, in \r or in both, which is one end.
            line += whole.count(b"\n") + whole.count(b"\r") - whole.count(b"\r\n")
            cells = {
                name: parse_text(column, self.dialect.has_decimal_comma, missing_words)
                for name, column in columns.items()
            }
            piece = Piece(cells, client, split, self._name_rows, num_rows)
            # A block may hold no whole row.
            if columns and piece.num_rows:
                yield piece
                num_rows += piece.num_rows
        if not num_rows:
            raise DatasetError(f"{self.path}: no rows below the names of the columns, expected at least one")

    def _are_values(self, names: list[str], first: list[str]) -> bool:
        """Whether a header is none: it holds numbers alone, or texts and numbers where the row below has them.

        Names that count, as those of arrays and years do, are names, and so is a line that names a label.
        """
        cells, below = (parse_text(each, self.dialect.has_decimal_comma) for each in (names, first))
        numbers = cells.numbers[cells.is_number]
        is_counted = len(numbers) > 1 and bool((np.diff(numbers) == 1).all())
        if not len(numbers) or is_counted or LABEL_NAMES & set(map(simplify, names)):
            return False
        return (
            len(numbers) == len(names) or len(names) != len(first) or bool((cells.is_number == below.is_number).all())
        )

    def _read_utf8(self) -> Iterator[bytes]:
        """The text from the names of the columns on, as UTF-8, in blocks that may end anywhere."""
        with open_bytes(self.path) as (stream, _):
            decoder = codecs.getincrementaldecoder(self.dialect.encoding)()
            num_skipped = self.dialect.num_skipped
            while block := stream.read(BLOCK_BYTES):
                # pyarrow and the cutting into rows know UTF-8 alone.
                block = block if self.dialect.encoding == "utf-8" else decoder.decode(block).encode()
                yield re.sub(rb"[^\r\n]*(\r\n|\r|\n)", b"", block, count=1) if num_skipped else block
                num_skipped = 0

    def _parse(
        self, content: bytes, line: int, is_last: bool, names: tuple[str, ...]
    ) -> "tuple[Mapping[str, pyarrow.Array], int]":
        """(these columns of the rows that are whole, their bytes) of text from the start of a row on.

        Args:
          content: UTF-8.
          line: that it begins in.
          is_last: whether nothing follows.
          names: of the columns.
        """
        import pyarrow.csv

        end = _find_end(content, self.dialect.separator, is_last)
        if end == _IRREGULAR:
            return self._parse_rows(content, line, is_last, names)
        if not end:
            return {}, 0
        is_skipped = []
        # One block, since pyarrow refuses a row that reaches over the ends of two.
        table = pyarrow.csv.read_csv(
            pyarrow.BufferReader(memoryview(content)[:end]),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=end + 1, column_names=self.columns),
            pyarrow.csv.ParseOptions(
                delimiter=self.dialect.separator,
                newlines_in_values=True,
                invalid_row_handler=lambda row: is_skipped.append(True) or "skip",
            ),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()),
                include_columns=names,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        if is_skipped:  # a row of another width, whose line is wanted
            return self._parse_rows(content[:end], line, is_last, names)
        return {name: table[name].combine_chunks() for name in names}, end

    def _parse_rows(
        self, content: bytes, line: int, is_last: bool, names: tuple[str, ...]
    ) -> "tuple[Mapping[str, pyarrow.Array], int]":
        """The same by `csv`. Raises DatasetError: quotes are not as they should be, or a row is of another width."""
        import pyarrow

        lines = io.StringIO(content[: len(content) if is_last else _find_newline(content) + 1].decode(), newline="")
        reader, rows, ends = csv.reader(lines, delimiter=self.dialect.separator, strict=True), [], [0]
        width = len(self.columns)
        try:
            with _limit_fields(_MOST_FIELD):
                for row in reader:
                    if row and len(row) != width:
                        extra = "; a field that holds the separator stands in quotes" if len(row) > width else ""
                        raise DatasetError(
                            f"{self.path}, line {line + ends[-1]}: {len(row)} fields, expected {width} as the first "
                            f"line has{extra}"
                        )
                    rows.append(row)
                    ends.append(reader.line_num)
        except csv.Error as error:
            if is_last or "unexpected end of data" not in str(error):  # else the last row goes on
                raise DatasetError(f"{self.path}, line {line + ends[-1]}: {_explain(error)}") from None
        fields = list(zip(*filter(None, rows), strict=True)) or [()] * width
        columns = {name: pyarrow.array(fields[self.columns.index(name)], pyarrow.string()) for name in names}
        lines.seek(0)
        return columns, len("".join(itertools.islice(lines, ends[-1])).encode())

    def _name_rows(self, rows: Collection[int]) -> dict[int, str]:
        """Row, counted from 0 below the header without empty lines -> the line in which it begins, in words."""
        found, number = {}, 0
        # Fields were read already, so that their length is no error here.
        with open_bytes(self.path) as (stream, _), _limit_fields(LINE_BYTES):
            text = io.TextIOWrapper(stream, encoding=self.dialect.encoding, newline="")
            for _ in range(self.dialect.num_skipped):
                text.readline()
            reader = csv.reader(text, delimiter=self.dialect.separator)
            next(reader)
            line = reader.line_num
            for fields in reader:
                if fields:
                    if number in rows:
                        found[number] = f"{self.path}, line {line + 1 + self.dialect.num_skipped}"
                    number += 1
                if len(found) == len(rows):
                    break
                line = reader.line_num
        return found


@contextlib.contextmanager
def _limit_fields(most: int) -> Iterator[None]:
    """Bounds the characters of a field that `csv` reads; the bound is the process's, and others have theirs."""
    before = csv.field_size_limit(most)
    try:
        yield
    finally:
        csv.field_size_limit(before)


_IRREGULAR = -1


def _find_end(content: bytes, separator: str, is_last: bool) -> int:
    """Where the last whole row ends, 0 for nowhere; `_IRREGULAR` if a quote neither opens nor closes a field.

    If each quote does, opening and closing ones take turns, so that their number tells what is inside of quotes.
    """
    if b'"' not in content:
        return len(content) if is_last else _find_newline(content) + 1
    padded = np.frombuffer(b"\n" + content + b"\n", np.uint8)
    quotes = np.flatnonzero(padded == ord('"'))
    may_be_beside = np.zeros(256, bool)
    # A quote opens a field behind a separator or an end of line, and closes one before such; or it is one of a pair.
    may_be_beside[list(f'{separator}\r\n"'.encode())] = True
    if not (may_be_beside[padded[quotes[::2] - 1]].all() and may_be_beside[padded[quotes[1::2] + 1]].all()):
        return _IRREGULAR
    if is_last:
        return len(content) if len(quotes) % 2 == 0 else _IRREGULAR
    quotes -= 1
    newline = _find_newline(content)
    # Behind an odd number of quotes the line ends inside of a field.
    while (before := int(np.searchsorted(quotes, newline))) % 2:
        newline = max(content.rfind(each, 0, quotes[before - 1]) for each in (b"\n", b"\r"))
    return newline + 1


def _find_newline(content: bytes) -> int:
    """The last end of a line; -1 if there is none. A return at the very end may be half of one."""
    return max(content.rfind(b"\n"), content.rfind(b"\r", 0, len(content) - 1))


def _explain(error: csv.Error) -> str:
    return next((words for part, words in _EXPLAINED.items() if part in str(error)), str(error))


FORMAT = make_table_format("a table, CSV or TSV", is_csv, make_csv_table, rank=60)
