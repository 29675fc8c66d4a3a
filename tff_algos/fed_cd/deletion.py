"""Which models a device deletes: Eq. (4) or what the authors' code has in its place, then the rule for the last two.

NumPy only.
"""

import numpy as np

from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.fed_cd.scores import compute_score_deviations, compute_score_means, normalize

ROUNDING = 1e-9  # relative error within which two numbers count as equal


def rank_models(scores: np.ndarray, is_active: np.ndarray) -> np.ndarray:
    """Rank of each client's models by score, 0 the best, ties to the lower slot; inactive models come last.

    Returns:
      int64, shape (clients, capacity).
    """
    # -1 is below every score. The second argsort turns the slot of each rank into the rank of each slot.
    order = np.argsort(-np.where(is_active, scores, -1.0), axis=1, kind="stable")
    return np.argsort(order, axis=1, kind="stable")


def find_underperforming(
    scores: np.ndarray, is_active: np.ndarray, num_protected: int, rule: str = "below_best"
) -> np.ndarray:
    """Models whose score lies far below: by Eq. (4) at least a standard deviation below the client's highest.

    The `num_protected` best models of a client are never among them. If the deviation is 0, no model is.

    Args:
      scores: float64, shape (clients, capacity).
      is_active: shape (clients, capacity).
      num_protected: at least 1.

      rule: "below_best", Eq. (4), or "below_mean": more than a deviation below the mean of the client's scores.

    Returns:
      bool, shape (clients, capacity), active models only.
    """
    deviations = compute_score_deviations(scores, is_active)[:, np.newaxis]
    if rule == "below_mean":
        means = compute_score_means(scores, is_active)[:, np.newaxis]
        # Of two models, or of two pairs of equal ones, the lower lies just a deviation below: rounding must not decide.
        is_far_below = means - scores > deviations * (1 + ROUNDING)
    else:
        highest = np.where(is_active, scores, -np.inf).max(axis=1, keepdims=True)
        is_far_below = highest - scores >= deviations
    return is_active & (deviations > 0) & is_far_below & (rank_models(scores, is_active) >= num_protected)


def find_low_second(scores: np.ndarray, is_active: np.ndarray, low_score: float) -> np.ndarray:
    """The rule from `late_round` on: the lower model of a client with exactly two, if its score is at most `low_score`.

    Returns:
      bool, shape (clients, capacity).
    """
    has_two = is_active.sum(axis=1, keepdims=True) == 2
    return has_two & is_active & (rank_models(scores, is_active) == 1) & (scores <= low_score)


def delete_on_devices(
    scores: np.ndarray, is_active: np.ndarray, round_num: int, config: FedCDConfig
) -> tuple[np.ndarray, np.ndarray]:
    """The models that each client keeps after both rules: (scores, is_active)."""

    def settle(scores, is_active):
        return normalize(scores, is_active) if config.normalize_after_deletion else np.where(is_active, scores, 0.0)

    # The late rule looks at what Eq. (4) has left, with its scores as they are then.
    is_active = is_active & ~find_underperforming(scores, is_active, config.protected_models, config.deletion)
    scores = settle(scores, is_active)
    if round_num >= config.late_round:
        is_active = is_active & ~find_low_second(scores, is_active, config.late_score)
        scores = settle(scores, is_active)
    return scores, is_active
