"""What a milestone does: the clone of the model in slot m goes to slot M + m. NumPy only."""

import numpy as np

from tff_algos.fed_cd.scores import NOT_EVALUATED, normalize


def clone_scores(
    scores: np.ndarray, is_active: np.ndarray, num_slots: int, of_parents: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Every client clones its active models: a clone scores 1 - c of its parent, then the scores are normalized.

    Args:
      scores: float64, shape (clients, capacity), capacity at least 2 * `num_slots`.
      is_active: shape (clients, capacity), False from slot `num_slots` on.
      num_slots: M, the slots given out so far.
      of_parents: what a clone's score is 1 minus of, in [0, 1], shape (clients, capacity); None: the parent's score.

    Returns:
      The scores and `is_active` afterwards.
    """
    clones = slice(num_slots, 2 * num_slots)
    of_parents = scores if of_parents is None else of_parents
    scores, is_active = scores.copy(), is_active.copy()
    is_active[:, clones] = is_active[:, :num_slots]
    scores[:, clones] = np.where(is_active[:, clones], 1.0 - of_parents[:, :num_slots], 0.0)
    return normalize(scores, is_active), is_active


def begin_histories(history: np.ndarray, is_active: np.ndarray, num_examples: np.ndarray, num_slots: int) -> np.ndarray:
    """The histories after a milestone where a clone begins with the complement of its parent's latest accuracy.

    Args:
      history: see `scores.record_evaluation`.
      is_active: before the milestone, shape (clients, capacity), False from slot `num_slots` on.
      num_examples: validation examples of each client, shape (clients,).
      num_slots: M, the slots given out so far.
    """
    latest = history[:, :num_slots, -1]
    is_known = is_active[:, :num_slots] & (latest != NOT_EVALUATED)
    history = history.copy()
    history[:, num_slots : 2 * num_slots, -1] = np.where(is_known, num_examples[:, np.newaxis] - latest, NOT_EVALUATED)
    return history


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
