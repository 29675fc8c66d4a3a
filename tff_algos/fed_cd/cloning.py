"""What a milestone does: the clone of the model in slot m goes to slot M + m. NumPy only."""

import numpy as np

from tff_algos.fed_cd.scores import normalize


def clone_scores(scores: np.ndarray, is_active: np.ndarray, num_slots: int) -> tuple[np.ndarray, np.ndarray]:
    """Every client clones its active models: a clone scores 1 - c of its parent, then the scores are normalized.

    Args:
      scores: float64, shape (clients, capacity), capacity at least 2 * `num_slots`.
      is_active: shape (clients, capacity), False from slot `num_slots` on.
      num_slots: M, the slots given out so far.

    Returns:
      The scores and `is_active` afterwards.
    """
    clones = slice(num_slots, 2 * num_slots)
    scores, is_active = scores.copy(), is_active.copy()
    is_active[:, clones] = is_active[:, :num_slots]
    scores[:, clones] = np.where(is_active[:, clones], 1.0 - scores[:, :num_slots], 0.0)
    return normalize(scores, is_active), is_active


def clone_models(models: tuple[np.ndarray, ...], sources: tuple[np.ndarray, ...], parents: np.ndarray) -> tuple:
    """The stacked models, with a copy of the parent in the slot of each clone.

    Args:
      models: stacked along axis 0.
      sources: what the clones are copies of: the parents as the clients hold them, stacked likewise.
      parents: for each slot that a clone goes to now, the slot of its parent; -1 elsewhere; int32, shape (capacity,).
    """
    slots = np.flatnonzero(parents >= 0)
    cloned = []
    for array, source in zip(models, sources, strict=True):
        array = array.copy()
        array[slots] = source[parents[slots]]
        cloned.append(array)
    return tuple(cloned)
