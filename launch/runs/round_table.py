"""CSV tables that grow at their end, so that a row costs the same however many there are. Imports no TensorFlow.

A kill or a full disk in the middle of a write leaves a last line without its end. Readers leave that line out, see
`launch.runs.tables.iterate_whole_lines`, and whoever writes next begins where the last whole line ends. A table with
one row a round grows with the run, and a resumed run goes on where its checkpoint is.
"""

import csv
import errno
import hashlib
import itertools
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from files.writing import name_in_errors, write_whole
from launch.console.shown_text import decode_cell, encode_cell
from launch.runs.columns import EVENT_COLUMNS
from launch.runs.errors import RunFolderError
from launch.runs.tables import format_cell, format_lines, iterate_rows, iterate_whole_lines


class GrowingFile:
    """A file that grows at its end. It has none of what was there before, until `keep` says so.

    Args:
      path: the file.
    """

    def __init__(self, path: pathlib.Path):
        self.path = path
        self._size_bytes = 0  # of what this object knows of

    def keep(self, content: bytes) -> None:
        """Begins with this content. The file is written anew, atomically, unless it holds just that already.

        Raises:
          OSError: the file cannot be read or written.
        """
        # A resumed run leaves a file alone that is right already.
        # A write would change another file by a link, or where a folder was copied by hard links.
        is_own = self.path.is_file() and not self.path.is_symlink() and self.path.stat().st_nlink == 1
        if not is_own or self.path.read_bytes() != content:
            write_whole(self.path, content)
        self._size_bytes = len(content)

    def append(self, content: bytes) -> None:
        """Adds content at the end; the first one makes the file. Errors are those of `keep`."""
        if not self._size_bytes:
            self.keep(content)
            return
        with name_in_errors(self.path), open(self.path, "r+b") as file:
            if file.seek(0, os.SEEK_END) < self._size_bytes:
                raise OSError(errno.EIO, "another program has cut it while the run went on", str(self.path))
            file.truncate(self._size_bytes)  # what a write left that failed half-way
            file.seek(self._size_bytes)
            file.write(content)
        self._size_bytes += len(content)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written yet, or is to stay."""
        return not self._size_bytes


class GrowingTable:
    """The CSV file of a table, which begins and grows as a `GrowingFile`.

    Args:
      path: the file.
    """

    def __init__(self, path: pathlib.Path):
        self.path = path
        self._file = GrowingFile(path)

    def keep(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Begins with these rows.

        Args:
          columns: the names of the columns.
          rows: formatted cells, each row as long as `columns`.

        Raises:
          OSError: the file cannot be read or written.
        """
        self._file.keep(format_lines([[encode_cell(name) for name in columns], *rows]).encode())

    def append(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Adds rows at the end; the first ones make the file. Arguments and errors are those of `keep`."""
        if self._file.is_empty:
            self.keep(columns, rows)
        else:
            self._file.append(format_lines(rows).encode())


def read_round_table(path: pathlib.Path, last_round: int | None = None) -> tuple[list[str], list[list[str]]]:
    """The columns of a table with a row a round, and its rows up to a round, None for all; cells are as they stand.

    Raises:
      RunFolderError: the file lacks a row of these rounds, or cannot be read.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            columns, *rows = list(csv.reader(iterate_whole_lines(file)))
    except (OSError, ValueError, csv.Error):
        columns, rows = [], []
    rows = [row for row in rows if row and len(row) == len(columns)][:last_round]
    last_round = len(rows) if last_round is None else last_round
    if [row[0] for row in rows] != [str(number) for number in range(1, last_round + 1)]:
        raise RunFolderError(f"{path}: damaged, expected the rounds 1 to {last_round}; start a new run")
    return [decode_cell(name) for name in columns], rows


class RoundTable:
    """A CSV file with one row a round, whose columns are those of its first row.

    Of the rows only the last one is kept in memory: a long run has tens of thousands. What is asked once, at the end of
    a run, is read from the file again.

    Args:
      path: the file.
      last_round: keep the rows up to this round, that of the checkpoint, and drop later ones; 0 starts anew.

    Attributes:
      columns: their names; empty before the first row.
      last_row: the cells of the last row; empty before the first one.
      num_rounds: how many rows there are.

    Raises:
      RunFolderError: the file lacks a row of these rounds.
    """

    def __init__(self, path: pathlib.Path, last_round: int = 0):
        self.path = path
        self.columns: list[str] = []
        self.num_rounds = 0
        self._file = GrowingTable(path)
        self.last_row: list[str] = []
        self._digest = hashlib.sha256()
        if last_round:
            self.columns, rows = read_round_table(path, last_round)
            self._file.keep(self.columns, rows)
            for row in rows:
                self._count(row)

    def append(self, row: Mapping[str, Any]) -> None:
        """Adds a round's row, which begins with `round`, to the file.

        Raises:
          ValueError: the row's columns are not those of the first row.
        """
        self.columns = self.columns or list(row)
        if list(row) != self.columns:
            raise ValueError(f"{self.path.name}: a round gave the columns {list(row)}, expected {self.columns}")
        cells = [format_cell(value) for value in row.values()]
        self._file.append(self.columns, [cells])
        self._count(cells)

    def _count(self, row: Sequence[str]) -> None:
        cells = sorted((name, cell) for name, cell in zip(self.columns, row, strict=True) if cell)
        self._digest.update(f"{cells}\n".encode())
        self.last_row = list(row)
        self.num_rounds += 1

    def digest(self) -> str:
        """SHA-256 of all rows, in hexadecimal."""
        return self._digest.hexdigest()

    def last(self, name: str) -> float | None:
        """The number of the last row in a column, None if its cell is empty. There must be a row."""
        return _read_number(self.last_row[self.columns.index(name)])

    def column(self, name: str) -> list[float | None]:
        """The numbers of one column, None where its cell is empty; they are read from the file."""
        index = self.columns.index(name)
        return [_read_number(row[index]) for row in self.iterate_rows()]

    def iterate_rows(self) -> Iterator[list[str]]:
        """The cells of all rows, which are read from the file one by one."""
        if self.num_rounds:  # else what lies there is of another run
            with open(self.path, newline="", encoding="utf-8") as file:
                yield from itertools.islice(iterate_rows(file), 1, None)


def _read_number(cell: str) -> float | None:
    return float(cell) if cell else None


class EventLog:
    """The file, which grows by the events of a round. A run without events has no file.

    Args:
      path: the file.
      last_round: keep the events up to this round; drop later ones, and a row that was half written. 0 starts anew.

    Attributes:
      columns: of the file, the round first.

    Raises:
      RunFolderError: the file cannot be read.
    """

    columns: tuple[str, ...] = EVENT_COLUMNS

    def __init__(self, path: pathlib.Path, last_round: int = 0):
        self._file = GrowingTable(path)
        self._digest = hashlib.sha256()
        if not path.exists():
            return
        if last_round == 0:
            path.unlink()
            return
        try:
            with open(path, newline="", encoding="utf-8") as file:
                whole = [row for row in csv.reader(iterate_whole_lines(file)) if len(row) == len(self.columns)]
        except (OSError, ValueError, csv.Error):
            raise RunFolderError(f"{path}: damaged; start a new run") from None
        rows = [row for row in whole if row[0].isdecimal() and int(row[0]) <= last_round]
        self._file.keep(self.columns, rows)
        self._add_to_digest(rows)

    def append(self, round_num: int, events: Sequence[tuple[float, int, str, int]]) -> None:
        """Adds the events of a round, each (time_s, client, what, model)."""
        if events:
            rows = [[str(round_num), *self.format_event(event)] for event in events]
            self._file.append(self.columns, rows)
            self._add_to_digest(rows)

    def format_event(self, event: tuple[float, int, str, int]) -> list[str]:
        """The cells of an event, without the round."""
        return [format_cell(value) for value in event]

    def digest(self) -> str:
        """SHA-256 of all events, in hexadecimal."""
        return self._digest.hexdigest()

    def _add_to_digest(self, rows: Sequence[Sequence[str]]) -> None:
        self._digest.update("".join(",".join(row) + "\n" for row in rows).encode())
