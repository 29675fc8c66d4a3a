"""CFL's maths (Sattler, Müller and Samek 2020): when a cluster has converged, and how it is cut into two."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Bipartition(NamedTuple):
    """A cluster cut into two.

    Attributes:
      is_second: whether each client is in the second part, bool, shape (clients,); the first client never is.
      cross_similarity: the largest cosine of two clients of different parts, alpha_cross^max.
    """

    is_second: np.ndarray
    cross_similarity: float

    @property
    def gap(self) -> float:
        """sqrt((1 - alpha_cross^max) / 2), which must exceed gamma_max: 0 of equal directions, 1 of opposite ones."""
        return float(np.sqrt(max(1 - self.cross_similarity, 0) / 2))


def bipartition(updates: np.ndarray, linkage: str = "single") -> Bipartition:
    """The cut whose parts' most similar clients are as unlike as can be.

    The parts that minimise the largest cosine across are what is left when clients are merged by falling cosine until
    there are two parts, which is agglomerative clustering with single linkage. (The authors' code has complete linkage,
    which makes parts of like sizes, but not the least cosine across.)

    Args:
      updates: float32, shape (clients, parameters), at least two, all finite.
      linkage: "single" or "complete".
    """
    from scipy.cluster import hierarchy  # here, since the other algorithms do without it
    from scipy.spatial.distance import squareform

    units = normalize(updates)
    cosines = (units @ units.T).astype(np.float64)
    np.fill_diagonal(cosines, 1)
    tree = hierarchy.linkage(squareform(1 - cosines, checks=False), linkage)
    labels = hierarchy.cut_tree(tree, n_clusters=2)[:, 0]
    is_second = labels != labels[0]
    return Bipartition(is_second, float(cosines[~is_second][:, is_second].max()))


def normalize(updates: np.ndarray) -> np.ndarray:
    """Each row divided by its norm; a row of zeros stays."""
    norms = np.linalg.norm(updates, axis=1, keepdims=True)
    return np.divide(updates, norms, out=np.zeros_like(updates), where=norms > 0)


def compute_norms(stacked: Sequence[np.ndarray]) -> np.ndarray:
    """The norm of each of some updates, whose arrays are stacked along axis 0; float64, shape (updates,)."""
    rows = [np.asarray(array, np.float64).reshape(len(array), -1) for array in stacked]
    return np.linalg.norm(np.concatenate(rows, axis=1), axis=1)
