"""How a run's results go up and its loss goes down: as PNG files, and as the sketches of the run's page."""

import io
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from launch.pages.plots.style import (
    COLORS,
    ENERGIES,
    LINES,
    MARKERS,
    SIZES,
    STYLE,
    TIMES,
    count_rounds,
    draw_figure,
    new_figure,
    pick_unit,
    settle_ticks,
    smooth,
    span_values,
)
from launch.runs import columns
from launch.runs.task_columns import TaskColumns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOSSES = {columns.TEST_LOSS: "global test set", columns.TRAIN_LOSS: "training"}
MOST_MARKED_ROUNDS = 30
SKETCH = (5.0, 3.5)  # inches


class Axis(NamedTuple):
    """A horizontal axis: file name, label, and one value a round."""

    name: str
    label: str
    values: np.ndarray


def list_axes(metrics: Mapping[str, np.ndarray]) -> list[Axis]:
    """By what a run's progress is shown: rounds, virtual time, bytes and, where it is known, energy."""
    seconds = metrics[columns.VIRTUAL_TIME_S]
    sent_bytes = np.cumsum(metrics[columns.BYTES_DOWN] + metrics[columns.BYTES_UP])
    time_unit, time_size = pick_unit(seconds, TIMES)
    byte_unit, byte_size = pick_unit(sent_bytes, SIZES)
    axes = [
        Axis("round", "round", metrics[columns.ROUND]),
        Axis("virtual_time", f"virtual time ({time_unit})", seconds / time_size),
        Axis("bytes", f"sent both ways, all clients ({byte_unit})", sent_bytes / byte_size),
    ]
    if columns.JOULES_TOTAL in metrics:
        joules = metrics[columns.JOULES_TOTAL]
        unit, size = pick_unit(joules, ENERGIES)
        axes.append(Axis("joules", f"energy, all clients ({unit})", joules / size))
    return axes


def draw_progress(
    metrics: Mapping[str, np.ndarray],
    axis: Axis,
    task: TaskColumns,
    losses: Mapping[str, str],
    title: str,
    path: pathlib.Path,
    window: int,
) -> pathlib.Path:
    """The task's main metric and the loss beside each other over one axis."""
    with draw_figure(path, 9, 3.9) as figure:
        reached, loss = figure.subplots(1, 2)
        draw_series(reached, metrics, axis, name_reached(task), window)
        draw_series(loss, metrics, axis, losses, window)
        # The main metric as a heading, which says so where lower is better, since a reader expects the opposite
        reached.set(
            ylabel=task.label,
            title=task.heading if task.metric.larger_is_better else f"{task.heading} (lower is better)",
            xlabel=axis.label,
        )
        loss.set(ylabel="loss", title="Loss", xlabel=axis.label)
        for ax in (reached, loss):
            if axis.name == "round":
                count_rounds(ax)
            else:
                ax.set_xlim(left=0)
        figure.suptitle(title)
        settle_ticks(figure)
    return path


def name_reached(task: TaskColumns) -> dict[str, str]:
    """The columns of the task's main metric, each with what it is measured on."""
    return {task.test: "global test set", task.client_test: "clients' own test splits"}


def draw_series(
    ax: "Axes", metrics: Mapping[str, np.ndarray], axis: Axis, series: Mapping[str, str], window: int = 0
) -> None:
    """Lines of the columns in `series`; where they are smoothed, each before the thin line of what was measured."""
    for i, (column, label) in enumerate(series.items()):
        values = metrics.get(column, np.array([]))
        seen = np.isfinite(values)
        if seen.any():
            # Markers show where a sparse series was measured; in a dense one they would hide the line.
            marker = MARKERS[i] if seen.sum() <= MOST_MARKED_ROUNDS else None
            style = {"color": COLORS[i], "marker": None if window > 1 else marker, "markersize": 4}
            if window > 1:
                ax.plot(axis.values[seen], values[seen], color=COLORS[i], linewidth=0.8, alpha=0.4)
            shown = smooth(values[seen], window) if window > 1 else values[seen]
            ax.plot(axis.values[seen], shown, LINES[i], label=label, **style)
    if ax.lines:
        # Where it covers no curve.
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)


class Level(NamedTuple):
    """What is reached without a model: a horizontal line, in the unit of the column, and what it is called."""

    value: float
    label: str


def sketch_progress(
    metrics: Mapping[str, np.ndarray],
    axis: Axis,
    series: Mapping[str, str],
    label: str,
    window: int = 0,
    level: Level | None = None,
) -> str:
    """One panel as SVG, so small that its letters can be read on a phone.

    Args:
      metrics: the columns of a `metrics.csv`.
      axis: what the curves are drawn against.
      series: columns and what each is measured on.
      label: of the vertical axis; shares are in percent if it ends with "(%)".
      window: rounds that the curves are averaged over; 0 is none.
      level: a dotted line across the panel.
    """
    import matplotlib

    factor = 100 if label.endswith("(%)") else 1
    shown = {name: factor * metrics[name] for name in series if name in metrics}
    # Letters stay text: the file is small, and the page's reader can search in it.
    with matplotlib.rc_context({**STYLE, "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = new_figure(*SKETCH)
        ax = figure.add_subplot()
        draw_series(ax, shown, axis, series, window)
        measured = np.concatenate([[], *(values[np.isfinite(values)] for values in shown.values())])
        if axis.name == columns.ROUND:
            count_rounds(ax)
        else:
            ax.set_xlim(left=0)
        if level:
            ax.axhline(factor * level.value, color="#555555", linestyle=":", linewidth=1.6, label=level.label)
            measured = np.append(measured, factor * level.value)
        bounds = (0.0, 100.0 if factor == 100 else None) if len(measured) and measured.min() >= 0 else (None, None)
        ax.set_ylim(*span_values(measured, bounds))
        ax.set(xlabel=axis.label, ylabel=label)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=1 if level else 2)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
