"""Plots of an asynchronous run from its `events.csv`: what the devices did when, and how old their updates were.

With many devices the file is large, so it is read row by row, and once for each plot.
"""

import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from launch.pages.plots.partition_plots import shorten_names
from launch.pages.plots.style import COLORS, count_values, draw_counts, draw_figure
from launch.runs.columns import CLIENT, MODEL, ROUND, TIME_S, WHAT
from launch.runs.tables import iterate_records, open_text

MOST_DEVICES = 40
MOST_BARS = 200  # clients that each get a bar; more of them are counted
MOST_INTERVALS = 12  # mean training times shown; bars of a longer stretch would be too thin to see
RECEIVED_AT = ((float, TIME_S), (int, CLIENT))
VIRTUAL, REAL = "virtual time (s)", "time (s)"
ENDS = {
    "ready": ("trains, then is ready", COLORS[0]),
    "dropped": ("trains, then drops out", COLORS[1]),
    "missing": ("has not answered in time", COLORS[4]),
    "rejected": ("its answer does not count", COLORS[3]),
}


class Training(NamedTuple):
    """A device trained from `start_s` to `end_s` and then was `end`, one of ENDS."""

    client: int
    start_s: float
    end_s: float
    end: str


def find_trainings(events: Sequence[dict[str, str]]) -> list[Training]:
    """Every training that has ended, in the order in which they ended."""
    started: dict[int, float] = {}
    trainings = []
    for event in events:
        client, time_s = int(event[CLIENT]), float(event[TIME_S])
        if event[WHAT] == "start":
            started[client] = time_s
        elif event[WHAT] in ENDS and client in started:  # else it was ready, and is rejected later
            trainings.append(Training(client, started.pop(client), time_s, event[WHAT]))
    return trainings


def draw_timeline(
    events: Sequence[dict[str, str]],
    title: str,
    path: pathlib.Path,
    names: Sequence[str] = (),
    time_label: str = VIRTUAL,
) -> pathlib.Path:
    """A Gantt chart of the first devices over the first stretch of time: training, readiness, updates received.

    Args:
      events: of these devices, in the order of time.
      title: the run.
      path: the PNG file.
      names: one a client; without them devices are numbered.
      time_label: VIRTUAL or REAL.
    """
    trainings = [training for training in find_trainings(events) if training.client < MOST_DEVICES]
    # The whole of a long run would show hundreds of trainings a device.
    stretch_s = MOST_INTERVALS * float(np.mean([training.end_s - training.start_s for training in trainings]))
    until_s = min(stretch_s, max(float(event[TIME_S]) for event in events)) or 1.0
    devices = 1 + max(training.client for training in trainings)
    with draw_figure(path, 9, 2 + 0.18 * devices) as figure:
        ax = figure.add_subplot()
        for end, (label, color) in ENDS.items():
            bars = [each for each in trainings if each.end == end and each.start_s < until_s]
            widths, starts = [each.end_s - each.start_s for each in bars], [each.start_s for each in bars]
            rows = [each.client for each in bars]
            if bars:
                ax.barh(rows, widths, left=starts, height=0.6, color=color, alpha=0.6, label=label)
        received = [event for event in events if event[WHAT] == "received" and int(event[CLIENT]) < MOST_DEVICES]
        times, clients = ([convert(event[name]) for event in received] for convert, name in RECEIVED_AT)
        ax.plot(times, clients, "k|", markersize=7, label="update received")
        # A mark at the very end is not cut in half.
        ax.set(xlim=(0, 1.01 * until_s), ylim=(devices - 0.5, -0.5), xlabel=time_label, title=title)
        ax.set_ylabel("client")
        if len(names) >= devices:
            ax.set_yticks(np.arange(devices), shorten_names(names[:devices]), fontsize=8)
        else:
            count_values(ax)
        ax.grid(visible=False, axis="y")
        figure.legend(loc="outside lower center", ncols=3)
    return path


def compute_ages(events: Iterable[dict[str, str]]) -> np.ndarray:
    """The age of every update received: how many versions came after the one it was trained from, int64.

    Every round makes at least one version, even if no device was ready to receive it.
    """
    ages, newest = [], 0
    for event in events:
        version, newest = int(event[MODEL]), max(newest, int(event[ROUND]))
        if event[WHAT] == "received":
            ages.append(max(newest - version, 0))
        newest = max(newest, version)
    return np.array(ages, np.int64)


def count_received(events: Iterable[dict[str, str]]) -> np.ndarray:
    """How many updates came from each client, int64, shape (clients,)."""
    last, received = 0, []
    for event in events:
        client = int(event[CLIENT])
        last = max(last, client)
        if event[WHAT] == "received":
            received.append(client)
    return np.bincount(np.array(received, np.int64), minlength=1 + last)


def draw_ages_and_participation(ages: np.ndarray, counts: np.ndarray, title: str, path: pathlib.Path) -> pathlib.Path:
    """A histogram of the ages of updates, and how many updates came from each client, most first.

    With many clients the latter is a histogram, too.

    Args:
      ages: see `compute_ages`.
      counts: see `count_received`.
      title: the run.
      path: the PNG file.
    """
    with draw_figure(path, 9, 3.6) as figure:
        left, right = figure.subplots(1, 2)
        left.bar(*np.unique(ages, return_counts=True), color=COLORS[0])
        left.set(xlabel="age of the update (versions)", ylabel="updates received")
        if len(counts) <= MOST_BARS:
            right.bar(np.arange(len(counts)), np.sort(counts)[::-1], color=COLORS[2])
            right.set(xlabel="clients, most often received first", ylabel="updates received")
        else:
            draw_counts(right, counts, color=COLORS[2])
            right.set(xlabel="updates received from a client", ylabel="clients")
        for ax in (left, right):
            for axis in (ax.xaxis, ax.yaxis):
                axis.get_major_locator().set_params(integer=True)
            ax.grid(visible=False, axis="x")
        figure.suptitle(title)
    return path


def draw_events(
    path: pathlib.Path, title: str, plots: pathlib.Path, names: Sequence[str] = (), time_label: str = VIRTUAL
) -> list[pathlib.Path]:
    """Draws what an `events.csv` holds; nothing if no training of the devices shown has ended.

    Args:
      path: the table.
      title: the run.
      plots: the folder of the PNG files.
      names: of the clients; () if they are not known.
      time_label: VIRTUAL or REAL.
    """
    shown = [event for event in iterate_events(path) if int(event[CLIENT]) < MOST_DEVICES]
    if not find_trainings(shown):
        return []
    ages, counts = compute_ages(iterate_events(path)), count_received(iterate_events(path))
    return [
        draw_timeline(shown, title, plots / "timeline.png", names, time_label),
        draw_ages_and_participation(ages, counts, title, plots / "participation.png"),
    ]


def iterate_events(path: pathlib.Path) -> Iterator[dict[str, str]]:
    """The rows of an `events.csv`, each {column: cell}."""
    with open_text(path) as file:
        yield from iterate_records(file)
