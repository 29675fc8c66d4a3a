"""Writes JSON and CSV files atomically, formats the cells of tables, and reads them. Imports no TensorFlow.

To tables that grow round by round, rows are appended instead (`launch.runs.round_table`).
"""

import collections
import csv
import errno
import functools
import io
import itertools
import json
import math
import os
import pathlib
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from files.reading import open_regular
from files.writing import write_text
from launch.console.shown_text import decode_cell, encode_cell

MAX_FILE_BYTES = 4 * 2**30  # logs of events have some hundred MB
MAX_LINE = 2**24  # characters; a line of 100,000 columns has 2 million


def format_json(content: Any) -> str:
    """JSON text. NumPy values become numbers and lists; NaN and infinity, which JSON lacks, null."""
    text = json.dumps(_to_json(content), indent=2)
    # A list of numbers on one line: `json` would give each number a line of its own.
    flat = re.sub(r"\[[^\[\]{}\"]*\]", lambda match: " ".join(match[0].split()), text)
    return flat + "\n"


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes JSON atomically, as `format_json` spells it."""
    write_text(path, format_json(content))


def _to_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _to_json(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_to_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_cell(value: Any) -> str:
    """A table cell: whole numbers in full, others with six significant digits, None as an empty cell.

    Text is encoded so that a spreadsheet takes it for text; `iterate_rows` gives it back.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return encode_cell(value)
    number = float(value)
    # Above 2**53 every float64 is whole, so that the digits beyond it mean nothing.
    return f"{number:.0f}" if number.is_integer() and abs(number) < 2**53 else f"{number:.6g}"


def blank_nan(values: Iterable[float]) -> list[float | None]:
    """The values with None, an empty cell, for what is not known."""
    return [None if math.isnan(value) else float(value) for value in values]


def write_table(path: pathlib.Path, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes a CSV file of formatted cells atomically."""
    write_text(path, format_lines([[encode_cell(name) for name in columns], *rows]))


def format_lines(rows: Iterable[Sequence[str]]) -> str:
    """The lines of a CSV file for rows of formatted cells."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def open_text(path: pathlib.Path | zipfile.Path) -> TextIO:
    """Opens a text file of a run, on disk or in an archive, with its line ends as they are.

    Raises:
      OSError: it cannot be read, is a pipe or a device, at which nobody waits, or is larger than any run makes one.
    """
    if not isinstance(path, pathlib.Path):
        return path.open(newline="", encoding="utf-8")
    file = open_regular(path)
    if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
        file.close()
        raise OSError(errno.EFBIG, f"larger than {MAX_FILE_BYTES / 2**30:.0f} GB", str(path))
    return io.TextIOWrapper(file, encoding="utf-8", newline="")


def iterate_whole_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a table without a last one that lacks its end: it is being written, or a kill has cut it off.

    Every reader of tables takes their lines from here, so that a run may be read while it goes on.

    Raises:
      ValueError: a line of a file is longer than any of a table.
    """
    if hasattr(lines, "readline"):
        # Iterating over a file would read a line of any length into memory.
        lines = iter(functools.partial(lines.readline, MAX_LINE), "")
    for line in lines:
        if line.endswith("\n"):
            yield line
        elif len(line) >= MAX_LINE:
            raise ValueError(f"a line of more than {MAX_LINE:,} characters")


def iterate_rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """The rows of a CSV file, its columns first, with the text that `format_cell` was given.

    Raises:
      ValueError: it is no such file.
    """
    try:
        for row in csv.reader(iterate_whole_lines(lines)):
            yield [decode_cell(cell) for cell in row]
    except csv.Error as error:
        raise ValueError(str(error)) from None


def check_columns(names: Sequence[str]) -> None:
    """Raises ValueError if two columns have one name, of which only one would be read."""
    if len(set(names)) < len(names):
        name = next(name for name, number in collections.Counter(names).items() if number > 1)
        raise ValueError(f"two columns are called {name:.60}")


def iterate_records(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The same as {column: cell}; as from csv.DictReader, cells that are missing are None.

    Raises:
      ValueError: it is no such file, or two columns have one name.
    """
    rows = iterate_rows(lines)
    names = next(rows, [])
    check_columns(names)
    for cells in filter(None, rows):
        record: dict[Any, Any] = dict(itertools.zip_longest(names, cells[: len(names)]))
        yield record if len(cells) <= len(names) else {**record, None: cells[len(names) :]}
