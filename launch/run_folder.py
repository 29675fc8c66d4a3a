"""The run folder: where a run keeps its config, its tables, its models, and the rules for making and reusing it.

Everything is written to a neighbouring file first and then renamed, so a file is whole at any moment. Imports no
TensorFlow.
"""

import csv
import dataclasses
import fcntl
import importlib.metadata
import json
import math
import os
import pathlib
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from datasets.federated_data import FederatedData
from launch.experiment_config import ExperimentConfig, flag_values

RUNS = pathlib.Path("runs")
LIBRARIES = ("tensorflow-federated", "tensorflow", "tensorflow-model-optimization", "numpy", "scipy", "scikit-learn")


class RunFolderError(ValueError):
    """A run folder that cannot be used as asked: which, why, how to mend it, in one line."""


class RunStopped(Exception):
    """A run that ended before its time; the message is one line and says how to go on."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message)
        self.exit_code = exit_code


class RunFolder:
    """The paths of one run, held by one process at a time."""

    def __init__(self, path: pathlib.Path, is_new: bool):
        self.path, self.is_new = path, is_new
        self.config = path / "config.json"
        self.metrics = path / "metrics.csv"
        self.timing = path / "timing.csv"
        self.clients = path / "clients.csv"
        self.summary = path / "summary.json"
        self.checkpoints = path / "checkpoints"
        self.tensorboard = path / "tensorboard"
        self.models = path / "models"
        self.worker_log = path / "worker.log"
        self._lock = open(path / ".lock", "w")  # noqa: SIM115 (held until the process ends)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise RunFolderError(f"--run_dir={path}: a run is going on in it; wait for it or choose another") from None

    def close(self) -> None:
        """Lets another process use the folder."""
        self._lock.close()

    def remove(self) -> None:
        """Removes the folder with all it holds."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.close()


def check_run_folder(config: ExperimentConfig) -> None:
    """Raises RunFolderError if `open_run_folder` would refuse; changes nothing."""
    path = pathlib.Path(config.run_dir)
    if not config.run_dir:
        return
    if config.resume:
        if not (path / "config.json").is_file():
            raise RunFolderError(f"--run_dir={path}: no run to resume there; leave out --resume to start one")
    elif path.exists() and not _is_empty_folder(path):
        if not config.overwrite:
            raise RunFolderError(f"--run_dir={path}: exists already; add --resume to go on, --overwrite to replace it")
        if not (path / "config.json").is_file():
            raise RunFolderError(f"--run_dir={path}: holds no run (no config.json), so --overwrite leaves it alone")


def open_run_folder(config: ExperimentConfig) -> RunFolder:
    """Makes the run's folder, or opens the one to resume.

    Raises:
      RunFolderError: the folder exists and neither --resume nor --overwrite is given, there is nothing to resume, it is
        in use, it is to be overwritten but holds no run, or it cannot be made.
    """
    check_run_folder(config)
    path = pathlib.Path(config.run_dir)
    try:
        if not config.run_dir:
            return RunFolder(_make_next_folder(f"{config.algo}_{config.dataset}"), is_new=True)
        if config.resume:
            return RunFolder(path, is_new=False)
        if path.exists() and not _is_empty_folder(path):
            RunFolder(path, is_new=False).remove()
        path.mkdir(parents=True, exist_ok=True)
        return RunFolder(path, is_new=True)
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


def _is_empty_folder(path: pathlib.Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def write_text(path: pathlib.Path, text: str) -> None:
    """Writes a text file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes JSON atomically; NumPy scalars become numbers, and numbers that JSON lacks become null."""
    text = json.dumps(_to_json(content), indent=2)
    flat = re.sub(r"\[[^\[\]{}\"]*\]", lambda match: " ".join(match[0].split()), text)  # numbers of a list on one line
    write_text(path, flat + "\n")


def _to_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _to_json(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_to_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_cell(value: Any) -> str:
    """A table cell: whole numbers in full, others with six digits, None as an empty cell."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    number = float(value)
    return f"{number:.0f}" if number.is_integer() and abs(number) < 2**53 else f"{number:.6g}"


def write_table(path: pathlib.Path, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes a CSV file of formatted cells atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    os.replace(temporary, path)


class RoundTable:
    """A CSV file with one row a round, whose columns are those of its first row.

    Args:
      path: the file.
      last_round: keep the rows of the file up to this round, drop the others; 0 starts anew.
    """

    def __init__(self, path: pathlib.Path, last_round: int = 0):
        self.path = path
        self.columns: list[str] = []
        self.rows: list[list[str]] = []
        if last_round and path.exists():
            with open(path, newline="", encoding="utf-8") as file:
                self.columns, *rows = list(csv.reader(file))
            self.rows = [row for row in rows if int(row[0]) <= last_round]
            if len(self.rows) < len(rows):
                write_table(path, self.columns, self.rows)

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

    def column(self, name: str) -> list[float | None]:
        """The numbers of one column, None where its cell is empty."""
        index = self.columns.index(name)
        return [float(row[index]) if row[index] else None for row in self.rows]


def describe_data(data: FederatedData) -> dict[str, Any]:
    """The sizes of a federated data set, for `config.json`."""
    return {
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
        "label_counts": data.label_counts.tolist(),
    }


def write_config(folder: RunFolder, config: ExperimentConfig, data: FederatedData) -> None:
    """Writes `config.json`: every flag's value, data sizes, versions, git revision.

    Raises:
      RunFolderError: the folder's run was made on other data than these.
    """
    described = describe_data(data)
    if not folder.is_new:
        before = json.loads(folder.config.read_text(encoding="utf-8"))["data"]
        changed = [name for name, value in described.items() if name in before and before[name] != value]
        if changed:
            raise RunFolderError(
                f"{folder.path}: the data changed since the run began ({', '.join(changed)}); start anew"
            )
    content = {
        "flags": flag_values(dataclasses.replace(config, run_dir=str(folder.path), resume=False, overwrite=False)),
        "data": described,
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in LIBRARIES},
        "git_revision": find_git_revision(),
    }
    write_json(folder.config, content)


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
