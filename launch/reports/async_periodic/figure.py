"""Figures 3 and 4 of asynchronous FL: accuracy by aggregation and by virtual time, a panel for each policy."""

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from launch.plots.label_placement import spread_out
from launch.plots.style import COLORS, LINES, STYLE, new_figure, save_figure
from launch.reports.async_periodic.claims import CASES, COMPARED_CASES, FEDAVG, KINDS, LAST_ROUND, POLICIES, TIME_BUDGET
from launch.reports.async_periodic.report import Place, find_place, is_whole, list_accuracies, list_times
from launch.runs.run_records import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {kind: {"color": COLORS[i], "linestyle": LINES[i]} for i, kind in enumerate(("fresh", "old", "equal", FEDAVG))}
PAPER_FIGURES = dict(zip(COMPARED_CASES, ("Figure 3", "Figure 4"), strict=True))
LABEL_ROOM, LABEL_GAP = 0.33, 11.0  # of the width of a panel; points of 1/72 inch


class Curve(NamedTuple):
    """Mean accuracy in per cent, its deviation over the seeds, and where: aggregations or virtual times in T_max."""

    places: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray


def compute_curve(runs: Sequence[RunRecord], is_by_time: bool) -> Curve:
    """The curve of at least one run of equally many rounds; times are means over the seeds."""
    accuracies = np.array([list_accuracies(run) for run in runs])
    places = np.mean([list_times(run) for run in runs], axis=0) if is_by_time else 1.0 + np.arange(accuracies.shape[1])
    deviation = accuracies.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros(accuracies.shape[1])
    return Curve(places, accuracies.mean(axis=0), deviation)


def draw_async_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `async.png`: rows by data case and horizontal axis, columns by policy; the mean over seeds, and a band."""
    import matplotlib

    by_place: dict[Place, list[RunRecord]] = {}
    for run in runs:
        if is_whole(run):
            by_place.setdefault(find_place(run.experiment), []).append(run)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(14, 3.4 * 2 * len(COMPARED_CASES))
        axes = figure.subplots(2 * len(COMPARED_CASES), len(POLICIES), sharey="row")
        for i, case in enumerate(COMPARED_CASES):
            for j, is_by_time in enumerate((False, True)):
                for ax, policy in zip(axes[2 * i + j], POLICIES, strict=True):
                    curves = {
                        kind: compute_curve(by_place[place], is_by_time)
                        for kind in STYLES
                        if (place := Place(case, policy, kind)) in by_place
                    }
                    _draw_panel(ax, curves, is_by_time)
                    ax.set_title(f"{CASES[case]}, {policy}" + ("" if is_by_time else f" ({PAPER_FIGURES[case]})"))
                axes[2 * i + j, 0].set_ylabel("test accuracy (%)")
        figure.suptitle("Asynchronous FL on MNIST: mean over seeds and one deviation either side")
        figure.draw_without_rendering()  # settles the layout, by which labels find their room
        for ax in axes.flat:
            _label_lines(ax)
        return save_figure(figure, folder / "async.png")


def _draw_panel(ax: "Axes", curves: dict[str, Curve], is_by_time: bool) -> None:
    last = TIME_BUDGET if is_by_time else LAST_ROUND
    for kind, (places, mean, deviation) in curves.items():
        steps = {"drawstyle": "steps-post"} if is_by_time else {}
        band = {"step": "post"} if is_by_time else {}
        shown = places <= last + 1e-9
        color = STYLES[kind]["color"]
        ax.fill_between(
            places[shown], (mean - deviation)[shown], (mean + deviation)[shown], color=color, alpha=0.15, lw=0, **band
        )
        ax.plot(places[shown], mean[shown], label=KINDS[kind], linewidth=1.3, **STYLES[kind], **steps)
    ax.set_xlim(0, last * (1 + LABEL_ROOM))
    ax.set_xticks(np.linspace(0, last, 5))
    ax.set_xlabel("virtual time (T_max)" if is_by_time else "aggregation")
    if not curves:
        ax.text(0.5, 0.5, "not run", transform=ax.transAxes, ha="center", va="center", color="#777777")


def _label_lines(ax: "Axes") -> None:
    """The name of each line at its end, moved up or down where names would touch."""
    to_points = 72 / ax.figure.dpi
    ends = [(line.get_xdata()[-1], line.get_ydata()[-1]) for line in ax.lines]
    heights = [ax.transData.transform(end)[1] * to_points for end in ends]
    for line, end, height, moved in zip(ax.lines, ends, heights, spread_out(heights, LABEL_GAP), strict=True):
        label = ax.annotate(
            line.get_label(),
            end,
            (5, moved - height),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=line.get_color(),
        )
        label.set_in_layout(False)  # else the layout would change once more
