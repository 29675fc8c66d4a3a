"""Finds room for the labels of points in a plot, so that no label covers a point or another label."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RADII = (8.0, 13.0, 19.0, 26.0, 34.0, 43.0)  # distances of a label from its point, in points of 1/72 inch
NUM_DIRECTIONS = 16
LINE_LABEL_GAP = 11.0  # between the labels of two lines, in points of 1/72 inch


def label_points(ax: "Axes", points: np.ndarray, labels: Sequence[str]) -> None:
    """Small grey labels beside the points, shape (points, 2), where there is room, each with a line to its point."""
    places = ax.transData.transform(points) * 72 / ax.figure.dpi
    gap = (2 + 3.6 * max(map(len, labels)), 7.0)  # of letters of size 6
    for label, point, offset in zip(labels, points, place_labels(places, gap), strict=True):
        ax.annotate(
            label,
            point,
            offset,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=6,
            color="#555555",
            arrowprops={"arrowstyle": "-", "color": "#bbbbbb", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0},
            zorder=0.9,  # under the points
        )


def label_line_ends(ax: "Axes") -> None:
    """The name of each line at its end, in its colour, moved up or down where names would touch.

    The axes need room to the right of the lines, and a settled layout (`figure.draw_without_rendering()`).
    """
    to_points = 72 / ax.figure.dpi
    ends = [(line.get_xdata()[-1], line.get_ydata()[-1]) for line in ax.lines]
    heights = [ax.transData.transform(end)[1] * to_points for end in ends]
    for line, end, height, moved in zip(ax.lines, ends, heights, spread_out(heights, LINE_LABEL_GAP), strict=True):
        label = ax.annotate(
            line.get_label(),
            end,
            (5, moved - height),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=line.get_color(),
        )
        # Else the layout, by which the labels were placed, would change again.
        label.set_in_layout(False)


def place_labels(points: np.ndarray, gap: tuple[float, float]) -> list[tuple[float, float]]:
    """An offset for the centre of each label from its point: the nearest that is free, tried around the clock.

    Args:
      points: float64, shape (points, 2), in the unit in which labels have their size (points of 1/72 inch).
      gap: width and height that a label needs.

    Returns:
      (x, y) for each point; a label for which there is no room is put at the farthest radius all the same.
    """
    # The offsets in the order of preference, shape (offsets, 2); the first is up to the right
    angles = np.pi / 4 + 2 * np.pi * np.arange(NUM_DIRECTIONS) / NUM_DIRECTIONS
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    candidates = np.concatenate([radius * circle for radius in RADII])
    # The points count as taken from the start: a label may cover no point, not even one that is labelled later.
    taken, offsets = np.array(points), []
    for point in points:
        spots = point + candidates
        is_free = ~(np.abs(spots[:, np.newaxis] - taken) < gap).all(axis=2).any(axis=1)
        chosen = np.argmax(is_free) if is_free.any() else -1
        taken = np.vstack([taken, spots[chosen]])
        offsets.append(tuple(candidates[chosen].tolist()))
    return offsets


def spread_out(positions: Sequence[float], gap: float) -> np.ndarray:
    """Positions on a line, moved as little as it takes (in squares) to lie at least a gap apart, in the same order.

    Labels that would touch form a block around the mean of their positions; blocks that touch are merged.
    """
    order = np.argsort(positions, kind="stable")
    # Of each the sum of where its members would like the block to start, and how many these are.
    blocks: list[list[float]] = []
    # With the i gaps before it subtracted, a position only has to be no smaller than the one before. That is isotonic
    # regression, solved by merging neighbours that are in the wrong order.
    for i, position in enumerate(np.asarray(positions, np.float64)[order]):
        blocks.append([position - gap * i, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    starts = np.concatenate([np.full(int(count), total / count) for total, count in blocks] or [np.zeros(0)])
    spread = np.empty(len(order))
    spread[order] = starts + gap * np.arange(len(order))
    return spread
