"""Writes text, JSON and CSV files atomically, formats the cells of tables, and reads them. Imports no TensorFlow.

A file is first written beside its place and then renamed. So whoever reads it, at any moment, finds a whole file. To
tables that grow round by round, rows are appended instead (`launch.runs.growing_table`).
"""

import contextlib
import csv
import io
import json
import math
import os
import pathlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from launch.runs.shown_text import decode_cell, encode_cell


@contextlib.contextmanager
def replace_whole(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a path beside `path`, with the same suffix, to write to. It becomes `path` at the end of the block.

    If the block fails, what was written is removed and `path` stays as it was.

    Raises:
      OSError: the file cannot be written; its `filename` is `path`, also where the system names none, on a full disk.
    """
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    with name_in_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)  # somebody may have put a link there, which would be written through
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def replace_folder(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """The same for a folder, which exists when the block begins; a kill may leave none, but never half of one."""
    temporary, former = (path.with_name(f".{os.getpid()}.{name}{path.name}") for name in ("", "former_"))
    with name_in_errors(path):
        temporary.mkdir(parents=True)
        try:
            yield temporary
            if path.exists():
                os.replace(path, former)
            os.replace(temporary, path)
        finally:
            for folder in (temporary, former):
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def name_in_errors(path: pathlib.Path) -> Iterator[None]:
    """Gives `path` as file name to an OSError of the block that names no other file than its temporary one."""
    try:
        yield
    except OSError as error:
        named = os.path.basename(str(error.filename or ""))
        if error.errno and named in ("", f".{os.getpid()}.{path.name}"):
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise


def remove_unfinished(folder: pathlib.Path) -> None:
    """Removes, at any depth, what `replace_whole` and the like left that were killed: `.<process>.<name>`.

    A file of a process that still lives stays: another command may be writing into the folder.
    """
    for path in [*folder.rglob(".[0-9]*.*")]:
        match = re.match(r"\.(\d+)\.", path.name)
        if match and not _is_alive(int(match[1])):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return process != os.getpid()


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
