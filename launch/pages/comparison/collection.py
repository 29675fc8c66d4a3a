"""Which runs are compared: those that patterns and archives name. Imports no TensorFlow."""

import collections
import glob
import itertools
import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from launch.console.shown_text import escape_hidden
from launch.pages.comparison.compared_run import ComparedRun, read_compared_run
from launch.pages.comparison.groups import ALGO, mark_versions
from launch.runs.run_archive import is_archive, open_runs
from launch.runs.run_records import RunPath, RunRecordError, find_run_dirs
from launch.settings.algorithms import ALGORITHMS
from launch.settings.errors import FlagError
from launch.settings.run_titles import add_devices


class Collected(NamedTuple):
    """The runs that are compared, and a line for each that is not."""

    runs: list[ComparedRun]
    left_out: list[str]


def collect_runs(patterns: Sequence[str], archives: Sequence[str] = ()) -> Collected:
    """The finished runs that are asked for, in the order of their names, in which numbers go by their size.

    Args:
      patterns: of folders, with * for anything and ** at any depth; each is a run folder or holds some at any depth.
      archives: folders or .zip files that `launch.report --archive` wrote.

    Raises:
      FlagError: a pattern that nothing matches, or no run that is finished.
      RunFolderError: an archive that is not there or cannot be read.
    """
    runs, left_out, seen = [], [], set()
    for run_dir, name in [*_match_patterns(patterns), *_open_archives(archives)]:
        identity = run_dir.resolve() if isinstance(run_dir, pathlib.Path) else name
        # Patterns overlap, and links lead to runs that are there already: each run counts once.
        if identity in seen:
            continue
        seen.add(identity)
        try:
            runs.append(read_compared_run(run_dir, name))
        except RunRecordError as error:
            left_out.append(escape_hidden(str(error)))
    if not runs:
        asked = " ".join([*(f"--runs={pattern}" for pattern in patterns), *(f"--archive={name}" for name in archives)])
        others = f" ({len(left_out) - 1} more like this)" if len(left_out) > 1 else ""
        found = f"{left_out[0]}{others}" if left_out else "no folder there holds a run"
        raise FlagError(f"{asked}: no finished run: {found}")
    # "T2" comes before "T10": by the name's parts, a number by its size and then as it is written.
    runs.sort(key=lambda run: [(int(s), s) if s.isdecimal() else (-1, s) for s in re.split(r"(\d+)", run.name)])
    names = shorten_names([run.name for run in runs])
    runs = tell_algorithms_apart([run._replace(name=name) for run, name in zip(runs, names, strict=True)])
    return Collected(mark_versions(tell_devices_apart(runs)), left_out)


def tell_devices_apart(runs: Sequence[ComparedRun]) -> list[ComparedRun]:
    """The runs, a live one and its twins by their algorithm: with the same flags they are no seeds of one method."""
    return [
        run._replace(flags={**run.flags, ALGO: add_devices(str(run.flags[ALGO]), run.devices)}) if run.devices else run
        for run in runs
    ]


def tell_algorithms_apart(runs: Sequence[ComparedRun]) -> list[ComparedRun]:
    """The runs; users' own algorithms of one title also bear the text by which they are asked for, and those of one
    text, as two files of one name have, their titles."""
    pairs = {(str(run.flags[ALGO]), run.title) for run in runs}
    spellings, titles = (collections.Counter(column) for column in zip(*pairs, strict=True))
    named = []
    for run in runs:
        algo, title, flags = str(run.flags[ALGO]), run.title, run.flags
        if algo not in ALGORITHMS:
            if spellings[algo] > 1:
                flags = {**flags, ALGO: f"{algo} ({title})"}
            if titles[title] > 1:
                title = f"{title} ({algo})"
        heading = title + run.heading.removeprefix(run.title)
        named.append(run._replace(title=title, heading=heading, flags=flags))
    return named


def _match_patterns(patterns: Sequence[str]) -> Iterator[tuple[RunPath, str]]:
    for pattern in patterns:
        found = sorted(
            glob.glob(os.path.expanduser(pattern), recursive=True), key=lambda name: pathlib.Path(name).parts
        )
        if not found:
            raise FlagError(f"--runs={pattern}: nothing there; expected folders of runs, as 'runs/*'")
        folders = [pathlib.Path(name) for name in found if os.path.isdir(name)]
        yield from ((run_dir, str(run_dir)) for folder in folders for run_dir in find_run_dirs(folder))
        yield from _open_archives([name for name in found if is_archive(pathlib.Path(name))])


def _open_archives(archives: Sequence[str]) -> Iterator[tuple[RunPath, str]]:
    for name in archives:
        path = pathlib.Path(name)
        runs = open_runs(path)
        for run_dir in find_run_dirs(runs):
            inner = (
                run_dir.relative_to(path).as_posix() if isinstance(run_dir, pathlib.Path) else run_dir.at.rstrip("/")
            )
            yield run_dir, f"{path.stem}/{inner}"


def shorten_names(names: Sequence[str]) -> list[str]:
    """The runs' names without the folders that all of them share; the last part stays in any case."""
    parts = [pathlib.PurePath(name).parts for name in names]
    levels = zip(*(part[:-1] for part in parts), strict=False)
    shared = len(list(itertools.takewhile(lambda level: len(set(level)) == 1, levels)))
    return ["/".join(part[shared:]) for part in parts]
