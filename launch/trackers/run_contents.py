"""What a run folder holds, in the words that trackers share: a name, parameters, tags, metrics by round, files.

The folder may be that of a run that goes on: its tables are replaced as a whole, so every moment shows a whole one.
Imports no TensorFlow.
"""

import enum
import fcntl
import hashlib
import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from launch.runs.columns import (
    BEST,
    CHECKSUMS_FILE,
    CLIENTS_FILE,
    CONFIG_FILE,
    EVALUATION,
    EVENTS_FILE,
    EXPORT,
    FINE_TUNING_FILE,
    METRICS_FILE,
    MODELS,
    PLOTS,
    ROUND,
    SUMMARY_FILE,
    TIMING_FILE,
)
from launch.runs.run_folder import LOCK_FILE
from launch.runs.run_records import RunRecordError, find_stored_idle, read_config, read_json, read_rows
from launch.runs.task_columns import TASK, read_task_columns
from launch.settings.experiments import find_experiment
from launch.settings.flags import FlagError
from launch.settings.resuming import CHANGEABLE_ON_RESUME, MEANS_OF_COMPUTING, PLACES, REQUESTS

PARTS = ("seed_", "trial_")  # how the folders inside an experiment's are called
SIZES = "num_"  # how the sizes of the data begin in config.json
TABLES = (METRICS_FILE, TIMING_FILE, CLIENTS_FILE, EVENTS_FILE, FINE_TUNING_FILE)
FILES = (CONFIG_FILE, SUMMARY_FILE, CHECKSUMS_FILE, *TABLES, f"{EVALUATION}*.csv", f"{EVALUATION}*.json", "*.html")
FILES_IN_FOLDERS = (f"{PLOTS}/*.png", f"{EXPORT}/*", f"{EXPORT}/{BEST}/*")
SEED, TIMING = "seed", "timing/"


class State(enum.Enum):
    """How far a run is."""

    GOING_ON = "going_on"
    FINISHED = "finished"
    STOPPED = "stopped"


class RunDescription(NamedTuple):
    """What a run is.

    Attributes:
      name: its folder's, with that of its experiment.
      group: the same for runs that differ in nothing but the seed.
      params: the flags that have a value and do something in this run, but for those that say how it was started.
      tags: what else is known of it.
    """

    name: str
    group: str
    params: Mapping[str, bool | int | float | str]
    tags: Mapping[str, str]


class Round(NamedTuple):
    """A round's numbers; `time_ms` is when it ended, in milliseconds since 1970, as far as the tables tell."""

    number: int
    time_ms: int
    values: Mapping[str, float]

    @property
    def start_ms(self) -> int:
        seconds = [value for name, value in self.values.items() if name.startswith(TIMING) and name.endswith("_s")]
        return self.time_ms - round(1000 * sum(seconds))


def find_state(run_dir: pathlib.Path) -> State:
    """Whether the run goes on, has all its rounds, or was stopped before.

    A run holds a lock on its folder, which the kernel gives back however it ends.
    """
    try:
        with open(run_dir / LOCK_FILE, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return State.GOING_ON
    except OSError:  # no lock: copied from elsewhere
        pass
    try:
        is_finished = read_json(run_dir / SUMMARY_FILE).get("rounds") == len(_read_table(run_dir / METRICS_FILE))
    except RunRecordError:
        is_finished = False
    return State.FINISHED if is_finished else State.STOPPED


def describe_run(run_dir: pathlib.Path) -> RunDescription:
    """What the run in a folder is.

    Raises:
      FlagError: there is no run, or its config is damaged.
    """
    try:
        config = read_config(run_dir)
    except RunRecordError:
        config = {}
    flags = config.get("flags")
    if not isinstance(flags, dict) or not isinstance(flags.get("algo"), str):
        raise FlagError(f"--run_dir={run_dir}: no run to read there (no valid {CONFIG_FILE}); was it ever started?")
    data, versions = (part if isinstance(part, dict) else {} for part in (config.get("data"), config.get("versions")))
    skipped = PLACES | REQUESTS | find_stored_idle(flags)
    params = {
        name: value
        for name, value in flags.items()
        if name not in skipped and value not in ("", None) and isinstance(value, (bool, int, float, str))
    }
    experiment = find_experiment(_list_parts(run_dir)[0])
    tags = {
        "algo": flags["algo"],
        "dataset": data.get("dataset") or flags.get("dataset", ""),
        "task": read_task_columns(data).kind.name if TASK in data else "",
        SEED: flags.get(SEED, ""),
        "experiment": experiment.name if experiment else "",
        "run_dir": run_dir.absolute(),
        "git_revision": config.get("git_revision") or "",
        **{f"data.{name}": value for name, value in data.items() if name.startswith(SIZES)},
        **{f"version.{name}": version for name, version in versions.items()},
    }
    tags = {name: str(value) for name, value in tags.items() if value != ""}
    return RunDescription(_name_run(run_dir), _name_group(run_dir, flags), params, tags)


def _list_parts(run_dir: pathlib.Path) -> list[str]:
    """The last parts of the folder's path, up to one that is not "seed_..." or "trial_..."."""
    parts: list[str] = []
    for part in reversed(run_dir.absolute().parts):
        parts.insert(0, part)
        if not part.startswith(PARTS):
            break
    return parts


def _name_run(run_dir: pathlib.Path) -> str:
    return "/".join(_list_parts(run_dir))


def _name_group(run_dir: pathlib.Path, flags: Mapping[str, Any]) -> str:
    """A readable start, and a digest of the flags apart from the seed and what changes no number."""
    skipped = {SEED} | CHANGEABLE_ON_RESUME | MEANS_OF_COMPUTING
    kept = sorted((name, value) for name, value in flags.items() if name not in skipped)
    digest = hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:6]
    parts = _list_parts(run_dir)
    start = parts[0] if len(parts) > 1 else f"{flags['algo']}_{flags.get('dataset', '')}"
    return f"{start}_{digest}"


def read_rounds_after(run_dir: pathlib.Path, last_round: int) -> list[Round]:
    """The rounds after `last_round` that are done; empty cells are left out. Those of `timing.csv` become "timing/...".

    No table says when a round ended: it is reckoned back from the time of `metrics.csv`, by the seconds of the later
    rounds.

    Raises:
      FlagError: a table is damaged.
    """
    path = run_dir / METRICS_FILE
    rows, timings = _read_table(path), _read_table(run_dir / TIMING_FILE)
    time_ms = int(path.stat().st_mtime * 1000) if rows else 0
    rounds = []
    for number in sorted(rows, reverse=True):
        if number <= last_round:
            break
        timing = {f"{TIMING}{name}": value for name, value in timings.get(number, {}).items()}
        rounds.insert(0, Round(number, time_ms, rows[number] | timing))
        time_ms = rounds[0].start_ms
    return rounds


def _read_table(path: pathlib.Path) -> dict[int, dict[str, float]]:
    """The numbers of a table with a row a round, {round: {column: value}}; empty if there is none."""
    try:
        rows = read_rows(path)
        return {
            int(row[ROUND]): {name: float(cell) for name, cell in row.items() if name != ROUND and cell} for row in rows
        }
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise FlagError(f"{path}: damaged ({error}); restore it, or train again") from None


def read_summary(run_dir: pathlib.Path) -> dict[str, float]:
    """The numbers of `summary.json`, {"final.test_accuracy": 0.9}; empty if the run has none."""
    try:
        return dict(_flatten(read_json(run_dir / SUMMARY_FILE)))
    except RunRecordError:
        return {}


def _flatten(content: Mapping[str, Any], prefix: str = ""):
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            yield f"{prefix}{name}", float(value)


def list_files(run_dir: pathlib.Path, with_models: bool) -> dict[str, str]:
    """The files that a tracker keeps, {name in the folder: path}: no checkpoints, logs and event files."""
    patterns = (*FILES, *FILES_IN_FOLDERS) + ((f"{MODELS}/**/*",) if with_models else ())
    paths = [path for pattern in patterns for path in sorted(run_dir.glob(pattern)) if path.is_file()]
    if not with_models:
        paths = [path for path in paths if path.suffix != ".tflite"]
    return {path.relative_to(run_dir).as_posix(): str(path.absolute()) for path in paths if path.name[0] != "."}
