"""Finds room for the labels of points in a plot, so that no label covers a point or another label."""

import numpy as np

RADII = (8.0, 13.0, 19.0, 26.0, 34.0, 43.0)
NUM_DIRECTIONS = 16


def place_labels(points: np.ndarray, gap: tuple[float, float]) -> list[tuple[float, float]]:
    """An offset for the centre of each label from its point: the nearest that is free, tried around the clock.

    Args:
      points: float64, shape (points, 2), in the unit in which labels have their size (points of 1/72 inch).
      gap: width and height that a label needs.

    Returns:
      (x, y) for each point; a label for which there is no room is put at the farthest radius all the same.
    """
    candidates = list_candidates()
    taken, offsets = np.array(points), []
    for point in points:
        spots = point + candidates
        is_free = ~(np.abs(spots[:, np.newaxis] - taken) < gap).all(axis=2).any(axis=1)
        chosen = np.argmax(is_free) if is_free.any() else -1
        taken = np.vstack([taken, spots[chosen]])
        offsets.append(tuple(candidates[chosen].tolist()))
    return offsets


def list_candidates() -> np.ndarray:
    """The offsets in the order of preference, shape (offsets, 2); the first is up to the right."""
    angles = np.pi / 4 + 2 * np.pi * np.arange(NUM_DIRECTIONS) / NUM_DIRECTIONS
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.concatenate([radius * circle for radius in RADII])
