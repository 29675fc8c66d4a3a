"""Figures 3 and 4 of asynchronous FL, accuracy by aggregation and by virtual time; and the tuned methods by time."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from launch.papers.async_periodic.claims import (
    CASES,
    COMPARED_CASES,
    FEDAVG,
    FEDAVG_PROXIMAL,
    KINDS,
    LAST_ROUND,
    NEVER_WAITING,
    POLICIES,
    TIME_BUDGET,
    TUNED_CASES,
    TUNED_METHODS,
)
from launch.papers.async_periodic.measures import ROUNDING, group_whole_runs, list_accuracies, list_times, make_place
from launch.papers.async_periodic.report import TUNED_FIGURE, has_tuned
from launch.papers.engine.collection import Place
from launch.papers.engine.curves import Curve, compute_curve, draw_curve, say_not_run
from launch.plots.label_placement import label_line_ends
from launch.plots.style import COLORS, LINES, STYLE, new_figure, save_figure
from launch.runs.run_records import TUNED_SUFFIX, RunRecord
from launch.settings.algorithms import ALGORITHMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RunsOfPlaces = Mapping[Place, Sequence[RunRecord]]

KINDS_DRAWN = ("fresh", "old", "equal", FEDAVG, FEDAVG_PROXIMAL)  # of Figures 3 and 4, in this order
COLOR_OF_KIND = {
    **dict(zip(KINDS_DRAWN, COLORS, strict=False)),
    **dict.fromkeys((FEDAVG, FEDAVG_PROXIMAL), ALGORITHMS["fedavg"].color),
    **{algo: ALGORITHMS[algo].color for algo in NEVER_WAITING},
}
STYLES = {
    kind: {"color": color, "linestyle": LINES[i % len(LINES)]} for i, (kind, color) in enumerate(COLOR_OF_KIND.items())
}
PAPER_FIGURES = dict(zip(COMPARED_CASES, ("Figure 3", "Figure 4"), strict=True))
LABEL_ROOM = 0.33  # right of the lines, of their width


def compute_accuracy_curve(runs: Sequence[RunRecord], is_by_time: bool) -> Curve:
    """The curve of accuracies in per cent by aggregation or by virtual time in T_max, up to where panels end.

    Args:
      runs: one or more, all with the same number of rounds; times are means over them.
      is_by_time: which of the two.
    """
    times = np.mean([list_times(run) for run in runs], axis=0)
    values = list(zip(*map(list_accuracies, runs), strict=True))
    places = times if is_by_time else 1.0 + np.arange(len(values))
    num_shown = int((places <= (TIME_BUDGET if is_by_time else LAST_ROUND) + ROUNDING).sum())
    return compute_curve(places[:num_shown], values[:num_shown])


def draw_async_figures(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `async_tuned.png`, if tuned runs are there, and `async.png`, whose path it returns."""
    by_place = group_whole_runs(runs)
    if has_tuned(by_place):
        draw_tuned_figure(by_place, folder)
    return draw_async_figure(by_place, folder)


def draw_async_figure(by_place: RunsOfPlaces, folder: pathlib.Path) -> pathlib.Path:
    """Draws `async.png`: rows by data case and horizontal axis, columns by policy; the mean over seeds, and a band."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = new_figure(14, 3.4 * 2 * len(COMPARED_CASES))
        axes = figure.subplots(2 * len(COMPARED_CASES), len(POLICIES), sharey="row")
        for i, case in enumerate(COMPARED_CASES):
            for j, is_by_time in enumerate((False, True)):
                for ax, policy in zip(axes[2 * i + j], POLICIES, strict=True):
                    places = {kind: make_place(case, policy, kind) for kind in KINDS_DRAWN}
                    _draw_panel(ax, by_place, places, KINDS, is_by_time)
                    ax.set_title(f"{CASES[case]}, {policy}" + ("" if is_by_time else f" ({PAPER_FIGURES[case]})"))
        return _finish(figure, axes, "Asynchronous FL on MNIST", folder / "async.png")


def draw_tuned_figure(by_place: RunsOfPlaces, folder: pathlib.Path) -> pathlib.Path:
    """Draws `async_tuned.png`: the methods by virtual time with settings that nobody tuned, and beside it tuned."""
    import matplotlib

    names = {kind: name for (_, kind), name in TUNED_METHODS.items()}
    with matplotlib.rc_context(STYLE):
        figure = new_figure(10, 3.6 * len(TUNED_CASES))
        axes = figure.subplots(len(TUNED_CASES), 2, sharey="row", squeeze=False)
        for row, case in zip(axes, TUNED_CASES, strict=True):
            for ax, suffix, title in zip(row, ("", TUNED_SUFFIX), ("not tuned", "tuned"), strict=True):
                places = {kind: make_place(case, policy, kind + suffix) for policy, kind in TUNED_METHODS}
                _draw_panel(ax, by_place, places, names, is_by_time=True)
                ax.set_title(f"{CASES[case]}, {title}")
        return _finish(figure, axes, "Asynchronous FL and others on its clock, MNIST", folder / TUNED_FIGURE)


def _draw_panel(
    ax: "Axes", by_place: RunsOfPlaces, places: Mapping[str, Place], names: Mapping[str, str], is_by_time: bool
) -> None:
    """A line for each kind whose place has runs."""
    last = TIME_BUDGET if is_by_time else LAST_ROUND
    # A model serves until the next aggregation, so accuracy over time is a step function.
    step = "post" if is_by_time else None
    for kind, place in places.items():
        if place in by_place:
            curve = compute_accuracy_curve(by_place[place], is_by_time)
            draw_curve(ax, curve, names[kind], alpha=0.15, step=step, linewidth=1.3, **STYLES[kind])
    ax.set_xlim(0, last * (1 + LABEL_ROOM))
    ax.set_xticks(np.linspace(0, last, 5))
    ax.set_xlabel("virtual time (T_max)" if is_by_time else "aggregation")
    if not ax.lines:
        say_not_run(ax)


def _finish(figure: "Figure", axes: np.ndarray, title: str, path: pathlib.Path) -> pathlib.Path:
    for row in axes:
        row[0].set_ylabel("test accuracy (%)")
    figure.suptitle(f"{title}: mean over seeds and one deviation either side")
    figure.draw_without_rendering()  # settles the layout, by which labels find their room
    for ax in axes.flat:
        label_line_ends(ax)
    return save_figure(figure, path)
