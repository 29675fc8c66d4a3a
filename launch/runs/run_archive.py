"""Keeps the numbers of runs that a report counted, small enough to commit: settings, metrics and summary, no models.

An archive holds run folders, `<experiment>/seed_<seed>/...`, in a folder or in a zip. `launch.report` reads both like
any folder of runs, and `launch.sweep --finished` skips the runs in them. What is kept of a run is what its report
reads (`Kept`). Of an event log only the changes of the model that a device prefers are kept, and what all prefer at
the end; whole logs take megabytes.

The zip has one entry, itself a zip of all files, uncompressed and with those of a kind side by side: compressed as one
by LZMA it is a sixth of what it is file by file. Its comment is the SHA-256 of that entry's contents. The same runs
give the same contents, whatever library compresses them, and an archive that holds them already is not written again.
Archives of earlier versions, whose files lie in the zip itself, are read as well.
"""

import csv
import hashlib
import io
import lzma
import pathlib
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from files.reading import explain_errors, read_regular
from files.writing import write_whole
from launch.runs.columns import (
    ARRAYS_DIGEST,
    CLASS_WEIGHTS_DIGEST,
    CLIENT,
    CLIENT_STEPS,
    CLIENTS_FILE,
    CLUSTER,
    CONFIG_FILE,
    DEVICES,
    DIGEST,
    EVALUATION_S,
    EVENTS_FILE,
    EXPORT_REPORT,
    FINE_TUNING_FILE,
    METRICS_FILE,
    MODEL,
    NUM_TRAIN,
    OWN_ALGORITHM,
    OWN_MODULES,
    PREFERS,
    RESOURCE,
    ROUND,
    ROUND_S,
    SOURCE_DIGEST,
    SUMMARY_FILE,
    TIMING_FILE,
    WHAT,
)
from launch.runs.errors import RunFolderError
from launch.runs.run_records import RunPath, RunRecord, RunRecordError, find_run_dirs, read_config
from launch.runs.tables import format_json, format_lines, iterate_whole_lines, open_text
from launch.runs.task_columns import TASK, read_task_columns
from launch.settings.resuming import PLACES

ARCHIVE_SUFFIX = ".zip"
EARLIEST_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold
PERMISSIONS = 0o100644  # a file that its owner may write and all may read
UNIX = 3
ARCHIVED_OF_CONFIG = ("flags", OWN_ALGORITHM, OWN_MODULES, "versions", "git_revision")
# What names the data, the name of a subset, who is of which archetype, and a task that was guessed: no flag says so.
ARCHIVED_OF_DATA = (
    *(DIGEST, SOURCE_DIGEST, ARRAYS_DIGEST, DEVICES, CLASS_WEIGHTS_DIGEST),
    *("dataset", "archetypes", TASK),
)
ARCHIVED_OF_TIMING = (ROUND, ROUND_S, EVALUATION_S)
ARCHIVED_OF_EVENTS = (ROUND, CLIENT, WHAT, MODEL)
FILES = (TIMING_FILE, EVENTS_FILE, CLIENTS_FILE, FINE_TUNING_FILE, EXPORT_REPORT)
MAX_UNPACKED_BYTES = 2**31  # a hundred times what those of the papers hold
CONTENTS = "runs.zip"  # the one entry
DIGEST = "sha256:"


class Kept(NamedTuple):
    """What is kept of a run beside its settings and its summary.

    Attributes:
      metrics: a regular expression that names of columns of `metrics.csv` match whole; the round is always kept.
      files: those of FILES that are kept, if they are there.
    """

    metrics: str = ".*"
    files: tuple[str, ...] = FILES


EVERYTHING = Kept()


def is_archive(path: pathlib.Path) -> bool:
    """Whether a path names a zip archive rather than a folder, there or still to be written."""
    return path.suffix == ARCHIVE_SUFFIX and not path.is_dir()


def open_runs(path: pathlib.Path) -> RunPath:
    """A folder of runs as it is, or a zip archive of runs opened for reading.

    Raises:
      RunFolderError: there is neither, or the zip is damaged or holds no runs.
    """
    if path.is_dir():
        return path
    if not path.is_file():
        raise RunFolderError(f"{path}: no such folder or archive; python -m launch.sweep makes runs")
    # Read whole, so that the archive can be written anew while its runs are in use.
    with explain_errors(path, RunFolderError):
        content = read_regular(path, MAX_UNPACKED_BYTES)
    archive = _open_zip(path, content)
    if archive.namelist() == [CONTENTS]:
        contents = archive.read(CONTENTS)
        if archive.comment.decode("utf-8", "replace") != compute_digest(contents):
            raise RunFolderError(f"{path}: damaged (its contents are not those of its digest); fetch or make it again")
        archive = _open_zip(path, contents)
    archive.filename = str(path)  # by which messages name the runs in it
    runs = zipfile.Path(archive)
    if not find_run_dirs(runs):
        raise RunFolderError(f"{path}: a zip without runs; expected one that launch.report --archive wrote")
    return runs


def _open_zip(path: pathlib.Path, content: bytes) -> zipfile.ZipFile:
    """A zip whose entries are all whole. Raises RunFolderError, which names `path`."""
    unreadable = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, OSError, LookupError)
    try:
        # Sizes are looked at before anything is unpacked: a small zip can hold a disk full of zeros.
        archive = zipfile.ZipFile(io.BytesIO(content))
        if sum(entry.file_size for entry in archive.infolist()) > MAX_UNPACKED_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_UNPACKED_BYTES / 2**30:.0f} GB")
        damaged = archive.testzip()
    except (*unreadable, NotImplementedError, RuntimeError, struct.error, MemoryError) as error:
        raise RunFolderError(
            f"{path}: cannot be read as a zip archive of runs ({error}); fetch or make it again"
        ) from None
    if damaged is not None:
        raise RunFolderError(f"{path}: damaged ({damaged} has changed); fetch or make it again")
    return archive


def compute_digest(contents: bytes) -> str:
    """The comment of an archive of these contents."""
    return DIGEST + hashlib.sha256(contents).hexdigest()


def archive_runs(runs: Iterable[RunRecord], target: pathlib.Path, keep: Kept = EVERYTHING) -> None:
    """Keeps the numbers of the finished ones of `runs` in a folder or, if `target` ends in .zip, in an archive.

    A folder keeps what else is in it; a zip is replaced, unless it holds the same.

    Raises:
      OSError: a file could not be read or written.
      RunRecordError: a run has no `config.json` that can be read.
    """
    is_zip = is_archive(target)
    entries: dict[str, bytes] = {}
    for run in runs:
        place = f"{run.experiment}/seed_{run.flags['seed']}"
        # A run that already lies where it would go stays as it is: its folder may hold models as well.
        is_there = isinstance(run.path, pathlib.Path) and run.path.resolve() == (target / place).resolve()
        if (run.path / SUMMARY_FILE).is_file() and not is_there:
            entries |= {f"{place}/{name}": content for name, content in read_archived_files(run, keep).items()}
    if is_zip:
        write_zip(entries, target)
    else:
        for name, content in entries.items():
            write_whole(target / name, content)


def read_archived_files(run: RunRecord, keep: Kept = EVERYTHING) -> dict[str, bytes]:
    """What is kept of a run, by name in its folder: its settings without the places of one machine, and its numbers."""
    config = read_config(run.path)
    kept = {name: config[name] for name in ARCHIVED_OF_CONFIG if name in config}
    data = {name: config["data"][name] for name in ARCHIVED_OF_DATA if name in config.get("data", {})}
    kept |= {"data": data} if data else {}
    kept["flags"] = {name: value for name, value in config["flags"].items() if name not in PLACES}
    files = {CONFIG_FILE: format_json(kept).encode(), SUMMARY_FILE: (run.path / SUMMARY_FILE).read_bytes()}
    files[METRICS_FILE] = _read_archived_metrics(run.path / METRICS_FILE, keep.metrics)
    there = [name for name in keep.files if (run.path / name).is_file()]
    files |= {name: (run.path / name).read_bytes() for name in there if name in (FINE_TUNING_FILE, EXPORT_REPORT)}
    reached = read_task_columns(data).of_client
    archived_columns = {
        TIMING_FILE: ARCHIVED_OF_TIMING,
        CLIENTS_FILE: (CLIENT, NUM_TRAIN, reached, CLUSTER, RESOURCE, CLIENT_STEPS),
    }
    tables = {
        name: _read_archived_columns(run.path / name, archived_columns[name])
        for name in there
        if name in archived_columns
    }
    if EVENTS_FILE in there and "archetypes" in data:  # the logs of asynchronous runs are long and hold no preferences
        tables[EVENTS_FILE] = _read_archived_events(run.path / EVENTS_FILE)
    return files | {name: table for name, table in tables.items() if table}


def _read_archived_metrics(path: RunPath, wanted: str) -> bytes:
    """The file as it is, if all its columns are kept."""
    rows = _read_cells(path)
    columns = list(rows[0]) if rows else []
    kept = [name for name in columns if name == ROUND or re.fullmatch(wanted, name)]
    if kept != columns:
        return _format_rows(kept, rows)
    with open_text(path) as file:
        return "".join(iterate_whole_lines(file)).encode()


def _read_archived_columns(path: RunPath, wanted: Sequence[str]) -> bytes:
    """The columns of a table that are kept; b"" if they say nothing but the names and sizes of its rows."""
    rows = _read_cells(path) if path.exists() else []
    kept = [name for name in wanted if any(row.get(name) for row in rows)]
    return _format_rows(kept, rows) if len(set(kept) - {NUM_TRAIN}) >= 2 else b""


def _read_archived_events(path: RunPath) -> bytes:
    """When a device came to prefer another model, and what all prefer after the last round; b"" if none ever does."""
    rows = [row for row in _read_cells(path) if row[WHAT] == PREFERS] if path.exists() else []
    last_round = rows[-1][ROUND] if rows else ""
    models: dict[str, str] = {}
    kept = []
    for row in rows:
        if models.get(row[CLIENT]) != row[MODEL] or row[ROUND] == last_round:
            kept.append(row)
        models[row[CLIENT]] = row[MODEL]
    return _format_rows(ARCHIVED_OF_EVENTS, kept) if kept else b""


def _read_cells(path: RunPath) -> list[dict[str, str]]:
    """The rows of a table with their cells as they stand there: they are kept so, text that was encoded as well."""
    with open_text(path) as file:
        try:
            return list(csv.DictReader(iterate_whole_lines(file)))
        except (csv.Error, ValueError) as error:
            raise RunRecordError(f"{path}: cannot be read ({error})") from None


def _format_rows(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> bytes:
    """A CSV file of these columns, in this order."""
    return format_lines([columns, *([row[name] for name in columns] for row in rows)]).encode()


def write_zip(entries: Mapping[str, bytes], path: pathlib.Path) -> None:
    """Writes an archive atomically, {name: content}; one that holds the same already is left as it is."""
    # Files of a kind side by side, which compress well.
    names = sorted(entries, key=lambda name: (posixpath.basename(name), name))
    contents = pack({name: entries[name] for name in names}, zipfile.ZIP_STORED)
    digest = compute_digest(contents)
    if path.is_file() and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as there:
            if there.comment.decode("utf-8", "replace") == digest:
                return
    write_whole(path, pack({CONTENTS: contents}, zipfile.ZIP_LZMA, digest))


def pack(entries: Mapping[str, bytes], compression: int, comment: str = "") -> bytes:
    """A zip of these entries in their order, all dated 1980."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", compression) as archive:
        archive.comment = comment.encode()
        for name, content in entries.items():
            info = zipfile.ZipInfo(name, EARLIEST_DATE)
            info.compress_type = compression
            info.create_system, info.external_attr = UNIX, PERMISSIONS << 16
            archive.writestr(info, content)
    return whole.getvalue()
