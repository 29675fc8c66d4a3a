"""How a table of text is written: packed or not, its encoding, what separates its columns, how numbers are written."""

import codecs
import contextlib
import csv
import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import IO, NamedTuple

from datasets.errors import DatasetError

SEPARATORS = {",": "comma-separated", ";": "semicolon-separated", "\t": "tab-separated", "|": "separated by |"}
HEAD_BYTES = 2**18  # that the form is told from
_GZIP = b"\x1f\x8b"
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_TITLES = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8 with a mark", "utf-16": "UTF-16", "cp1252": "Windows-1252"}
# First bytes of what is no text, and what to do with it.
_OTHER_KINDS = (
    (b"PK\x03\x04", "a zip archive or an Excel workbook; unpack it, or save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; save the sheet as CSV"),
    (b"PAR1", "a parquet file; give --data_format=parquet"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x89HDF", "an HDF5 file; save its table with pandas.DataFrame.to_csv"),
    (b"BZh", "a bzip2 file; unpack it"),
    (b"\xfd7zXZ", "an xz file; unpack it"),
    (b"\x80", "a pickle; save its table with pandas.DataFrame.to_csv where you trust it"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
)
_COMMA_NUMBER, _POINT_NUMBER = re.compile(r"\s*-?\d+,\d+\s*"), re.compile(r"\s*-?\d+\.\d+\s*")
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)  # what Excel writes and reads as a first line
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
        parts = [SEPARATORS[self.separator], _TITLES[self.encoding]]
        if self.has_decimal_comma:
            parts.append("decimal comma")
        if self.is_packed:
            parts.append("gzip")
        return ", ".join(parts)


def find_form(path: str) -> CsvForm:
    """Finds how a file is written, by looking.

    Raises:
      DatasetError: it is empty, no text, or of one column.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # Python would wait at a pipe without end
        kind = "a folder" if os.path.isdir(path) else "no regular file"
        raise DatasetError(f"{path}: {kind}, expected a table of text, CSV or TSV")
    with guard_reading(path):
        with open(path, "rb") as file:
            start = file.read(16)
        is_packed = start.startswith(_GZIP)
        with open_bytes(path, is_packed) as stream:
            head = stream.read(HEAD_BYTES)
    if not head.strip():
        raise DatasetError(f"{path}: empty, expected the names of the columns in the first line and rows below it")
    for signature, kind in _OTHER_KINDS:
        if head.startswith(signature):
            raise DatasetError(f"{path}: no table of text but {kind}")
    encoding = next((name for mark, name in _BOMS if head.startswith(mark)), "")
    if not encoding and b"\x00" in head:
        raise DatasetError(f"{path}: a binary file, byte {head.index(0)} is 0; expected a table of text, CSV or TSV")
    encoding = encoding or _find_encoding(path, is_packed)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head).replace("\r\n", "\n").replace("\r", "\n")
    if len(head) == HEAD_BYTES:  # the last line may be cut
        text = text[: text.rfind("\n") + 1] or text
    marked = _SEPARATOR_LINE.match(text)
    num_skipped = 1 if marked and marked[1] in SEPARATORS else 0
    lines = text.splitlines()[num_skipped:]
    separator = marked[1] if num_skipped else _find_separator(path, lines)
    cells = [cell for row in _parse(lines[1:], separator) for cell in row]
    has_comma = separator != "," and any(map(_COMMA_NUMBER.fullmatch, cells))
    has_comma = has_comma and not any(map(_POINT_NUMBER.fullmatch, cells))
    return CsvForm(is_packed, encoding, separator, has_comma, num_skipped)


@contextlib.contextmanager
def guard_reading(path: str) -> Iterator[None]:
    """What fails when a file is read becomes one line."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(f"{path}: damaged or cut gzip file ({error}); expected a whole one") from None
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror or error})") from None


def open_bytes(path: str, is_packed: bool) -> IO[bytes]:
    """The file's bytes, unpacked."""
    return gzip.open(path, "rb") if is_packed else open(path, "rb")


def open_text(path: str, form: CsvForm) -> IO[str]:
    """The file's text, line ends as they are; what is above the names of the columns is skipped."""
    stream = io.TextIOWrapper(open_bytes(path, form.is_packed), encoding=form.encoding, newline="")
    for _ in range(form.num_skipped):
        stream.readline()
    return stream


def _find_encoding(path: str, is_packed: bool) -> str:
    """UTF-8 if the whole file is, else Windows-1252.

    Raises:
      DatasetError: it is neither.
    """
    decoders = {name: codecs.getincrementaldecoder(name)() for name in ("utf-8", "cp1252")}
    lines = dict.fromkeys(decoders, 1)
    failed: dict[str, int] = {}
    with open_bytes(path, is_packed) as stream:
        for block in iter(lambda: stream.read(2**20), b""):
            for name in decoders.keys() - failed.keys():
                try:
                    decoders[name].decode(block)
                    lines[name] += block.count(b"\n")
                except UnicodeDecodeError as error:
                    failed[name] = lines[name] + error.object[: error.start].count(b"\n")
            if "utf-8" in failed and "cp1252" in failed:
                raise DatasetError(
                    f"{path}, line {failed['utf-8']}: neither UTF-8 nor Windows-1252 (line {failed['cp1252']}); "
                    f"expected text in UTF-8, save it so"
                )
    with contextlib.suppress(UnicodeDecodeError):
        if "utf-8" not in failed:
            decoders["utf-8"].decode(b"", final=True)
            return "utf-8"
    return "cp1252"


def _find_separator(path: str, lines: list[str]) -> str:
    """The one that gives most rows the same number of columns, at least two; the most columns where several do."""
    best, best_score = "", (0.0, 0)
    for separator in SEPARATORS:
        widths = [len(row) for row in _parse(lines, separator) if row]
        if not widths or widths[0] < 2:
            continue
        share = Counter(widths)[widths[0]] / len(widths)
        if (round(share, 1), widths[0]) > best_score:
            best, best_score = separator, (round(share, 1), widths[0])
    if not best:
        first = lines[0][:60] if lines else ""
        raise DatasetError(
            f"{path}: one column only, the first line is {first!r}; expected columns separated by comma, semicolon, "
            f"tab or |"
        )
    return best


def _parse(lines: list[str], separator: str) -> list[list[str]]:
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # said when the file is read
        rows.extend(csv.reader([f"{line}\n" for line in lines[:_NUM_SAMPLE_ROWS]], delimiter=separator))
    return rows
