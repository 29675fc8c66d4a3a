"""Keeps the numbers of runs that a report counted, small enough to commit: settings, metrics and summary, no models.

The events of runs by archetype are kept, too (which model a device prefers); those of asynchronous runs are megabytes.

An archive is a folder of run folders like any other for `launch.report`; `launch.sweep` takes its runs as finished.
"""

import pathlib
import shutil
from collections.abc import Iterable

from launch.runs.columns import CLIENTS_FILE, CONFIG_FILE, EVENTS_FILE, METRICS_FILE, SUMMARY_FILE, TIMING_FILE
from launch.runs.run_records import RunRecord, read_json
from launch.runs.tables import write_json

PLACES = ("run_dir", "data_dir", "shard_dir", "npz", "workers")  # flags that only mean something on one machine
KEPT_FROM_CONFIG = ("flags", "versions", "git_revision")
KEPT_FROM_DATA = ("dataset", "archetypes")  # what the flags do not say: that it was a subset, who is of which archetype
COPIED = (METRICS_FILE, SUMMARY_FILE)
COPIED_IF_THERE = (TIMING_FILE, CLIENTS_FILE, "export/report.csv")


def archive_runs(runs: Iterable[RunRecord], folder: pathlib.Path) -> list[pathlib.Path]:
    """Copies the numbers of the finished ones of `runs` to `<folder>/<experiment>/seed_<seed>`; returns these folders.

    Raises:
      OSError: a file could not be read or written.
      RunRecordError: a run has no `config.json` that can be read.
    """
    archived = []
    for run in runs:
        if not (run.path / SUMMARY_FILE).exists():
            continue
        target = folder / run.experiment / f"seed_{run.flags['seed']}"
        archived.append(target)
        if target.resolve() == run.path.resolve():
            continue
        target.mkdir(parents=True, exist_ok=True)
        config = read_json(run.path / CONFIG_FILE)
        kept = {name: config[name] for name in KEPT_FROM_CONFIG if name in config}
        data = {name: config["data"][name] for name in KEPT_FROM_DATA if name in config.get("data", {})}
        kept |= {"data": data} if data else {}
        kept["flags"] = {name: value for name, value in config["flags"].items() if name not in PLACES}
        write_json(target / CONFIG_FILE, kept)
        optional = (*COPIED_IF_THERE, EVENTS_FILE) if "archetypes" in data else COPIED_IF_THERE
        for name in (*COPIED, *(name for name in optional if (run.path / name).exists())):
            (target / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(run.path / name, target / name)
    return archived
