"""The plot of the columns that an algorithm, or a part of a user's, adds to metrics.csv: a panel each."""

import pathlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from launch.plots.style import COLORS, STYLE, count_rounds, count_values, new_figure, save_figure, smooth
from launch.runs.column_titles import title_column
from launch.runs.columns import ROUND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 24
PANELS_A_ROW = 3
MOST_MARKED_ROUNDS = 30


def list_own_columns(metrics: Mapping[str, np.ndarray], known: Collection[str]) -> list[str]:
    """The columns that are not among `known` and hold a number, the first `MOST_PANELS`."""
    own = [name for name, values in metrics.items() if name not in known and np.isfinite(values).any()]
    return own[:MOST_PANELS]


def draw_own_columns(
    metrics: Mapping[str, np.ndarray], names: Collection[str], title: str, path: pathlib.Path, window: int = 0
) -> pathlib.Path:
    """Draws columns by round, each in a panel of its own, since their units differ.

    Args:
      metrics: the columns of a `metrics.csv`.
      names: those that are drawn.
      title: the run.
      path: the PNG file.
      window: rounds that a curve is smoothed over; 0: none.
    """
    import matplotlib

    num_columns = min(PANELS_A_ROW, len(names))
    num_rows = -(-len(names) // num_columns)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(0.6 + 3.6 * num_columns, 0.8 + 2.4 * num_rows)
        panels = figure.subplots(num_rows, num_columns, squeeze=False).ravel()
        for ax, name in zip(panels, names, strict=False):
            _draw_column(ax, metrics[ROUND], metrics[name], window)
            ax.set(title=title_column(name), xlabel="round")
        for ax in panels[len(names) :]:
            ax.set_axis_off()
        figure.suptitle(title)
        return save_figure(figure, path)


def _draw_column(ax: "Axes", rounds: np.ndarray, values: np.ndarray, window: int) -> None:
    seen = np.isfinite(values)
    rounds, values = rounds[seen], values[seen]
    marker = "o" if len(values) <= MOST_MARKED_ROUNDS else None
    if window > 1:
        ax.plot(rounds, values, color=COLORS[0], linewidth=0.8, alpha=0.4)
        ax.plot(rounds, smooth(values, window), color=COLORS[0])
    else:
        ax.plot(rounds, values, color=COLORS[0], marker=marker, markersize=4)
    if (values == np.round(values)).all():
        count_values(ax)
    if values.min() >= 0:
        ax.set_ylim(bottom=0)
    count_rounds(ax)
