"""`events.csv`: what happened to each device and when, a row an event. Imports no TensorFlow.

Asynchronous runs have their devices' starts and ends with the model's version; FedCD the models that devices clone,
delete and prefer, with the model's slot.
"""

import csv
import pathlib
from collections.abc import Sequence

from launch.runs.errors import RunFolderError
from launch.runs.tables import format_cell, write_table

COLUMNS = ("round", "time_s", "client", "what", "model")


class EventLog:
    """The file, which grows by the events of a round; without any event there is no file.

    Args:
      path: the file.
      last_round: keep the events up to this round, drop the others and a row that was half written; 0 starts anew.

    Raises:
      RunFolderError: the file cannot be read.
    """

    def __init__(self, path: pathlib.Path, last_round: int = 0):
        self._path = path
        if not path.exists():
            return
        if last_round == 0:
            path.unlink()
            return
        try:
            with open(path, newline="", encoding="utf-8") as file:
                rows = [row for row in csv.reader(file) if len(row) == len(COLUMNS) and row[0].isdecimal()]
        except (OSError, ValueError, csv.Error):
            raise RunFolderError(f"{path}: damaged; start the run anew") from None
        write_table(path, COLUMNS, [row for row in rows if int(row[0]) <= last_round])

    def append(self, round_num: int, events: Sequence[tuple[float, int, str, int]]) -> None:
        """Adds the events of a round, each (time_s, client, what, model)."""
        if not events:
            return
        if not self._path.exists():
            write_table(self._path, COLUMNS, [])
        with open(self._path, "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([str(round_num), *(format_cell(value) for value in event)] for event in events)
