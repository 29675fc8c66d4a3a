"""The state of FedCD's server, and what can be read from it or is done to it without training. NumPy only."""

from typing import Any, NamedTuple

import numpy as np

from tff_algos.fed_cd.cloning import begin_histories, clone_models, clone_scores
from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.fed_cd.deletion import delete_on_devices
from tff_algos.fed_cd.scores import (
    NOT_EVALUATED,
    compute_mean_accuracy,
    compute_score_deviations,
    find_best,
    forget,
    keep_latest,
    normalize,
    record_evaluation,
)
from tff_algos.protocol import Weights

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
        **parts,
    )


def find_preferred(state: ServerState) -> np.ndarray:
    """The slot of each client's best model: the highest score, ties to the lowest slot; int64, shape (clients,).

    A clone counts from its first evaluation on.
    """
    is_evaluated = (state.birth_rounds < state.round_num) | (state.birth_rounds == 0)
    return find_best(state.scores, state.is_active & is_evaluated)


def find_live(state: ServerState) -> np.ndarray:
    """Slots whose model at least one client has, ascending."""
    return np.flatnonzero(state.is_active.any(axis=0))


def keep_slots(stacked: Weights, is_kept: np.ndarray) -> Weights:
    """Arrays stacked by slot, with zeros in the slots that are not kept; `is_kept` is bool, shape (capacity,)."""
    return tuple(
        np.where(is_kept.reshape(-1, *[1] * (array.ndim - 1)), array, np.zeros((), array.dtype)) for array in stacked
    )


def score_models(
    state: ServerState, num_correct: np.ndarray, num_validation: np.ndarray, config: FedCDConfig
) -> ServerState:
    """Step 3, after the evaluation.

    Args:
      state: with the models that were evaluated.
      num_correct: examples that each client's models classify correctly, int64, shape (clients, capacity).
      num_validation: validation examples of each client, int64, shape (clients,).
      config: settings.
    """
    history = record_evaluation(state.history, num_correct, state.is_active)
    accuracy = compute_mean_accuracy(history, num_validation, config.short_history)
    return state._replace(history=history, scores=normalize(accuracy, state.is_active))


def delete_models(state: ServerState, config: FedCDConfig) -> ServerState:
    """Step 4, on the devices and on the server; `state.round_num` is the round that is being done.

    With private updates the server keeps all models: that nobody has one is known from the devices' data.
    """
    scores, is_active = delete_on_devices(state.scores, state.is_active, int(state.round_num), config)
    if config.privacy.is_active:
        return state._replace(scores=scores, history=forget(state.history, is_active), is_active=is_active)
    models = keep_slots(state.models, is_active.any(axis=0))
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


def describe_models(state: ServerState) -> dict[str, float]:
    """The algorithm's own columns of metrics.csv, as they are at the end of a round."""
    num_active = state.is_active.sum(axis=1)
    return {
        "live_models": len(find_live(state)),
        "active_models": int(num_active.sum()),
        "max_active_models": int(num_active.max()),
        "preferred_models": len(np.unique(find_preferred(state))),
        "score_deviation": float(compute_score_deviations(state.scores, state.is_active).mean()),
    }


def summarize_models(state: ServerState, num_slots: int) -> dict:
    """How many models were made and deleted; for each live one its parent, birth round, and clients.

    Args:
      state: after a round.
      num_slots: that have been given to models so far.
    """
    preferred, live = find_preferred(state), find_live(state)
    models = {
        f"model_{slot}": {
            "parent": int(state.parents[slot]),
            "birth_round": int(state.birth_rounds[slot]),
            "clients": int(state.is_active[:, slot].sum()),
            "preferred_by": int(np.sum(preferred == slot)),
        }
        for slot in live
    }
    return {"num_models_made": num_slots, "num_models_deleted": num_slots - len(live), "models": models}


def list_events(state: ServerState) -> list[tuple[float, int, str, int]]:
    """Who deleted and cloned which model in the last round, and which one each client prefers after it."""
    time_s, rows = float(state.virtual_time_s), []
    deleted, cloned = state.was_active & ~state.is_active, state.is_active & ~state.was_active
    for what, mask in (("deleted", deleted), ("cloned", cloned)):
        rows += [(time_s, int(client), what, int(slot)) for client, slot in np.argwhere(mask)]
    return rows + [(time_s, client, "prefers", int(slot)) for client, slot in enumerate(find_preferred(state))]
