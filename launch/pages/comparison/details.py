"""What of the runs goes into the page as it is, besides their numbers: plots, events, clients; within bounds of bytes.

A page of a comparison shows the plots and the events of at most `MOST_DETAILED_RUNS`, and links those of the others.
"""

import fnmatch
import itertools
import math
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from files.reading import describe, find_files
from launch.console.shown_text import escape_hidden
from launch.pages.comparison.compared_run import ComparedRun, is_on_disk
from launch.runs.columns import EVENTS_FILE, PLOTS
from launch.runs.tables import iterate_rows, open_text
from launch.settings.errors import FlagError

FIRST_PLOT = "by_round.png"
MOST_DETAILED_RUNS = 20
MOST_PICTURE_BYTES = 8_000_000
MOST_EVENTS = 1000  # of a run, the first ones
MOST_CLIENT_CELLS = 1_000_000  # of all runs
RULE = f"the {MOST_DETAILED_RUNS} runs with the best last result on the test set"


class Details(NamedTuple):
    """What is inlined of one run.

    Attributes:
      pictures: its plots by file name, as PNG.
      events: {"columns", "rows", "total"} of its first events; None if it has none.
    """

    pictures: dict[str, bytes]
    events: dict[str, Any] | None


def choose_detailed_runs(runs: Sequence[ComparedRun], pattern: str = "") -> list[int]:
    """The indices of the runs whose plots and events are inlined, in ascending order.

    Args:
      runs: all.
      pattern: of their names, with * for anything; empty for those with the best last result on the test set.

    Raises:
      FlagError: the pattern matches no run.
    """
    if pattern:
        chosen = [i for i, run in enumerate(runs) if fnmatch.fnmatchcase(run.name, pattern)]
        if not chosen:
            raise FlagError(
                f"--details={pattern}: no run is called so; expected names as {runs[0].name}, with * for more"
            )
        return chosen[:MOST_DETAILED_RUNS]
    best = sorted(range(len(runs)), key=lambda i: (-_rank_last(runs[i]), i))
    return sorted(best[:MOST_DETAILED_RUNS])


def _rank_last(run: ComparedRun) -> float:
    """The last result of a run, turned so that larger is better; runs without one come last."""
    for name in (run.task.test, run.task.client_test):
        measured = run.columns.get(name, np.array([np.nan]))
        measured = measured[~np.isnan(measured)]
        if len(measured):
            return float(run.task.sign * measured[-1])
    return -math.inf


def read_details(runs: Sequence[ComparedRun], chosen: Sequence[int]) -> dict[int, Details]:
    """The plots and events of the chosen runs, by index; plots only as long as there is room for a run's.

    Raises:
      OSError: a file cannot be read.
    """
    room, details = MOST_PICTURE_BYTES, {}
    for i in chosen:
        paths = list_plots(runs[i])
        size = sum(path.stat().st_size for path in paths)
        pictures = {path.name: path.read_bytes() for path in paths} if size <= room else {}
        room -= size if pictures else 0
        details[i] = Details(pictures, _read_events(runs[i]))
    return details


def list_plots(run: ComparedRun) -> list[pathlib.Path]:
    """The PNG files of a run by name, its progress by round first; archives hold none.

    What a link brings in is left out: the picture may be the user's own, and the page go to others.
    """
    paths = find_files(run.path / PLOTS, "*.png") if is_on_disk(run) else []
    paths = [path for path in paths if path.resolve().is_relative_to(run.path.resolve())]
    return sorted(paths, key=lambda path: (path.name != FIRST_PLOT, path.name))


def _read_events(run: ComparedRun) -> dict[str, Any] | None:
    path = run.path / EVENTS_FILE
    if not path.exists():
        return None
    try:
        with open_text(path) as file:  # those of an asynchronous run take megabytes
            rows = iterate_rows(file)
            names, shown = next(rows, []), list(itertools.islice(rows, MOST_EVENTS))
            return {"columns": names, "rows": shown, "total": len(shown) + sum(1 for _ in rows)} if shown else None
    except (OSError, ValueError) as error:
        line = f"note: {path}: cannot be read ({describe(error)}); the page is without its events"
        print(escape_hidden(line), file=sys.stderr, flush=True)
        return None


def choose_client_tables(runs: Sequence[ComparedRun]) -> list[bool]:
    """Whether the clients of each run go into the page: from the first run on, as long as there is room."""
    cells, fits = 0, []
    for run in runs:
        size = sum(map(len, run.clients.values()))
        fits.append(cells + size <= MOST_CLIENT_CELLS)
        cells += size if fits[-1] else 0
    return fits
