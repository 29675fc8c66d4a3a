"""Plots of personal models: what fine-tuning gains by steps (`fine_tuning.csv`), and who gains from how many."""

import io
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from launch.pages.plots.style import COLORS, LINES, MARKERS, count_rounds, draw_figure
from launch.runs.columns import (
    CLIENT_STEPS,
    FINE_TUNING_CLIENTS,
    FINE_TUNING_STEPS,
    MEMBERS,
    NEW,
    RESOURCE,
    ROUND,
)
from launch.runs.task_columns import TaskColumns

NUM_BINS = 5
MOST_LARGE_POINTS = 300
STARTS = ("trained start", "random start")
GROUPS = {MEMBERS: "clients", NEW: "new clients"}


def draw_fine_tuning(
    rows: Sequence[Mapping[str, str]], task: TaskColumns, title: str, path: pathlib.Path
) -> pathlib.Path:
    """Draws the main metric after each number of steps: a panel for clients, and one for new clients if there are any.

    Args:
      rows: of `fine_tuning.csv`, each {column: cell}.
      task: which metric that is.
      title: the run.
      path: the PNG file.
    """
    groups = [group for group in GROUPS if any(row[FINE_TUNING_CLIENTS] == group for row in rows)]
    with draw_figure(path, 1.2 + 4.2 * len(groups), 3.6) as figure:
        axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
        for ax, group in zip(axes, groups, strict=True):
            chosen = [row for row in rows if row[FINE_TUNING_CLIENTS] == group]
            for i, (column, label) in enumerate(zip(task.starts, STARTS, strict=True)):
                values = [float(row[column]) for row in chosen]
                ax.plot(values, LINES[i], color=COLORS[i], marker=MARKERS[i], markersize=4, label=label)
            # Evenly spaced, since the numbers of steps grow roughly by a factor and may begin with 0.
            ax.set_xticks(range(len(chosen)), [row[FINE_TUNING_STEPS] for row in chosen])
            ax.set(xlabel="fine-tuning steps, at most", title=GROUPS[group])
        axes[0].set(ylabel=f"{task.label} on own test splits, mean")
        axes[0].legend()
        figure.suptitle(title)
    return path


def draw_client_rounds(table: str, task: TaskColumns, title: str, path: pathlib.Path) -> pathlib.Path:
    """Draws how the clients' own test results spread by round: the median, the middle half, the middle four fifths.

    Args:
      table: `clients_by_round.csv.gz` as text.
      task: which metric that is.
      title: the run.
      path: the PNG file.
    """
    values = pd.read_csv(io.StringIO(table)).groupby(ROUND)[f"test_{task.of_client}"]
    spread = values.quantile([0.1, 0.25, 0.5, 0.75, 0.9]).unstack()
    with draw_figure(path, 5.4, 3.6) as figure:
        ax = figure.subplots()
        for lower, upper, label in ((0.1, 0.9, "80 % of the clients"), (0.25, 0.75, "half of them")):
            ax.fill_between(spread.index, spread[lower], spread[upper], alpha=0.25, color=COLORS[0], label=label)
        ax.plot(spread.index, spread[0.5], color=COLORS[0], marker=MARKERS[0], markersize=4, label="median")
        ax.set(xlabel="round", ylabel=f"{task.label} on own test splits")
        count_rounds(ax)
        figure.legend(loc="outside lower center", ncols=3)
        figure.suptitle(title)
    return path


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
    with draw_figure(path, 9, 3.6) as figure:
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
    return path
