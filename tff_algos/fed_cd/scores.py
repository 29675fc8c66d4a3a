"""FedCD's scores: what a device thinks of its models, Eqs. (2) and (3). NumPy only.

Evaluations are stored as counts of correct examples, so that models with equal accuracies have equal scores to the last
bit, whatever the order of their evaluations, and ties are ties. Where an example is not just right or wrong, they are
sums of the examples' scores, each in [0, 1] (`models.task.Task.compute_scores`), and their mean is the accuracy here.
"""

import numpy as np

NOT_EVALUATED = -1


def record_evaluation(history: np.ndarray, num_correct: np.ndarray, is_active: np.ndarray) -> np.ndarray:
    """The history with one more evaluation, the newest last, and without the oldest.

    Args:
      history: correct examples by evaluation, `NOT_EVALUATED` where there was none, int64 (or float64, sums of scores),
        shape (clients, capacity, evaluations).
      num_correct: of this evaluation, in the same dtype, shape (clients, capacity).
      is_active: the models that were evaluated, shape (clients, capacity).
    """
    newest = np.where(is_active, num_correct, NOT_EVALUATED)
    return np.concatenate([history[..., 1:], newest[..., np.newaxis]], axis=-1)


def forget(history: np.ndarray, is_active: np.ndarray) -> np.ndarray:
    """The history, emptied for models that a client does not have, or no longer has."""
    return np.where(is_active[..., np.newaxis], history, NOT_EVALUATED)


def keep_latest(history: np.ndarray) -> np.ndarray:
    """The history with the latest evaluation alone."""
    return np.where(np.arange(history.shape[-1]) == history.shape[-1] - 1, history, NOT_EVALUATED)


def compute_mean_accuracy(history: np.ndarray, num_examples: np.ndarray, short_history: str = "mean") -> np.ndarray:
    """Eq. (2): the mean of the accuracies that the history holds; 0 if it holds none, or without examples.

    Args:
      history: see `record_evaluation`.
      num_examples: validation examples of each client, shape (clients,).
      short_history: where the history is not full, the "mean" of what it holds, or the "latest" evaluation.

    Returns:
      float64, shape (clients, capacity).
    """
    if short_history == "latest":
        is_full = (history != NOT_EVALUATED).all(axis=-1, keepdims=True)
        history = np.where(is_full, history, keep_latest(history))
    is_there = history != NOT_EVALUATED
    # Correct examples are summed before the one division, so that equal accuracies stay equal to the last bit.
    totals = np.where(is_there, history, 0).sum(axis=-1)
    asked = is_there.sum(axis=-1) * num_examples[:, np.newaxis]
    return np.divide(totals, asked, out=np.zeros(totals.shape), where=asked > 0)


def normalize(values: np.ndarray, is_active: np.ndarray) -> np.ndarray:
    """Eq. (3): the values of a client's active models divided by their sum, equal if that is 0; 0 for all others.

    Args:
      values: at least 0, float64, shape (clients, capacity).
      is_active: shape (clients, capacity).
    """
    of_active = np.where(is_active, values, 0.0)
    sums = of_active.sum(axis=1, keepdims=True)
    equal = is_active / np.maximum(is_active.sum(axis=1, keepdims=True), 1)
    return np.where(sums > 0, np.divide(of_active, sums, out=np.zeros(of_active.shape), where=sums > 0), equal)


def add_noise(scores: np.ndarray, deviation: float, generator: np.random.Generator) -> np.ndarray:
    """The scores as they are sent: with Gaussian noise, floored at 0."""
    return np.maximum(scores + generator.normal(0.0, deviation, scores.shape), 0.0)


def compute_aggregation_weights(sent: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Eq. (1): the weight of each update in the mean of its model; equal if all scores sent for a model are 0.

    Args:
      sent: scores, shape (updates,).
      slots: the model that each is for, shape (updates,).

    Returns:
      float64, shape (updates,); they need not sum to 1.
    """
    if not len(slots):
        return sent
    sums = np.bincount(slots, sent)
    return np.where(sums[slots] > 0, sent, 1.0)


def find_best(scores: np.ndarray, can_be_best: np.ndarray) -> np.ndarray:
    """The slot with the highest score of each client, ties to the lowest slot; int64, shape (clients,).

    Args:
      scores: shape (clients, capacity).
      can_be_best: the slots to choose from, one or more a client, shape (clients, capacity).
    """
    # No score is negative.
    return np.where(can_be_best, scores, -1.0).argmax(axis=1)


def compute_score_means(scores: np.ndarray, is_active: np.ndarray) -> np.ndarray:
    """Mean of each client's scores over its active models, float64, shape (clients,)."""
    counts = np.maximum(is_active.sum(axis=1), 1)
    return np.where(is_active, scores, 0.0).sum(axis=1) / counts


def compute_score_deviations(scores: np.ndarray, is_active: np.ndarray) -> np.ndarray:
    """Population standard deviation of each client's scores over its active models, float64, shape (clients,)."""
    counts = np.maximum(is_active.sum(axis=1), 1)
    means = compute_score_means(scores, is_active)
    squares = np.where(is_active, np.square(scores - means[:, np.newaxis]), 0.0)
    return np.sqrt(squares.sum(axis=1) / counts)
