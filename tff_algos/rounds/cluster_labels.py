"""The numbering of clusters that all algorithms share."""

import numpy as np


def number_by_first_appearance(labels: np.ndarray) -> np.ndarray:
    """Renames cluster labels to 0, 1, ... in the order of first appearance, int32, same shape."""
    _, first_clients, positions = np.unique(labels, return_index=True, return_inverse=True)
    return first_clients.argsort().argsort()[positions].astype(np.int32)


def count_clusters(assignments: np.ndarray) -> int:
    """How many clusters there are, given that they are numbered from 0 without gaps."""
    return int(assignments.max()) + 1
