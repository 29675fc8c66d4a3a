"""How a table of text is written: packed or not, its encoding, what separates its columns, how numbers are written."""

import codecs
import contextlib
import csv
import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import IO, NamedTuple

from datasets.errors import DatasetError
from files.reading import explain_errors

SEPARATORS = {",": "comma-separated", ";": "semicolon-separated", "\t": "tab-separated", "|": "separated by |"}
HEAD_BYTES = 2**18  # that the form is told from
LINE_BYTES = 2**24  # of a line, and of a row; more than that is not held in memory
_BLOCK_BYTES = 2**20
_GZIP = b"\x1f\x8b"
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_TITLES = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8 with a mark", "utf-16": "UTF-16", "cp1252": "Windows-1252"}
_OTHER_KINDS = {  # by their first bytes, and what to do with it
    b"PK\x03\x04": "a zip archive or an Excel workbook; unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
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
_ANY_COMMA = re.compile(r"\s*-?\d+,\d+\s*")
# Numbers whose mark can be no other than the decimal one: 1,230 and 1.230 are not.
_COMMA_NUMBER, _POINT_NUMBER = (
    re.compile(rf"\s*-?(?:\d+{mark}(?:\d{{1,2}}|\d{{4,}})|(?:0\d*|\d{{4,}}){mark}\d+)\s*") for mark in (",", r"\.")
)
_NUM_SAMPLE_ROWS = 200


class CsvForm(NamedTuple):
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


def find_form(path: str) -> CsvForm:
    """Finds how a file is written, by looking.

    Raises:
      DatasetError: it is empty, no text, of one column, or has a line that is too long.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # Python would wait at a pipe without end
        kind = "a folder" if os.path.isdir(path) else "no regular file"
        raise DatasetError(f"{path}: {kind}, expected a table of text, CSV or TSV")
    head, is_packed = read_head(path, HEAD_BYTES)
    if not head.strip():
        raise DatasetError(f"{path}: empty, expected the names of the columns in the first line and rows below it")
    if kind := next((kind for start, kind in _OTHER_KINDS.items() if head.startswith(start)), ""):
        raise DatasetError(f"{path}: no table of text but {kind}")
    encoding = next((name for mark, name in _BOMS.items() if head.startswith(mark)), "")
    if not encoding and b"\x00" in head:
        raise DatasetError(f"{path}: a binary file, byte {head.index(0)} is 0; expected a table of text, CSV or TSV")
    encoding = encoding or _find_encoding(path)
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
    return CsvForm(is_packed, encoding, separator, has_comma, int(bool(marked)))


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
