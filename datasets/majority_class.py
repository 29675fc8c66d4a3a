"""What "learned nothing" means where each example has one class: the accuracies of always giving the most frequent one.

A client's own majority class is that of its train split; the overall one is that of all train examples of the clients
that train. Of equally frequent classes the lowest is given.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from datasets.federated_data import ClientFiles, FederatedData


class MajorityAccuracies(NamedTuple):
    """Accuracies, 0..1, of one answer for all examples.

    Attributes:
      own: of each client's own majority class on its test split, new clients last; float64, shape (clients,), NaN
        without a test split and for those that were not asked for.
      overall: of the overall majority class on the same splits, shape (clients,).
      on_test_set: of the overall majority class on the global test set; NaN if that is empty.
    """

    own: np.ndarray
    overall: np.ndarray
    on_test_set: float


def compute_majority_accuracies(
    data: FederatedData, clients: Sequence[ClientFiles] | None = None
) -> MajorityAccuracies:
    """The accuracies of the majority classes, from the labels alone.

    Args:
      data: a federation whose labels are classes.
      clients: whose splits are read, new clients may be among them; None: everyone's. Where the federation has not
        counted its labels, since it has too many clients, the overall majority class is that of these clients.
    """
    asked = data.everyone if clients is None else clients
    train = {
        client.index: np.bincount(data.read_labels(client, "train"), minlength=data.format.num_classes)
        for client in asked
    }
    counts = data.label_counts
    if not counts.shape[1]:
        counts = np.array([own for index, own in train.items() if index < len(data.clients)])
    of_all = counts.sum(axis=0).argmax()
    own, overall = np.full(len(data.everyone), np.nan), np.full(len(data.everyone), np.nan)
    for client in asked:
        if client.num_test:
            y = data.read_labels(client, "test")
            own[client.index] = np.mean(y == train[client.index].argmax())
            overall[client.index] = np.mean(y == of_all)
    return MajorityAccuracies(own, overall, float(np.mean(data.test_y == of_all)) if len(data.test_y) else float("nan"))
