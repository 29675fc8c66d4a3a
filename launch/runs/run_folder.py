"""The run folder: the paths in it, and the rules for making, resuming and replacing one. Imports no TensorFlow."""

import contextlib
import fcntl
import fnmatch
import os
import pathlib
import re
import shutil
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from datasets.catalog import find_dataset
from files.locks import open_lock_file
from files.reading import describe, explain_errors
from files.writing import remove_unfinished, replace_whole, write_whole
from launch.runs.columns import (
    BEST,
    CHECKPOINTS,
    CHECKSUMS_FILE,
    CLIENTS_BY_ROUND_FILE,
    CLIENTS_FILE,
    CONFIG_FILE,
    EVALUATION,
    EVENTS_FILE,
    EXPORT,
    FINE_TUNED_FILE,
    FINE_TUNING_FILE,
    KEPT,
    LINKS_FILE,
    MEASURED_DEVICES_FILE,
    METRICS_FILE,
    MODELS,
    PLOTS,
    PRUNED_FILE,
    RECORD_FILE,
    ROSTER_FILE,
    RUN_PAGE,
    SERVE_FILE,
    SUMMARY_FILE,
    TENSORBOARD,
    TIMING_FILE,
    TRACKING,
    TRAFFIC_FILE,
    TRAINING_FILE,
    WORKER_LOG,
)
from launch.runs.errors import RunFolderError
from launch.runs.file_names import encode_name
from launch.settings.flags import read_flags_of_run
from launch.settings.run_config import RunConfig, find_algorithm, is_algorithm_spelling

RUNS = pathlib.Path("runs")
DATA_FOLDER = RUNS / "data"  # of arrays and tables that `fit` was given, called by their digests
LOCK_FILE = ".lock"
WORKER_LOGS = WORKER_LOG.replace(".", "*.")  # that of each worker
REPLACED_CONFIG = f".replaced.{CONFIG_FILE}"  # see `RunFolder.clear`
# What a run leaves that ends before it has a config; ".[0-9]*.*" are files that were being written.
OF_LIVE_RUNS = (ROSTER_FILE, LINKS_FILE, SERVE_FILE, TRAINING_FILE)  # which are written before `config.json`
START_UP_FILES = (LOCK_FILE, WORKER_LOGS, f".{CONFIG_FILE}.*", ".[0-9]*.*", *OF_LIVE_RUNS)
TABLES = (
    *(METRICS_FILE, TIMING_FILE, EVENTS_FILE, CLIENTS_BY_ROUND_FILE),
    *(RECORD_FILE, MEASURED_DEVICES_FILE, TRAFFIC_FILE, FINE_TUNED_FILE),
    *(CLIENTS_FILE, FINE_TUNING_FILE, SUMMARY_FILE, CHECKSUMS_FILE),
)
FOLDERS = (CHECKPOINTS, KEPT, TENSORBOARD, PLOTS, MODELS, EXPORT, TRACKING)
RUN_FILES = (
    *(*START_UP_FILES, CONFIG_FILE, REPLACED_CONFIG, PRUNED_FILE),
    *(*TABLES, RUN_PAGE, f"{EVALUATION}*.csv", f"{EVALUATION}*.json", *FOLDERS),
)


class RunFolder:
    """The paths of one run, held by one process at a time.

    Attributes:
      is_new: whether a run begins here, and does not go on.
      has_begun: whether this run has written its `config.json`.
      is_passing: whether the folder goes when the run has ended, as a smoke run's.
    """

    def __init__(self, path: pathlib.Path, is_new: bool, is_passing: bool = False):
        self.path, self.is_new, self.has_begun, self.is_passing = path, is_new, not is_new, is_passing
        self.config = path / CONFIG_FILE
        self.metrics = path / METRICS_FILE
        self.timing = path / TIMING_FILE
        self.events = path / EVENTS_FILE
        self.record = path / RECORD_FILE
        self.clients_by_round = path / CLIENTS_BY_ROUND_FILE
        self.clients = path / CLIENTS_FILE
        self.fine_tuning_curve = path / FINE_TUNING_FILE
        self.summary = path / SUMMARY_FILE
        self.checkpoints = path / CHECKPOINTS
        self.kept = path / KEPT
        self.tensorboard = path / TENSORBOARD
        self.models = path / MODELS
        self.best_models = path / MODELS / BEST
        self.worker_log = path / WORKER_LOG
        keep_inside(path)
        self._lock = _lock(path)
        remove_unfinished(path)

    def close(self) -> None:
        """Lets another process use the folder."""
        self._lock.close()

    def discard(self) -> None:
        """Removes the folder if it is a passing one, or if no run has begun in it. What holds a result stays."""
        names = [path.name for path in self.path.iterdir()] if self.path.is_dir() else []
        if self.is_passing or not (self.has_begun or any(not _is_one_of(name, START_UP_FILES) for name in names)):
            shutil.rmtree(self.path, ignore_errors=True)

    @property
    def can_be_resumed(self) -> bool:
        """Whether what is there now can be gone on with by --resume."""
        return self.has_begun and not self.is_passing and self.config.exists()

    @contextlib.contextmanager
    def start_log(self) -> Iterator[str]:
        """Yields where this run's log begins: in `worker.log`, or beside it if the folder is new.

        In the latter case it replaces `worker.log`, and the logs of further workers go, if the block succeeds. So a run
        that is to overwrite another one, but is refused, leaves the log of the other as it was.
        """
        if not self.is_new:
            yield str(self.worker_log)
            return
        with replace_whole(self.worker_log) as log:
            yield str(log)
        for path in self.path.glob(WORKER_LOGS):
            if path != self.worker_log:
                path.unlink()

    def clear(self) -> None:
        """Removes what another run left, its config first, but not the workers' logs, which are this run's by now.

        At no moment a config describes a folder from which something is missing. A folder whose clearing was cut short
        is known by the old config's other name, and may be taken like an empty one.
        """
        replaced = self.path / REPLACED_CONFIG
        if self.config.exists():
            os.replace(self.config, replaced)
        for path in self.path.iterdir():
            # A live run writes its own roster again.
            is_kept = _is_one_of(path.name, START_UP_FILES) and path.name not in OF_LIVE_RUNS
            if path != replaced and not is_kept:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        replaced.unlink(missing_ok=True)


def _lock(path: pathlib.Path) -> BinaryIO:
    """The folder's lock. The kernel gives it back however the process ends, so none is ever left behind."""
    lock = open_lock_file(path / LOCK_FILE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise RunFolderError(f"--run_dir={path}: a run is going on in it; wait for it or choose another") from None
    return lock


def keep_inside(path: pathlib.Path) -> None:
    """Makes sure that what is written and removed by the names in a run folder lies in it; somebody may have made it.

    The folder itself may be reached by a link, which the user has typed. A log that grows, and has another name
    elsewhere, as in a copy by hard links, becomes a file of its own; all else is written whole, in place of the former.

    Raises:
      RunFolderError: something of a run is a symbolic link, or neither file nor folder; or the folder cannot be read.
    """
    _refuse_links(path)
    with explain_errors(f"--run_dir={path}", RunFolderError, "cannot write there"):
        for log in [*path.glob(WORKER_LOGS), *path.glob(f"{TRACKING}/*")]:
            if log.is_file() and log.stat().st_nlink > 1:
                write_whole(log, log.read_bytes())


def _refuse_links(path: pathlib.Path) -> None:
    with explain_errors(f"--run_dir={path}", RunFolderError):
        for name, kind in _find_foreign(path, RUN_FILES):
            raise RunFolderError(f"--run_dir={path}: its {name} is {kind}, no file of a run; remove it")


def _find_foreign(folder: pathlib.Path, patterns: Sequence[str] = ("*",)) -> Iterator[tuple[str, str]]:
    """(name, what it is) of what a run does not make, at any depth below the names that match."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if _is_one_of(entry.name, patterns)]
    except (FileNotFoundError, NotADirectoryError):  # a new run's, or what another process was writing
        return
    for entry in sorted(found, key=lambda entry: entry.name):
        if entry.is_symlink():
            yield entry.name, "a symbolic link"
        elif entry.is_dir():
            yield from ((f"{entry.name}/{name}", kind) for name, kind in _find_foreign(folder / entry.name))
        elif not entry.is_file() and os.path.lexists(entry):  # another process may be done with it
            yield entry.name, "a pipe or a device"


def check_run_folder(config: RunConfig) -> None:
    """Raises RunFolderError if `open_run_folder` would refuse; changes nothing."""
    path = pathlib.Path(config.run_dir)
    if not config.run_dir:
        return
    try:
        names = sorted(inner.name for inner in path.iterdir()) if path.exists() else []
    except NotADirectoryError:
        raise RunFolderError(f"--run_dir={path}: expected a folder, found a file; choose another") from None
    except OSError as error:
        raise RunFolderError(f"--run_dir={path}: cannot be read ({describe(error)})") from None
    _refuse_links(path)
    if config.resume:
        if CONFIG_FILE not in names:
            raise RunFolderError(f"--run_dir={path}: no run to resume there; leave out --resume to start one")
        return
    if all(_is_one_of(name, START_UP_FILES) for name in names):
        return
    foreign = [name for name in names if not _is_one_of(name, RUN_FILES)]
    is_half_cleared = REPLACED_CONFIG in names and CONFIG_FILE not in names
    holds_config = is_algorithm_spelling((read_flags_of_run(path) or {}).get("algo"))
    if foreign or not (is_half_cleared or holds_config):
        found = f"{foreign[0]} is no part of one" if foreign else f"no valid {CONFIG_FILE}"
        raise RunFolderError(f"--run_dir={path}: holds no run alone ({found}) and is left as it is; choose another")
    if not config.overwrite and not is_half_cleared:
        raise RunFolderError(f"--run_dir={path}: exists already; add --resume to go on, --overwrite to replace it")


def _is_one_of(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def open_run_folder(config: RunConfig, data_name: str = "") -> RunFolder:
    """Makes the run's folder, or opens the one to resume or to overwrite, whose files stay until `RunFolder.clear`.

    Args:
      config: of the run.
      data_name: of data that no flag names.

    Raises:
      RunFolderError: the folder exists and neither --resume nor --overwrite is given; there is nothing to resume; it is
        in use; it is to be overwritten but holds something else than a run; or it cannot be made.
    """
    check_run_folder(config)
    path = pathlib.Path(config.run_dir)
    with explain_errors(f"--run_dir={config.run_dir or RUNS}", RunFolderError, "cannot write there"):
        if not config.run_dir:
            return RunFolder(make_next_folder(config, data_name), is_new=True)
        path.mkdir(parents=True, exist_ok=True)
        return RunFolder(path, is_new=not config.resume)


def name_data(config: RunConfig) -> str:
    """The data as a part of a folder's name: a file of the user's is called as it is, without its ending."""
    source = pathlib.Path(config.data or config.npz)
    if source.parent != DATA_FOLDER.resolve() and (stem := _spell(source.stem)):
        return stem
    return encode_name(find_dataset(config.dataset).name)


def _spell(name: str) -> str:
    """A name as a part of a folder's: of at most 200 bytes, of the 255 that it may have."""
    return re.sub(r"[^\w.-]+", "_", name)[:50]


def make_next_folder(config: RunConfig, data_name: str = "") -> pathlib.Path:
    """Makes runs/<algo>_<data>_NNN, the first number after those there; safe against another run doing the same."""
    stem = f"{find_algorithm(config.algo).name}_{_spell(data_name) or name_data(config)}"
    RUNS.mkdir(exist_ok=True)
    taken = [int(path.name[len(stem) + 1 :]) for path in RUNS.glob(f"{stem}_*") if path.name[len(stem) + 1 :].isdigit()]
    number = max(taken, default=0) + 1
    while True:
        path = RUNS / f"{stem}_{number:03d}"
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path
