"""Writes text, JSON and CSV files atomically, and formats the cells of tables. Imports no TensorFlow.

A file is first written beside its place and then renamed. So whoever reads it, at any moment, finds a whole file.
"""

import contextlib
import csv
import json
import math
import os
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


@contextlib.contextmanager
def replace_whole(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a path beside `path`, with the same suffix, to write to. It becomes `path` at the end of the block.

    If the block fails, what was written is removed and `path` stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: pathlib.Path, text: str) -> None:
    """Writes a text file atomically."""
    with replace_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


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
    """A table cell: whole numbers in full, others with six significant digits, None as an empty cell."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    number = float(value)
    # Above 2**53 every float64 is whole, so that the digits beyond it mean nothing.
    return f"{number:.0f}" if number.is_integer() and abs(number) < 2**53 else f"{number:.6g}"


def write_table(path: pathlib.Path, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes a CSV file of formatted cells atomically."""
    with replace_whole(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
