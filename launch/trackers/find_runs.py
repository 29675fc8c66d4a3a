"""Finds the run folders that a user names: folders, folders of them, and patterns. Imports no TensorFlow."""

import glob
import os
import pathlib
from collections.abc import Sequence

from launch.runs.columns import CONFIG_FILE
from launch.runs.run_archive import is_archive
from launch.runs.run_records import find_run_dirs
from launch.settings.flags import FlagError


def find_runs(names: Sequence[str]) -> list[pathlib.Path]:
    """The run folders that `names` mean, each once: a run folder, a folder that holds some at any depth, or a pattern.

    Raises:
      FlagError: a name means none.
    """
    found: dict[pathlib.Path, None] = {}
    for name in names:
        path = pathlib.Path(os.path.expanduser(name))
        if is_archive(path):
            raise FlagError(f"--run_dir={name}: expected run folders; unpack the archive first")
        paths = [path] if path.exists() else [pathlib.Path(each) for each in sorted(glob.glob(str(path)))]
        runs = [run for each in paths if each.is_dir() for run in _list_runs(each)]
        if not runs:
            raise FlagError(f"--run_dir={name}: no run there (no {CONFIG_FILE}); was one ever started?")
        found.update(dict.fromkeys(runs))
    return list(found)


def names_one_run(names: Sequence[str]) -> bool:
    """Whether there is one run folder that is named itself, so that no others can come."""
    return len(names) == 1 and (pathlib.Path(os.path.expanduser(names[0])) / CONFIG_FILE).exists()


def _list_runs(path: pathlib.Path) -> list[pathlib.Path]:
    return [path] if (path / CONFIG_FILE).exists() else find_run_dirs(path)
