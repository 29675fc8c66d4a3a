"""What the page's scripts read: the runs with their numbers, and the constants that they compute with."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from launch.comparison.collection import Collected
from launch.comparison.compared_run import (
    EXPERIMENT,
    SECONDS,
    SEED,
    TOTAL_BYTES,
    ComparedRun,
    is_on_disk,
)
from launch.comparison.details import (
    MOST_PICTURE_BYTES,
    RULE,
    Details,
    choose_client_tables,
    list_plots,
)
from launch.plots.style import COLORS
from launch.runs.columns import (
    CLIENTS_FILE,
    EVENTS_FILE,
    LOSS,
    METRICS_FILE,
    ROUND,
    RUN_PAGE,
    TEST_LOSS,
    TRAIN_LOSS,
    VIRTUAL_TIME_S,
)
from launch.runs.shown_text import escape_hidden
from launch.runs.task_columns import TaskColumns, describe_columns, find_directions
from launch.settings.algorithms import ALGORITHMS

LEVEL = 0.95
MOST_CELLS = 1_500_000  # of all rounds of all runs; beyond it, only some of the evaluated rounds are kept
AXES = (ROUND, VIRTUAL_TIME_S, TOTAL_BYTES, SECONDS)
LABELS = {
    TEST_LOSS: "Test loss",
    TRAIN_LOSS: "Training loss",
    ROUND: "Round",
    VIRTUAL_TIME_S: "Virtual time, s",
    TOTAL_BYTES: "Bytes sent, both ways",
    SECONDS: "Seconds of training",
}
LINKED = (RUN_PAGE, METRICS_FILE, CLIENTS_FILE, EVENTS_FILE)


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
    labels = describe_columns(tasks) | LABELS
    return {
        "runs": [
            {
                "name": run.name,
                "title": run.title,
                "flags": dict(run.flags),
                "data": list(run.data),
                "columns": _pack_columns(run.columns, rounds),
                "ownMetric": run.task.of_client,
                "clients": {key: to_plain(values) for key, values in run.clients.items()} if fits else None,
                "links": _link_files(run, output.parent),
                "plots": _link_plots(run, output.parent),
                "pictures": list(details[i].pictures) if i in details else [],
                "events": details[i].events if i in details else None,
                "detailed": i in details,
            }
            for i, (run, rounds, fits) in enumerate(zip(runs, kept, with_clients, strict=True))
        ],
        "differing": find_differing_flags(runs),
        "leftOut": collected.left_out,
        "labels": labels,
        "largerIsBetter": find_directions(tasks),
        "mainResults": [*(name for task in tasks for name in (task.test, task.client_test)), TEST_LOSS],
        "kinds": {**{task.metric.name: task.heading for task in tasks}, LOSS: "Loss"},
        "axes": [name for name in AXES if any(name in run.columns for run in runs)],
        "metrics": _list_metrics(runs, labels),
        "seed": SEED,
        "experiment": EXPERIMENT,
        "level": LEVEL,
        "quantiles": compute_t_quantiles(max(1, len(runs) - 1)),
        "colors": COLORS,
        "algorithmColors": {name: row.color for name, row in ALGORITHMS.items()},
        "thinned": any(len(rounds) < len(run.columns[ROUND]) for run, rounds in zip(runs, kept, strict=True)),
        "rule": f"{RULE}, and of these plots up to {MOST_PICTURE_BYTES / 1e6:.0f} MB",
    }


def list_tasks(runs: Sequence[ComparedRun]) -> list[TaskColumns]:
    """The tasks of these runs, each once, the first run's first."""
    return list(dict.fromkeys(run.task for run in runs))


def compute_t_quantiles(most: int) -> list[float]:
    """Of Student's t, what a two-sided interval of `LEVEL` takes: for 1, 2, ... degrees of freedom up to `most`."""
    from scipy import special  # quicker to import than scipy.stats, which asks it for the same

    return [float(value) for value in special.stdtrit(np.arange(1, most + 1), (1 + LEVEL) / 2)]


def find_differing_flags(runs: Sequence[ComparedRun]) -> list[str]:
    """The flags that have several values among the runs that have them; an algorithm's own exist in its runs alone."""
    values: dict[str, set] = {}
    for run in runs:
        for name, value in run.flags.items():
            values.setdefault(name, set()).add((type(value) is bool, value))
    return [name for name, found in values.items() if len(found) > 1]


def choose_rounds(runs: Sequence[ComparedRun]) -> list[np.ndarray]:
    """Of each run the indices of the rounds that the page keeps: all, or every k-th evaluated one and the last.

    k is the same for all runs, so that runs with the same evaluated rounds keep the same.
    """
    sizes = [sum(not _is_constant(values) for values in run.columns.values()) for run in runs]
    everything = [np.arange(len(run.columns[ROUND])) for run in runs]
    if sum(size * len(rounds) for size, rounds in zip(sizes, everything, strict=True)) <= MOST_CELLS:
        return everything
    evaluated = [_find_evaluated(run) for run in runs]
    step = -(-sum(size * len(rounds) for size, rounds in zip(sizes, evaluated, strict=True)) // MOST_CELLS)
    return [np.union1d(rounds[step - 1 :: step], rounds[-1:]) for rounds in evaluated]


def _find_evaluated(run: ComparedRun) -> np.ndarray:
    measured = [~np.isnan(run.columns[name]) for name in run.task.evaluation if name in run.columns]
    found = np.flatnonzero(np.any(measured, axis=0)) if measured else np.array([], int)
    return found if len(found) else np.arange(len(run.columns[ROUND]))


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


def _list_metrics(runs: Sequence[ComparedRun], labels: Mapping[str, str]) -> list[str]:
    """What can be compared: the metrics with a name of their own first, then the other columns as they come."""
    there = dict.fromkeys(name for run in runs for name in run.columns)
    first = [name for name in labels if name in there and name not in AXES]
    return first + [name for name in there if name not in first and name not in AXES]


def _link_files(run: ComparedRun, folder: pathlib.Path) -> dict[str, str]:
    return {name: _link(run.path / name, folder) for name in LINKED if is_on_disk(run) and (run.path / name).exists()}


def _link_plots(run: ComparedRun, folder: pathlib.Path) -> dict[str, str]:
    return {path.name: _link(path, folder) for path in list_plots(run)}


def _link(path: pathlib.Path, folder: pathlib.Path) -> str:
    return pathlib.PurePath(os.path.relpath(path, folder)).as_posix()
