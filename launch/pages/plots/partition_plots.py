"""The plot of a partition: how many examples of each class each client has or, without classes, how many in all."""

import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from launch.pages.plots.style import COLORS, count_values, draw_counts, draw_figure, label_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMED_CLIENTS = 60
MOST_SHOWN_CLIENTS = 300  # each with a column of its own; more of them are counted
LIGHTEST_SHADE = 0.25  # of the colour map: a single example must not look white, which stands for none


def draw_partition(
    label_counts: np.ndarray,
    class_names: Sequence[str],
    client_names: Sequence[str],
    path: str | os.PathLike,
    title: str = "",
) -> None:
    """Draws how many examples of each label each client has, and above it how many examples in all.

    Of many clients it is drawn how many of them have so many examples and so many labels.

    Args:
      label_counts: integers, shape (clients, classes).
      class_names: one a class.
      client_names: one a client.
      path: the PNG file.
      title: what was divided, and how.
    """
    import matplotlib
    from matplotlib.colors import ListedColormap, LogNorm

    counts = np.asarray(label_counts)
    num_clients, num_classes = counts.shape
    heading = f"{title}\n{num_clients:,} clients, {counts.sum():,} train examples".strip()
    if num_clients > MOST_SHOWN_CLIENTS:
        _draw_large_partition(counts, class_names, pathlib.Path(path), heading)
        return
    with draw_figure(pathlib.Path(path), min(5 + 0.16 * num_clients, 14), 2.6 + 0.24 * num_classes) as figure:
        grid = figure.add_gridspec(2, 2, height_ratios=(1, 0.22 * num_classes), width_ratios=(40, 1))
        heat = figure.add_subplot(grid[1, 0])
        totals = figure.add_subplot(grid[0, 0], sharex=heat)
        totals.bar(np.arange(num_clients), counts.sum(axis=1), color="#777777", width=0.8)
        totals.set(ylabel="examples", title=heading)
        totals.grid(visible=False, axis="x")
        count_values(totals)
        totals.tick_params(labelbottom=False)
        shades = ListedColormap(matplotlib.colormaps["YlGnBu"](np.linspace(LIGHTEST_SHADE, 1, 256)))
        # A logarithmic scale needs two bounds that differ, even if there is no example.
        scale = LogNorm(vmin=1, vmax=max(2, counts.max()))
        # Masked, since 0 has no logarithm: what is masked stays white.
        image = heat.imshow(np.ma.masked_equal(counts.T, 0), aspect="auto", cmap=shades, norm=scale)
        figure.colorbar(image, cax=figure.add_subplot(grid[1, 1]), label="examples (white: none)", format="{x:,.0f}")
        heat.grid(visible=False)
        heat.set_yticks(np.arange(num_classes), label_names(class_names))
        name_clients(heat, client_names)
        heat.set(ylabel="label")


def _draw_large_partition(counts: np.ndarray, class_names: Sequence[str], path: pathlib.Path, heading: str) -> None:
    with draw_figure(path, 12, max(3.6, 1.4 + 0.22 * len(class_names))) as figure:
        examples, held, labels = figure.subplots(1, 3)
        draw_counts(examples, counts.sum(axis=1), color=COLORS[0])
        examples.set(xlabel="train examples of a client", ylabel="clients")
        draw_counts(held, (counts > 0).sum(axis=1), color=COLORS[2], rwidth=0.8)
        held.xaxis.get_major_locator().set_params(integer=True)
        held.set(xlabel="labels that a client has", ylabel="clients")
        labels.barh(class_names, counts.sum(axis=0), color="#777777")
        labels.invert_yaxis()
        labels.set(xlabel="train examples of all clients", ylabel="label")
        labels.grid(visible=False, axis="y")
        figure.suptitle(heading)


def draw_sizes(num_train: np.ndarray, client_names: Sequence[str], path: str | os.PathLike, title: str = "") -> None:
    """Draws how many examples each client has, of data without classes; of many clients, how many have so many.

    Args:
      num_train: whole numbers, shape (clients,).
      client_names: one a client.
      path: the PNG file.
      title: what was divided, and how.
    """
    num_clients = len(num_train)
    heading = f"{title}\n{num_clients:,} clients, {int(num_train.sum()):,} train examples".strip()
    are_many = num_clients > MOST_SHOWN_CLIENTS
    width = 6.5 if are_many else min(5 + 0.16 * num_clients, 14)
    with draw_figure(pathlib.Path(path), width, 3.6) as figure:
        ax = figure.subplots()
        if are_many:
            draw_counts(ax, num_train, color=COLORS[0])
            ax.set(xlabel="train examples of a client", ylabel="clients", title=heading)
        else:
            ax.bar(np.arange(num_clients), num_train, color="#777777", width=0.8)
            ax.grid(visible=False, axis="x")
            count_values(ax)
            name_clients(ax, client_names)
            ax.set(ylabel="train examples", title=heading)


def name_clients(ax: "Axes", client_names: Sequence[str]) -> None:
    """The clients' names on the horizontal axis; none if there are too many to read."""
    ax.set_xlabel("client")
    if len(client_names) > MOST_NAMED_CLIENTS:
        return
    names = shorten_names(client_names)
    # Numbers fit side by side; names are turned upright.
    are_short = all(name.isdigit() for name in names)
    ax.set_xticks(np.arange(len(names)), names, fontsize=8, rotation=0 if are_short else 90)


def shorten_names(client_names: Sequence[str]) -> Sequence[str]:
    """Client numbers if the names are only that, else the names."""
    numbers = [name.removeprefix("client_") for name in client_names]
    return numbers if all(number.isdigit() for number in numbers) else label_names(client_names)
