"""Plots of a run's personal models: who gains from how many fine-tuning steps."""

import pathlib
from collections.abc import Mapping

import numpy as np

from launch.plots.style import COLORS, STYLE, new_figure, save_figure
from launch.runs.columns import CLIENT_STEPS, RESOURCE
from launch.runs.task_columns import TaskColumns

NUM_BINS = 5
MOST_LARGE_POINTS = 300


def compute_bin_means(places: np.ndarray, values: np.ndarray, num_bins: int = NUM_BINS) -> tuple[np.ndarray, ...]:
    """Means of places and values over bins of nearly equal size, in the order of `places`; NaN values are left out.

    Args:
      places: what the bins divide, shape (n,).
      values: shape (n,).
      num_bins: how many bins; fewer if there are fewer values.

    Returns:
      (mean place, mean value) of each bin.
    """
    places, values = np.asarray(places), np.asarray(values)
    known = np.isfinite(values)
    # Bins of equal size, not of equal width: a mean of few clients would be left to chance.
    order = np.argsort(places[known], kind="stable")
    bins = [part for part in np.array_split(order, num_bins) if part.size]
    return tuple(np.array([numbers[known][part].mean() for part in bins]) for numbers in (places, values))


def draw_personal(clients: Mapping[str, np.ndarray], task: TaskColumns, title: str, path: pathlib.Path) -> pathlib.Path:
    """The main metric of a run's personal models by what each device could afford: against its resources and its steps.

    Args:
      clients: the columns of a `clients.csv`, the task's main one, `resource` and `fine_tuning_steps` among them.
      task: which metric that is.
      title: the run.
      path: the PNG file.
    """
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = new_figure(9, 3.6)
        axes = figure.subplots(1, 2, sharey=True)
        for ax, column, label in zip(
            axes, (RESOURCE, CLIENT_STEPS), ("resources R_i", "fine-tuning steps N_i"), strict=True
        ):
            size = 16 if len(clients[column]) <= MOST_LARGE_POINTS else 2
            ax.scatter(clients[column], clients[task.of_client], s=size, color=COLORS[5], label="a client")
            means = compute_bin_means(clients[column], clients[task.of_client])
            ax.plot(*means, color=COLORS[0], marker="o", label="mean of a fifth of them")
            ax.set(xlabel=label)
        axes[0].set(ylabel=f"{task.label} on the client's own test split")
        axes[0].legend()
        figure.suptitle(title)
        return save_figure(figure, path)
