"""What the page's scripts read: the runs with their numbers, and the constants that they compute with."""

import fnmatch
import itertools
import math
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from files.reading import describe, find_files
from launch.console.shown_text import escape_hidden
from launch.pages.comparison.collection import Collected
from launch.pages.comparison.compared_run import EXPERIMENT, SECONDS, SEED, TOTAL_BYTES, ComparedRun, is_on_disk
from launch.pages.comparison.groups import (
    ALGO,
    choose_grouping,
    describe_twins,
    describe_versions,
    find_default_flags,
    find_differing_data,
    find_differing_flags,
    find_versions,
)
from launch.pages.comparison.references import BOUNDS, REFERENCES, find_missing, spell_baseline
from launch.pages.comparison.results import (
    LAST,
    bound_columns,
    list_main_columns,
    list_tasks,
    name_columns,
    read_result,
)
from launch.pages.comparison.seed_statistics import LEVEL, compute_t_quantile
from launch.pages.plots.style import COLORS
from launch.runs.column_titles import title_column
from launch.runs.columns import (
    CLIENTS_FILE,
    EVENT_COLUMNS,
    EVENTS_FILE,
    LOSS,
    MEASURED_DEVICES_FILE,
    METRICS_FILE,
    PLOTS,
    RECORD_FILE,
    ROUND,
    RUN_PAGE,
    TEST_LOSS,
    TIME_S,
    TRAFFIC_FILE,
    TRAIN_LOSS,
    VIRTUAL_TIME_S,
)
from launch.runs.tables import iterate_rows, open_text
from launch.runs.task_columns import describe_columns, find_directions
from launch.settings.algorithms import ALGORITHMS
from launch.settings.errors import FlagError

# What of the runs goes into the page as it is, besides their numbers: plots, events, clients; within bounds of bytes.
#
# A page of a comparison shows the plots and the events of at most `MOST_DETAILED_RUNS`, and links those of the others.

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
    results = [read_result(run, name, LAST, is_low_better=False) for name in (run.task.test, run.task.client_test)]
    return next((run.task.sign * result for result in results if result is not None), -math.inf)


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


MOST_CELLS = 1_500_000  # of all rounds of all runs; beyond it, only some of the evaluated rounds are kept
AXES = (ROUND, VIRTUAL_TIME_S, TOTAL_BYTES, SECONDS)
LABELS = (TEST_LOSS, TRAIN_LOSS)  # what every task has, beside its own metrics
LINKED = (RUN_PAGE, METRICS_FILE, CLIENTS_FILE, EVENTS_FILE, RECORD_FILE, TRAFFIC_FILE, MEASURED_DEVICES_FILE)


def build_content(collected: Collected, details: Mapping[int, Details], output: pathlib.Path) -> dict[str, Any]:
    """The content as JSON has it.

    Args:
      collected: the runs.
      details: what is inlined of some of them, by index.
      output: the page's file, from which files of runs are linked.
    """
    runs = collected.runs
    kept, with_clients = choose_rounds(runs), choose_client_tables(runs)
    tasks = list_tasks(runs)
    main = list(dict.fromkeys([*list_main_columns(runs), *describe_columns(tasks), *LABELS]))
    # What can be compared: the metrics of the tasks first, then the other columns as they come.
    there = dict.fromkeys(name for run in runs for name in run.columns)
    first = [name for name in main if name in there]
    tables = {name for run in runs for name in run.clients} | {*EVENT_COLUMNS, TIME_S, *AXES}
    folder = output.parent
    # Of other runs these are axes alone; a live run and its twin are compared in them.
    by_round = (VIRTUAL_TIME_S, TOTAL_BYTES) if any(run.devices for run in runs) else ()
    return {
        "runs": [
            {
                "name": run.name,
                "title": run.title,
                "heading": run.heading,
                "flags": dict(run.flags),
                "data": list(run.data),
                "trivial": {column: dict(rows) for column, rows in run.trivial.items()},
                "columns": _pack_columns(run.columns, rounds),
                "ownMetric": run.task.of_client,
                "testSizes": dict(run.test_sizes),
                "clients": {key: to_plain(values) for key, values in run.clients.items()} if fits else None,
                "links": {
                    name: _link(run.path / name, folder)
                    for name in LINKED
                    if is_on_disk(run) and (run.path / name).exists()
                },
                "plots": {path.name: _link(path, folder) for path in list_plots(run)},
                "pictures": list(details[i].pictures) if i in details else [],
                "events": details[i].events if i in details else None,
                "detailed": i in details,
            }
            for i, (run, rounds, fits) in enumerate(zip(runs, kept, with_clients, strict=True))
        ],
        "differing": find_differing_flags(runs),
        "unset": find_default_flags(runs),
        "grouping": choose_grouping(runs),
        "algorithms": {str(run.flags[ALGO]): run.title for run in runs if ALGO in run.flags},
        "dataFlags": find_differing_data(runs),
        "references": [name for name in (*REFERENCES, *BOUNDS) if name in ALGORITHMS],
        "missing": [missing._asdict() for missing in find_missing(runs)],
        "fedavg": spell_baseline(runs),
        "leftOut": collected.left_out,
        "versions": find_versions(runs),
        "changed": [*describe_versions(runs), *describe_twins(runs)],
        "titles": {**{name: title_column(name) for name in sorted(tables)}, **name_columns(runs)},
        "main": [name for name in main if any(name in run.columns for run in runs)],
        "bounds": bound_columns(runs),
        "largerIsBetter": find_directions(tasks),
        "mainResults": [*(name for task in tasks for name in (task.test, task.client_test)), TEST_LOSS],
        "kinds": {**{task.metric.name: task.heading for task in tasks}, LOSS: "Loss"},
        "axes": [name for name in AXES if any(name in run.columns for run in runs)],
        "metrics": [name for name in dict.fromkeys([*first, *there]) if name not in AXES or name in by_round],
        "seed": SEED,
        "experiment": EXPERIMENT,
        "level": LEVEL,
        "quantiles": [compute_t_quantile(degrees) for degrees in range(1, max(2, len(runs)))],
        "colors": COLORS,
        "algorithmColors": {str(run.flags[ALGO]): run.color for run in runs if ALGO in run.flags and run.color},
        "thinned": any(len(rounds) < len(run.columns[ROUND]) for run, rounds in zip(runs, kept, strict=True)),
        "rule": f"{RULE}, and of these plots up to {MOST_PICTURE_BYTES / 1e6:.0f} MB",
    }


def choose_rounds(runs: Sequence[ComparedRun]) -> list[np.ndarray]:
    """Of each run the indices of the rounds that the page keeps: all, or every k-th evaluated one and the last.

    k is the same for all runs, so that runs with the same evaluated rounds keep the same.
    """
    sizes = [sum(not _is_constant(values) for values in run.columns.values()) for run in runs]
    everything = [np.arange(len(run.columns[ROUND])) for run in runs]
    if sum(size * len(rounds) for size, rounds in zip(sizes, everything, strict=True)) <= MOST_CELLS:
        return everything
    evaluated = []
    for run, rounds in zip(runs, everything, strict=True):
        measured = [~np.isnan(run.columns[name]) for name in run.task.evaluation if name in run.columns]
        found = np.flatnonzero(np.any(measured, axis=0)) if measured else np.array([], int)
        evaluated.append(found if len(found) else rounds)
    step = -(-sum(size * len(rounds) for size, rounds in zip(sizes, evaluated, strict=True)) // MOST_CELLS)
    return [np.union1d(rounds[step - 1 :: step], rounds[-1:]) for rounds in evaluated]


def _is_constant(values: np.ndarray) -> bool:
    return bool((values == values[0]).all())


def _pack_columns(columns: Mapping[str, np.ndarray], rounds: np.ndarray) -> dict[str, Any]:
    """A column as a list, or as one number that is that of every round; the rounds always as a list."""
    packed = {}
    for name, values in columns.items():
        plain = to_plain(values[rounds])
        packed[name] = plain[0] if name != ROUND and plain[0] is not None and _is_constant(values[rounds]) else plain
    return packed


def to_plain(values: Sequence[str | float] | np.ndarray) -> list[Any]:
    """Numbers as JSON has them: whole ones without a point, null for what is not finite; text as it is shown."""
    if not isinstance(values, np.ndarray):
        return [escape_hidden(value) if isinstance(value, str) else value for value in values]
    return [
        None if not -np.inf < value < np.inf else int(value) if value == int(value) else value
        for value in values.tolist()
    ]


def _link(path: pathlib.Path, folder: pathlib.Path) -> str:
    return pathlib.PurePath(os.path.relpath(path, folder)).as_posix()
