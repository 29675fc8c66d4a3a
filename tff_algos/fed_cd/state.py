"""The state of FedCD's server, and what can be read from it or is done to it without training. NumPy only.

At a milestone the clone of the model in slot m goes to slot M + m. Which models a device deletes is by Eq. (4) or what
the authors' code has in its place, then by the rule for the last two.
"""

from typing import Any, NamedTuple

import numpy as np

from tff_algos.fed_cd.config import COHORT, FedCDConfig
from tff_algos.fed_cd.scores import (
    NOT_EVALUATED,
    compute_mean_accuracy,
    compute_score_deviations,
    compute_score_means,
    find_best,
    forget,
    keep_latest,
    normalize,
    record_evaluation,
)
from tff_algos.protocol import Weights


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
    slots, cloned = np.flatnonzero(parents >= 0), tuple(array.copy() for array in models)
    for array, source in zip(cloned, sources, strict=True):
        array[slots] = source[parents[slots]]
    return cloned


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


NEVER = -1


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      models: stacked along axis 0, a row for each slot. A slot without a model holds zeros, apart from the ranges that
        `--qat_start_round` puts there.
      scores: c of each client and slot, 0 for models that it does not have, float64, shape (clients, capacity).
      history: see `scores.record_evaluation`.
      is_active: which models each client has, bool, shape (clients, capacity).
      was_active: the same before the last round.
      parents: the slot that the model in each slot was cloned from, -1 for none, int32, shape (capacity,).
      birth_rounds: the round after which each slot got its model, -1 for never, int32, shape (capacity,).
      trained_rounds: rounds in which the model in each slot got an average, int32, shape (capacity,); empty where
        clones share the round's learning rate, so that checkpoints of earlier versions fit.
      evaluated_rounds: the round after which each client evaluated last, 0 for never, int32, shape (clients,); empty
        where all do so in every round.
      aggregator: of the aggregator; a row for each slot where it has rows.
      server: of the server's step, likewise.
      kept: what the clients keep, see `ClientStore`; nothing.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    models: Weights
    scores: np.ndarray
    history: np.ndarray
    is_active: np.ndarray
    was_active: np.ndarray
    parents: np.ndarray
    birth_rounds: np.ndarray
    trained_rounds: np.ndarray | tuple[()] = ()
    evaluated_rounds: np.ndarray | tuple[()] = ()
    aggregator: Any = ()
    server: Any = ()
    kept: Any = ()


def build_first_state(
    weights: Weights, num_clients: int, config: FedCDConfig, parts: dict[str, Any], history_dtype: type
) -> ServerState:
    """Before the first round: every client has the model in slot 0, with score 1.

    Args:
      weights: of that model.
      num_clients: of the federation.
      config: settings.
      parts: the fields `aggregator`, `server` and `kept`.
      history_dtype: of the evaluations.
    """
    capacity = config.capacity
    rows = tuple(np.zeros((capacity, *array.shape), array.dtype) for array in weights)
    for row, array in zip(rows, weights, strict=True):
        row[0] = array
    is_first = np.arange(capacity) == 0
    is_active = np.tile(is_first, (num_clients, 1))
    return ServerState(
        round_num=np.int32(0),
        virtual_time_s=np.float64(0.0),
        models=rows,
        scores=is_active.astype(np.float64),
        history=np.full((*is_active.shape, config.score_rounds), NOT_EVALUATED, history_dtype),
        is_active=is_active,
        was_active=is_active.copy(),
        parents=np.full(capacity, -1, np.int32),
        birth_rounds=np.where(is_first, 0, NEVER).astype(np.int32),
        trained_rounds=np.zeros(capacity, np.int32) if config.clone_schedule == "anew" else (),
        evaluated_rounds=np.zeros(num_clients, np.int32) if config.evaluated_devices == COHORT else (),
        **parts,
    )


def find_preferred(state: ServerState) -> np.ndarray:
    """The slot of each client's best model: the highest score, ties to the lowest slot; int64, shape (clients,).

    A clone counts from its first evaluation on.
    """
    last = state.round_num if isinstance(state.evaluated_rounds, tuple) else state.evaluated_rounds[:, np.newaxis]
    is_evaluated = (state.birth_rounds < last) | (state.birth_rounds == 0)
    return find_best(state.scores, state.is_active & is_evaluated)


def find_live(state: ServerState) -> np.ndarray:
    """Slots whose model at least one client has, ascending."""
    return np.flatnonzero(state.is_active.any(axis=0))


def clear_other_slots(stacked: Weights, is_left: np.ndarray) -> Weights:
    """Arrays stacked by slot, with zeros in all slots but some; `is_left` is bool, shape (capacity,)."""
    return tuple(
        np.where(is_left.reshape(-1, *[1] * (array.ndim - 1)), array, np.zeros((), array.dtype)) for array in stacked
    )


def score_models(
    state: ServerState,
    num_correct: np.ndarray,
    num_validation: np.ndarray,
    config: FedCDConfig,
    is_evaluating: np.ndarray,
) -> ServerState:
    """Step 3, after the evaluation.

    Args:
      state: with the models that were evaluated.
      num_correct: examples that each client's models classify correctly, int64, shape (clients, capacity).
      num_validation: validation examples of each client, int64, shape (clients,).
      config: settings.
      is_evaluating: which clients have evaluated, bool, shape (clients,); the others' scores stay.
    """
    history = record_evaluation(state.history, num_correct, state.is_active)
    history = np.where(is_evaluating[:, np.newaxis, np.newaxis], history, state.history)
    accuracy = compute_mean_accuracy(history, num_validation, config.short_history)
    scores = np.where(is_evaluating[:, np.newaxis], normalize(accuracy, state.is_active), state.scores)
    if config.evaluated_devices == COHORT:
        rounds = np.where(is_evaluating, state.round_num, state.evaluated_rounds).astype(np.int32)
        state = state._replace(evaluated_rounds=rounds)
    return state._replace(history=history, scores=scores)


def delete_models(state: ServerState, config: FedCDConfig, is_evaluating: np.ndarray) -> ServerState:
    """Step 4, on the devices that have evaluated and on the server; `state.round_num` is the round that is being done.

    With private updates the server keeps all models: that nobody has one is known from the devices' data.
    """
    scores, is_active = delete_on_devices(state.scores, state.is_active, int(state.round_num), config)
    decides = is_evaluating[:, np.newaxis]
    scores, is_active = np.where(decides, scores, state.scores), np.where(decides, is_active, state.is_active)
    if config.privacy.is_active:
        return state._replace(scores=scores, history=forget(state.history, is_active), is_active=is_active)
    models = clear_other_slots(state.models, is_active.any(axis=0))
    history = forget(state.history, is_active)
    return state._replace(models=models, scores=scores, history=history, is_active=is_active)


def clone_all(state: ServerState, received: Weights, num_validation: np.ndarray, config: FedCDConfig) -> ServerState:
    """Step 5; `state.round_num` is the round that is being done.

    Args:
      state: after the deletions.
      received: the models as the clients have them, stacked.
      num_validation: validation examples of each client, int64, shape (clients,).
      config: settings.
    """
    num_slots = config.count_slots(int(state.round_num))
    scores, of_parents, history = state.scores, None, state.history
    if config.clone_score == "complement_of_accuracy":
        # Accuracies beside accuracies: clones and parents are normalized together.
        scores = compute_mean_accuracy(history, num_validation, config.short_history)
        of_parents = compute_mean_accuracy(keep_latest(history), num_validation)
    if config.clone_history == "complement":
        history = begin_histories(history, state.is_active, num_validation, num_slots)
    scores, is_active = clone_scores(scores, state.is_active, num_slots, of_parents)
    slots = np.arange(config.capacity)
    is_clone = (slots >= num_slots) & (slots < 2 * num_slots)
    # The slot of a model that nobody has is empty, and so is that of its clone.
    if not config.privacy.is_active:
        is_clone &= is_active.any(axis=0)
    sources = np.where(is_clone, slots - num_slots, -1)
    return state._replace(
        models=clone_models(state.models, received, sources),
        scores=scores,
        history=history,
        is_active=is_active,
        parents=np.where(is_clone, sources, state.parents).astype(np.int32),
        birth_rounds=np.where(is_clone, state.round_num, state.birth_rounds).astype(np.int32),
    )


def find_sources(state: ServerState) -> np.ndarray:
    """For each slot the one that what it has comes from: its parent's after a milestone that filled it, or its own.

    Int64, shape (capacity,); `state.round_num` is the round that is being done.
    """
    is_new = state.birth_rounds == state.round_num
    return np.where(is_new, state.parents, np.arange(len(is_new)))


def find_released(state: ServerState, config: FedCDConfig) -> np.ndarray:
    """Slots whose model the server gives out after a round, ascending: the live ones, or all with private updates."""
    if config.privacy.is_active:
        return np.arange(config.count_slots(int(state.round_num) + 1))
    return find_live(state)
