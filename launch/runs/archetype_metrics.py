"""Columns of metrics.csv for clients of archetypes (FedCD, Figures 1, 2, 4, 5 and 7). Imports no TensorFlow."""

from collections.abc import Sequence

import numpy as np

from datasets.federated_data import Archetypes

CHANGE = "client_accuracy_change"
MIXED = "mixed_models"


def name_accuracy(archetype: int) -> str:
    """The column of an archetype's accuracy."""
    return f"archetype_{archetype}_accuracy"


def name_archetype_metrics(archetypes: Archetypes | None) -> tuple[str, ...]:
    """The columns in their order: change, mixed models, the accuracy of each archetype. None without archetypes."""
    if archetypes is None:
        return ()
    return (CHANGE, MIXED, *(name_accuracy(number) for number in range(len(archetypes.names))))


def compute_archetype_metrics(
    archetypes: Archetypes, models: Sequence[str], accuracy: np.ndarray, previous: np.ndarray | None
) -> dict[str, float | None]:
    """What each column of `name_archetype_metrics` holds after a round.

    The change is the mean over the clients of the absolute change of their accuracy. A model is mixed if clients of
    more than one meta-archetype use it. An archetype's accuracy is the mean over its clients.

    Args:
      archetypes: which client is of which; what is here of clients that took no part is left out.
      models: the name of each client's model.
      accuracy: of each client on its own test split, NaN without one, shape (clients,).
      previous: the same after the round before; None if that was not evaluated, and then the change is None, too.
    """
    of_clients = np.array(archetypes.of_clients)[: len(accuracy)]
    change = None if previous is None else _mean(np.abs(accuracy - previous))
    means = [_mean(accuracy[of_clients == number]) for number in range(len(archetypes.names))]
    values = [change, count_mixed(archetypes, models[: len(accuracy)]), *means]
    return dict(zip(name_archetype_metrics(archetypes), values, strict=True))


def count_mixed(archetypes: Archetypes, models: Sequence[str]) -> int:
    """How many models have clients of more than one meta-archetype; `models` are those of the first clients."""
    users: dict[str, set[int]] = {}
    for name, meta_archetype in zip(models, archetypes.meta_of_clients, strict=False):
        users.setdefault(name, set()).add(meta_archetype)
    return sum(len(meta_archetypes) > 1 for meta_archetypes in users.values())


def _mean(values: np.ndarray) -> float:
    """Mean over the values that are not NaN; NaN without any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
