"""The run folder: where a run keeps its config, its tables, its models, and the rules for making and reusing it.

Everything is written to a neighbouring file first and then renamed, so a file is whole at any moment. Imports no
TensorFlow.
"""

import dataclasses
import fcntl
import fnmatch
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from datasets.catalog import find_dataset
from datasets.federated_data import FederatedData
from launch.runs.columns import (
    CLIENTS_FILE,
    CONFIG_FILE,
    EVENTS_FILE,
    METRICS_FILE,
    SUMMARY_FILE,
    TIMING_FILE,
    WORKER_LOG,
)
from launch.runs.errors import RunFolderError
from launch.runs.tables import write_json
from launch.settings.run_config import RunConfig, find_algorithm, flag_values, is_algorithm_spelling

RUNS = pathlib.Path("runs")
TEMPORARY = ".[0-9]*.*"
START_UP_FILES = (".lock", "worker*.log", ".config.json.*", TEMPORARY)
TABLES = (METRICS_FILE, TIMING_FILE, EVENTS_FILE, CLIENTS_FILE, SUMMARY_FILE)
RESULT_FILES = (*TABLES, "evaluation*.csv", "evaluation*.json")
RUN_FILES = (*START_UP_FILES, CONFIG_FILE, *RESULT_FILES, "checkpoints", "tensorboard", "plots", "models", "export")
LIBRARIES = ("tensorflow-federated", "tensorflow", "tensorflow-model-optimization", "numpy", "scipy", "scikit-learn")


class RunFolder:
    """The paths of one run, held by one process at a time.

    Attributes:
      is_new: whether a run begins here, and not goes on.
      has_begun: whether `config.json` is this run's, so that it can be resumed.
    """

    def __init__(self, path: pathlib.Path, is_new: bool):
        self.path, self.is_new, self.has_begun = path, is_new, not is_new
        self.config = path / CONFIG_FILE
        self.metrics = path / METRICS_FILE
        self.timing = path / TIMING_FILE
        self.events = path / EVENTS_FILE
        self.clients = path / CLIENTS_FILE
        self.summary = path / SUMMARY_FILE
        self.checkpoints = path / "checkpoints"
        self.tensorboard = path / "tensorboard"
        self.models = path / "models"
        self.worker_log = path / WORKER_LOG
        self._lock = open(path / ".lock", "w")  # noqa: SIM115 (held until the process ends)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise RunFolderError(f"--run_dir={path}: a run is going on in it; wait for it or choose another") from None

    def close(self) -> None:
        """Lets another process use the folder."""
        self._lock.close()

    def clear(self) -> None:
        """Removes what another run left, but its config, which the new run's replaces, and the worker's log."""
        for path in self.path.iterdir():
            if path != self.config and not _is_one_of(path.name, START_UP_FILES):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


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
        raise RunFolderError(f"--run_dir={path}: cannot be read ({error.strerror})") from None
    if config.resume:
        if CONFIG_FILE not in names:
            raise RunFolderError(f"--run_dir={path}: no run to resume there; leave out --resume to start one")
        return
    if all(_is_one_of(name, START_UP_FILES) for name in names):
        return
    foreign = [name for name in names if not _is_one_of(name, RUN_FILES)]
    if foreign or not _holds_config(path):
        found = f"{foreign[0]} is no part of one" if foreign else "no valid config.json"
        raise RunFolderError(f"--run_dir={path}: holds no run alone ({found}) and is left as it is; choose another")
    if not config.overwrite:
        raise RunFolderError(f"--run_dir={path}: exists already; add --resume to go on, --overwrite to replace it")


def _is_one_of(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _holds_config(path: pathlib.Path) -> bool:
    """Whether there is a `config.json` that a run has written."""
    try:
        flags = json.loads((path / CONFIG_FILE).read_text(encoding="utf-8"))["flags"]
        return is_algorithm_spelling(flags["algo"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def open_run_folder(config: RunConfig) -> RunFolder:
    """Makes the run's folder, or opens the one to resume or to overwrite, whose files stay until `RunFolder.clear`.

    Raises:
      RunFolderError: the folder exists and neither --resume nor --overwrite is given, there is nothing to resume, it is
        in use, it is to be overwritten but holds something else than a run, or it cannot be made.
    """
    check_run_folder(config)
    path = pathlib.Path(config.run_dir)
    try:
        if not config.run_dir:
            stem = f"{find_algorithm(config.algo).name}_{find_dataset(config.dataset).name}"
            return RunFolder(_make_next_folder(stem), is_new=True)
        path.mkdir(parents=True, exist_ok=True)
        return RunFolder(path, is_new=not config.resume)
    except OSError as error:
        raise RunFolderError(f"--run_dir={config.run_dir or RUNS}: cannot write there ({error.strerror})") from None


def _make_next_folder(stem: str) -> pathlib.Path:
    """Makes runs/<stem>_NNN, the first number after those there; safe against another run doing the same."""
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


def describe_data(data: FederatedData) -> dict[str, Any]:
    """Name and sizes of a federated data set, for `config.json`; its archetypes, if it has any."""
    kinds = dataclasses.asdict(data.archetypes) if data.archetypes else {}
    archetypes = {"archetypes": {name: list(values) for name, values in kinds.items()}} if kinds else {}
    return {
        "dataset": data.dataset,
        "digest": data.digest,
        "num_clients": len(data.clients),
        "input_shape": list(data.input_shape),
        "input_dtype": data.input_dtype,
        "scale": data.preprocessing.scale,
        "offset": data.preprocessing.offset,
        "class_names": list(data.class_names),
        "num_train": int(data.num_train.sum()),
        "num_validation": sum(client.num_validation for client in data.clients),
        "num_client_test": sum(client.num_test for client in data.clients),
        "num_test": len(data.test_y),
        "num_dropped": data.num_dropped,
        "label_counts": data.label_counts.tolist(),
        **archetypes,
    }


def check_same_data(folder: RunFolder, data: FederatedData) -> None:
    """Raises RunFolderError if the folder's run, which is to be resumed, was made on other data than these."""
    try:
        before = json.loads(folder.config.read_text(encoding="utf-8"))["data"]
        changed = [name for name, value in describe_data(data).items() if name in before and before[name] != value]
    except (OSError, ValueError, KeyError, TypeError):
        raise RunFolderError(f"{folder.config}: damaged, says nothing of the data; start the run anew") from None
    if changed:
        raise RunFolderError(f"{folder.path}: the data changed since the run began ({', '.join(changed)}); start anew")


def write_config(folder: RunFolder, config: RunConfig, data: FederatedData) -> None:
    """Writes `config.json`: every flag's value, places of data in full, data sizes, versions, git revision."""
    places = {name: _name_in_full(getattr(config, name)) for name in ("data_dir", "shard_dir", "npz")}
    requests = {"resume": False, "overwrite": False, "building_csv": ""}  # asked for once, not to be repeated
    stored = dataclasses.replace(config, run_dir=str(folder.path), **requests, **places)
    content = {
        "flags": flag_values(stored),
        "data": describe_data(data),
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in LIBRARIES},
        "git_revision": find_git_revision(),
    }
    write_json(folder.config, content)
    folder.has_begun = True


def _name_in_full(path: str) -> str:
    """The path as other folders see it; "" stays."""
    return path and os.path.abspath(os.path.expanduser(path))


def find_git_revision() -> str | None:
    """The commit of this checkout, with "-dirty" if files differ from it; None outside of git."""
    source = pathlib.Path(__file__).parent
    try:
        run = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=source, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout.strip()
