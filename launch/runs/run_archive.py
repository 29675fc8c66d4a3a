"""Keeps the numbers of runs that a report counted, small enough to commit: settings, metrics and summary, no models.

An archive holds run folders, `<experiment>/seed_<seed>/...`, in a folder or in a zip. `launch.report` reads both like
any folder of runs, and `launch.sweep --finished` skips the runs in them. Tables that grow with the clients or the
rounds keep what a reader of results asks for: a row of `clients.csv` is what a client reached and the few numbers it is
seen against. Of an event log only the changes of the model that a device prefers are kept, and what all prefer at the
end; whole logs take megabytes.

The same runs give the same bytes of a zip: entries are sorted, dated 1980 and stored uncompressed, since builds of zlib
compress differently.
"""

import csv
import io
import pathlib
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence

from launch.runs.columns import (
    CLIENT,
    CLIENT_STEPS,
    CLIENTS_FILE,
    CLUSTER,
    CONFIG_FILE,
    EVALUATION_S,
    EVENTS_FILE,
    EXPORT_REPORT,
    FINE_TUNING_FILE,
    METRICS_FILE,
    MODEL,
    NUM_TRAIN,
    PREFERS,
    RESOURCE,
    ROUND,
    ROUND_S,
    SUMMARY_FILE,
    TIMING_FILE,
    WHAT,
)
from launch.runs.errors import RunFolderError
from launch.runs.run_records import RunPath, RunRecord, find_run_dirs, read_json
from launch.runs.tables import format_json, replace_whole
from launch.runs.task_columns import TASK, read_task_columns
from launch.settings.resuming import PLACES

ARCHIVE_SUFFIX = ".zip"
EARLIEST_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold
PERMISSIONS = 0o100644  # a file that its owner may write and all may read
UNIX = 3
KEPT_FROM_CONFIG = ("flags", "versions", "git_revision")
# The name of a subset, who is of which archetype, and a task that was guessed: no flag says so.
KEPT_FROM_DATA = ("dataset", "archetypes", TASK)
COPIED = (METRICS_FILE, SUMMARY_FILE)
COPIED_IF_THERE = (FINE_TUNING_FILE, EXPORT_REPORT)
KEPT_OF_TIMING = (ROUND, ROUND_S, EVALUATION_S)
KEPT_OF_EVENTS = (ROUND, CLIENT, WHAT, MODEL)


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
    try:
        # Read whole, so that the archive can be written anew while its runs are in use.
        archive = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
        damaged = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise RunFolderError(
            f"{path}: cannot be read as a zip archive of runs ({error}); fetch or make it again"
        ) from None
    if damaged is not None:
        raise RunFolderError(f"{path}: damaged ({damaged} has changed); fetch or make it again")
    archive.filename = str(path)  # by which messages name the runs in it
    runs = zipfile.Path(archive)
    if not find_run_dirs(runs):
        raise RunFolderError(f"{path}: a zip without runs; expected one that launch.report --archive wrote")
    return runs


def archive_runs(runs: Iterable[RunRecord], target: pathlib.Path) -> None:
    """Keeps the numbers of the finished ones of `runs` in a folder or, if `target` ends in .zip, in an archive.

    A folder keeps what else is in it; a zip is replaced.

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
        if (run.path / SUMMARY_FILE).exists() and not is_there:
            entries |= {f"{place}/{name}": content for name, content in read_kept_files(run).items()}
    if is_zip:
        write_zip(entries, target)
    else:
        for name, content in entries.items():
            with replace_whole(target / name) as temporary:
                temporary.write_bytes(content)


def read_kept_files(run: RunRecord) -> dict[str, bytes]:
    """What is kept of a run, by name in its folder: its settings without the places of one machine, and its numbers."""
    config = read_json(run.path / CONFIG_FILE)
    kept = {name: config[name] for name in KEPT_FROM_CONFIG if name in config}
    data = {name: config["data"][name] for name in KEPT_FROM_DATA if name in config.get("data", {})}
    kept |= {"data": data} if data else {}
    kept["flags"] = {name: value for name, value in config["flags"].items() if name not in PLACES}
    names = (*COPIED, *(name for name in COPIED_IF_THERE if (run.path / name).exists()))
    files = {CONFIG_FILE: format_json(kept).encode(), **{name: (run.path / name).read_bytes() for name in names}}
    reached = read_task_columns(data).of_client
    kept_columns = {
        TIMING_FILE: KEPT_OF_TIMING,
        CLIENTS_FILE: (CLIENT, NUM_TRAIN, reached, CLUSTER, RESOURCE, CLIENT_STEPS),
    }
    tables = {name: _read_kept_columns(run.path / name, wanted) for name, wanted in kept_columns.items()}
    if "archetypes" in data:  # the logs of asynchronous runs are long and hold no preferences
        tables[EVENTS_FILE] = _read_kept_events(run.path / EVENTS_FILE)
    return files | {name: table for name, table in tables.items() if table}


def _read_kept_columns(path: RunPath, wanted: Sequence[str]) -> bytes:
    """The columns of a table that are kept; b"" if they say nothing but the names and sizes of its rows."""
    rows = _read_cells(path) if path.exists() else []
    kept = [name for name in wanted if any(row.get(name) for row in rows)]
    return _format_rows(kept, rows) if len(set(kept) - {NUM_TRAIN}) >= 2 else b""


def _read_kept_events(path: RunPath) -> bytes:
    """When a device came to prefer another model, and what all prefer after the last round; b"" if none ever does."""
    rows = [row for row in _read_cells(path) if row[WHAT] == PREFERS] if path.exists() else []
    last_round = rows[-1][ROUND] if rows else ""
    models: dict[str, str] = {}
    kept = []
    for row in rows:
        if models.get(row[CLIENT]) != row[MODEL] or row[ROUND] == last_round:
            kept.append(row)
        models[row[CLIENT]] = row[MODEL]
    return _format_rows(KEPT_OF_EVENTS, kept) if kept else b""


def _read_cells(path: RunPath) -> list[dict[str, str]]:
    """The rows of a table with their cells as they stand there: they are kept so, text that was encoded as well."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _format_rows(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> bytes:
    """A CSV file of these columns, in this order."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([columns, *([row[name] for name in columns] for row in rows)])
    return text.getvalue().encode()


def write_zip(entries: Mapping[str, bytes], path: pathlib.Path) -> None:
    """Writes a zip atomically, {name: content}; the same entries give the same bytes."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(entries.items()):
            info = zipfile.ZipInfo(name, EARLIEST_DATE)
            info.create_system, info.external_attr = UNIX, PERMISSIONS << 16
            archive.writestr(info, content)
    with replace_whole(path) as temporary:
        temporary.write_bytes(whole.getbuffer())
