"""Accuracy against what it cost in privacy."""

import pathlib
from collections.abc import Mapping

import numpy as np

from launch.plots.style import COLORS, LINES, MARKERS, STYLE, new_figure, save_figure
from launch.runs.columns import CLIENT_TEST_ACCURACY, EPSILON_SPENT, TEST_ACCURACY

ACCURACIES = {TEST_ACCURACY: "global test set", CLIENT_TEST_ACCURACY: "clients' own test splits"}


def draw_epsilon(metrics: Mapping[str, np.ndarray], title: str, path: pathlib.Path) -> pathlib.Path:
    """Draws a run's accuracy against epsilon as it is spent; only the rounds that were evaluated show.

    Args:
      metrics: the columns of `metrics.csv`, NaN in empty cells; `epsilon_spent` among them.
      title: the run.
      path: the PNG file.
    """
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = new_figure(5.5, 3.6)
        ax = figure.subplots()
        for i, (column, label) in enumerate(ACCURACIES.items()):
            values = metrics.get(column, np.array([]))
            seen = np.isfinite(values)
            if seen.any():
                style = {"color": COLORS[i], "marker": MARKERS[i], "markersize": 4}
                ax.plot(metrics[EPSILON_SPENT][seen], values[seen], LINES[i], label=label, **style)
        if ax.lines:
            ax.legend()
        ax.set_xlim(left=0)
        ax.set(xlabel="epsilon spent", ylabel="accuracy (not private)")
        ax.set_title(f"Accuracy against privacy\n{title}")
        return save_figure(figure, path)
