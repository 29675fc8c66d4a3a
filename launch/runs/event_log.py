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
from launch.runs.tables import format_cell, name_in_errors, write_table


class EventLog:
    """The file, which grows by the events of a round. A run without events has no file.

    Args:
      path: the file.
      last_round: keep the events up to this round; drop later ones, and a row that was half written. 0 starts anew.

    Raises:
      RunFolderError: the file cannot be read.
    """

    def __init__(self, path: pathlib.Path, last_round: int = 0):
        self._path = path
        self._digest = hashlib.sha256()
        if not path.exists():
            return
        if last_round == 0:
            path.unlink()
            return
        try:
            with open(path, newline="", encoding="utf-8") as file:
                rows = [row for row in csv.reader(file) if len(row) == len(EVENT_COLUMNS) and row[0].isdecimal()]
        except (OSError, ValueError, csv.Error):
            raise RunFolderError(f"{path}: damaged; start a new run") from None
        kept = [row for row in rows if int(row[0]) <= last_round]
        write_table(path, EVENT_COLUMNS, kept)
        self._add_to_digest(kept)

    def append(self, round_num: int, events: Sequence[tuple[float, int, str, int]]) -> None:
        """Adds the events of a round, each (time_s, client, what, model)."""
        if not events:
            return
        if not self._path.exists():
            write_table(self._path, EVENT_COLUMNS, [])
        rows = [[str(round_num), *(format_cell(value) for value in event)] for event in events]
        with name_in_errors(self._path), open(self._path, "a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        self._add_to_digest(rows)

    def digest(self) -> str:
        """SHA-256 of all events, in hexadecimal."""
        return self._digest.hexdigest()

    def _add_to_digest(self, rows: Sequence[Sequence[str]]) -> None:
        self._digest.update("".join(",".join(row) + "\n" for row in rows).encode())
