"""`tracking/<tracker>.json`: what a run folder knows of its run in a tracker, so that this stays the same run."""

import fcntl
import json
import os
import pathlib
from typing import Any

from launch.runs.columns import TRACKING
from launch.runs.tables import write_json


class RunLink:
    """The ids of a run in one tracker, by destination, held by one process at a time.

    Raises:
      OSError: the folder cannot be written.
    """

    def __init__(self, run_dir: pathlib.Path, tracker: str):
        folder = run_dir / TRACKING
        folder.mkdir(exist_ok=True)
        self._path = folder / f"{tracker}.json"
        self._lock_path = folder / f"{tracker}.lock"
        self._lock = open(self._lock_path, "w")  # noqa: SIM115 (held until the run is sent)

    def acquire(self) -> bool:
        """Whether this process alone may send the run, from now until `close`."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def is_current(self) -> bool:
        """Whether the folder still holds the run that it held, and was not removed or replaced by another run's."""
        try:
            return os.path.samestat(os.stat(self._lock_path), os.fstat(self._lock.fileno()))
        except FileNotFoundError:
            return False

    def read(self) -> dict[str, str]:
        """{destination: id} of the places that the run was sent to."""
        return {place: entry["run_id"] for place, entry in read_places(self._path).items()}

    def write(self, destination: str, run_id: str, where: str) -> None:
        """Keeps an id, and where to look, as the last entry."""
        places = read_places(self._path)
        places.pop(destination, None)
        write_json(self._path, {**places, destination: {"run_id": run_id, "where": where}})

    def close(self) -> None:
        """Lets another process send the run."""
        self._lock.close()


def read_places(path: pathlib.Path) -> dict[str, dict[str, Any]]:
    """What a link's file holds, {destination: {"run_id", "where"}}; empty if there is none, or it is damaged."""
    try:
        places = json.loads(path.read_text(encoding="utf-8"))
        return {place: entry for place, entry in places.items() if {"run_id", "where"} <= entry.keys()}
    except (OSError, ValueError, AttributeError):
        return {}
