"""`checksums.sha256`: what the files of a finished run held when it ended, in the form that `sha256sum --check` reads.

A flipped bit, or a file of another run, is thus noticed before its numbers are believed. Imports no TensorFlow.
"""

import hashlib
import pathlib
import re
import zipfile
from collections.abc import Sequence

from files.reading import find_files
from files.writing import write_text
from launch.runs.columns import (
    CHECKSUMS_FILE,
    CLIENTS_BY_ROUND_FILE,
    CLIENTS_FILE,
    CONFIG_FILE,
    EVENTS_FILE,
    FINE_TUNING_FILE,
    METRICS_FILE,
    RECORD_FILE,
    SUMMARY_FILE,
    TIMING_FILE,
    TRAFFIC_FILE,
)
from launch.runs.errors import RunFolderError
from launch.runs.run_folder import RunFolder
from launch.runs.tables import open_text
from models.model_names import SAVED_FILES

RECORDS = (
    *(CONFIG_FILE, METRICS_FILE, TIMING_FILE, EVENTS_FILE, CLIENTS_BY_ROUND_FILE),
    *(RECORD_FILE, TRAFFIC_FILE, CLIENTS_FILE, FINE_TUNING_FILE, SUMMARY_FILE),
)


def write_checksums(folder: RunFolder) -> None:
    """Writes the sums of a run's records and models, as the last of its files.

    Models are those of the last round, and what is archived of the best one.
    """
    models = [f"*/{name}" for name in SAVED_FILES]
    found = [*find_files(folder.models, *models), *find_files(folder.best_models, *models, CLIENTS_FILE)]
    names = [*RECORDS, *sorted(path.relative_to(folder.path).as_posix() for path in found)]
    there = [name for name in names if (folder.path / name).exists()]
    lines = [f"{_compute_sum(folder.path / name)}  {name}\n" for name in there]
    write_text(folder.path / CHECKSUMS_FILE, "".join(lines))


def check_sums(run_dir: pathlib.Path | zipfile.Path, names: Sequence[str] = RECORDS) -> None:
    """Compares files of a run with their sums; those that are not there are passed over.

    A run without sums is not checked: one that goes on, of an earlier version, or in an archive. No sums speak for what
    lies outside of the folder.

    Raises:
      RunFolderError: a file has changed, is a link out of the folder or no regular one, or the sums cannot be read.
    """
    path = run_dir / CHECKSUMS_FILE
    check_inside(run_dir, (CHECKSUMS_FILE, *names))
    try:
        if not path.exists():
            return
        with open_text(path) as file:
            lines = file.read().removesuffix("\n").split("\n")  # not at what Unicode takes for a line's end
        matches = [re.fullmatch("([0-9a-f]{64})  (.+)", line) for line in lines]
        sums = {match[2]: match[1] for match in matches}
        changed = [name for name in names if (run_dir / name).is_file() and _compute_sum(run_dir / name) != sums[name]]
    except (OSError, ValueError, TypeError, KeyError):
        raise RunFolderError(f"{path}: damaged; without this file the run is not checked") from None
    if changed:
        raise RunFolderError(
            f"{run_dir / changed[0]}: has changed since the run ended, or is another run's; restore it, or train again"
        )


def check_inside(run_dir: pathlib.Path | zipfile.Path, names: Sequence[str]) -> None:
    """Raises RunFolderError if one of these files of a run lies elsewhere, by a link, or is no regular one."""
    if isinstance(run_dir, pathlib.Path):
        folder = run_dir.resolve()
        for path in (run_dir / name for name in names):
            if not path.resolve().is_relative_to(folder):
                raise RunFolderError(f"{path}: lies outside of the run folder, by a link; put it there")
            if path.exists() and not path.is_file():  # who opened a pipe would wait at it for ever
                raise RunFolderError(f"{path}: expected a regular file; restore it, or train again")


def _compute_sum(path: pathlib.Path | zipfile.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
