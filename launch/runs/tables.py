"""Writes JSON and CSV files atomically, formats the cells of tables, and reads them. Imports no TensorFlow.

To tables that grow round by round, rows are appended instead (`launch.runs.growing_table`).
"""

import csv
import io
import json
import math
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from files.writing import write_text
from launch.runs.shown_text import decode_cell, encode_cell


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


def write_table(path: pathlib.Path, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes a CSV file of formatted cells atomically."""
    write_text(path, format_lines([[encode_cell(name) for name in columns], *rows]))


def format_lines(rows: Iterable[Sequence[str]]) -> str:
    """The lines of a CSV file for rows of formatted cells."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def iterate_whole_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a table without a last one that lacks its end: it is being written, or a kill has cut it off.

    Every reader of tables takes their lines from here, so that a run may be read while it goes on.
    """
    return (line for line in lines if line.endswith("\n"))


def iterate_rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """The rows of a CSV file, its columns first, with the text that `format_cell` was given. Raises csv.Error."""
    for row in csv.reader(iterate_whole_lines(lines)):
        yield [decode_cell(cell) for cell in row]


def iterate_records(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The same as {column: cell}; as from csv.DictReader, cells that are missing are None."""
    for record in csv.DictReader(iterate_whole_lines(lines)):
        yield {_decode(name): _decode(cell) for name, cell in record.items()}


def _decode(cell: Any) -> Any:
    return decode_cell(cell) if isinstance(cell, str) else cell
