"""`events.csv`: what happened to each device and when, a row an event. Imports no TensorFlow.

Asynchronous runs log when devices start and end, with the model's version. FedCD logs which models devices clone,
delete and prefer, with the model's slot.
"""

import csv
import hashlib
import pathlib
from collections.abc import Sequence

from launch.runs.columns import EVENT_COLUMNS
from launch.runs.errors import RunFolderError
from launch.runs.round_table import GrowingTable
from launch.runs.tables import format_cell, iterate_whole_lines


class EventLog:
    """The file, which grows by the events of a round. A run without events has no file.

    Args:
      path: the file.
      last_round: keep the events up to this round; drop later ones, and a row that was half written. 0 starts anew.

    Raises:
      RunFolderError: the file cannot be read.
    """

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
                rows = [row for row in csv.reader(iterate_whole_lines(file)) if _is_up_to(last_round, row)]
        except (OSError, ValueError, csv.Error):
            raise RunFolderError(f"{path}: damaged; start a new run") from None
        self._file.keep(EVENT_COLUMNS, rows)
        self._add_to_digest(rows)

    def append(self, round_num: int, events: Sequence[tuple[float, int, str, int]]) -> None:
        """Adds the events of a round, each (time_s, client, what, model)."""
        if events:
            rows = [[str(round_num), *(format_cell(value) for value in event)] for event in events]
            self._file.append(EVENT_COLUMNS, rows)
            self._add_to_digest(rows)

    def digest(self) -> str:
        """SHA-256 of all events, in hexadecimal."""
        return self._digest.hexdigest()

    def _add_to_digest(self, rows: Sequence[Sequence[str]]) -> None:
        self._digest.update("".join(",".join(row) + "\n" for row in rows).encode())


def _is_up_to(last_round: int, row: Sequence[str]) -> bool:
    return len(row) == len(EVENT_COLUMNS) and row[0].isdecimal() and int(row[0]) <= last_round
