"""A CSV table with one row a round. It grows with the run, and a resumed run goes on where its checkpoint is."""

import csv
import hashlib
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from launch.runs.errors import RunFolderError
from launch.runs.shown_text import decode_cell
from launch.runs.tables import format_cell, write_table


def _read_table(path: pathlib.Path) -> tuple[list[str], list[list[str]]]:
    """The columns of a CSV file, and its rows that have a cell for each of them; both empty if it cannot be read."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            columns, *rows = list(csv.reader(file))
    except (OSError, ValueError, csv.Error):
        return [], []
    # The cells stay as they stand there, and go back as they are.
    return [decode_cell(name) for name in columns], [row for row in rows if row and len(row) == len(columns)]


class RoundTable:
    """A CSV file with one row a round, whose columns are those of its first row.

    Args:
      path: the file.
      last_round: keep the rows up to this round, that of the checkpoint, and drop later ones; 0 starts anew.

    Raises:
      RunFolderError: the file lacks a row of these rounds.
    """

    def __init__(self, path: pathlib.Path, last_round: int = 0):
        self.path = path
        self.columns: list[str] = []
        self.rows: list[list[str]] = []
        self._digest = hashlib.sha256()
        if last_round:
            self.columns, rows = _read_table(path)
            self.rows = rows[:last_round]
            if [row[0] for row in self.rows] != [str(number) for number in range(1, last_round + 1)]:
                raise RunFolderError(f"{path}: damaged, expected the rounds 1 to {last_round}; start a new run")
            if len(self.rows) < len(rows):
                write_table(path, self.columns, self.rows)
            for row in self.rows:
                self._add_to_digest(row)

    def append(self, row: Mapping[str, Any]) -> None:
        """Adds a round's row, which begins with `round`, and writes the file.

        Raises:
          ValueError: the row's columns are not those of the first row.
        """
        self.columns = self.columns or list(row)
        if list(row) != self.columns:
            raise ValueError(f"{self.path.name}: a round gave the columns {list(row)}, expected {self.columns}")
        self.rows.append([format_cell(value) for value in row.values()])
        write_table(self.path, self.columns, self.rows)
        self._add_to_digest(self.rows[-1])

    def digest(self) -> str:
        """SHA-256 of all rows, in hexadecimal."""
        return self._digest.hexdigest()

    def _add_to_digest(self, row: Sequence[str]) -> None:
        cells = sorted((name, cell) for name, cell in zip(self.columns, row, strict=True) if cell)
        self._digest.update(f"{cells}\n".encode())

    def column(self, name: str) -> list[float | None]:
        """The numbers of one column, None where its cell is empty."""
        index = self.columns.index(name)
        return [float(row[index]) if row[index] else None for row in self.rows]
