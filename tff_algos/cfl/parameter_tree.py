"""CFL's parameter tree: what the server keeps of each cut, by which clients that come later find their cluster.

CFL's maths (Sattler, Müller and Samek 2020): when a cluster has converged, and how it is cut into two.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tff_algos.protocol import Weights
from tff_algos.weights import is_float


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


class ParameterTree(NamedTuple):
    """The cuts so far, a row each, in order; cut s made cluster s + 1 of the second part of a cluster.

    Attributes:
      clusters: that were cut, int32, shape (cuts,).
      rounds: after which, int32, shape (cuts,).
      models: whose updates the cut was found by, stacked along axis 0.
      directions: of the updates in both parts, means of length 1, float32, shape (cuts, 2, parameters).
      largest: norm of the mean update that each cluster, or what it was cut from, has had, float64, shape (clusters,).
    """

    clusters: np.ndarray
    rounds: np.ndarray
    models: Weights
    directions: np.ndarray
    largest: np.ndarray

    def grow(
        self, cluster: int, round_num: int, model: Weights, updates: np.ndarray, is_second: np.ndarray
    ) -> "ParameterTree":
        """The tree with one more cut.

        Args:
          cluster: that is cut.
          round_num: 1-based.
          model: the cluster's before the round.
          updates: float32, shape (clients, parameters).
          is_second: which of them are in the second part, bool, shape (clients,).
        """
        units = normalize(updates)
        directions = normalize(np.stack([units[~is_second].mean(axis=0), units[is_second].mean(axis=0)]))
        return ParameterTree(
            np.append(self.clusters, np.int32(cluster)),
            np.append(self.rounds, np.int32(round_num)),
            tuple(np.append(rows, array[np.newaxis], 0) for rows, array in zip(self.models, model, strict=True)),
            np.append(self.directions, directions[np.newaxis], 0),
            np.append(self.largest, self.largest[cluster]),
        )

    def descend(self, num_clients: int, train: Callable[[int, np.ndarray], np.ndarray]) -> np.ndarray:
        """The cluster of each of so many clients that are not in the tree, int32, shape (clients,).

        At each cut of its cluster, a client goes with the part whose direction its own update is more like, the first
        if it is like both.

        Args:
          num_clients: that come.
          train: (cut, which of the clients) -> their updates of that cut's model, shape (these clients, parameters).
        """
        found = np.zeros(num_clients, np.int32)
        for cut, cluster in enumerate(self.clusters):
            here = np.flatnonzero(found == cluster)
            if here.size:
                cosines = normalize(train(cut, here)) @ self.directions[cut].T
                found[here[cosines[:, 1] > cosines[:, 0]]] = cut + 1
        return found


def plant(model: Weights) -> ParameterTree:
    """The tree before any cut, for models of these shapes."""
    none, num_parameters = np.zeros(0, np.int32), sum(array.size for array in model if is_float(array))
    models = tuple(np.zeros((0, *array.shape), array.dtype) for array in model)
    return ParameterTree(none, none, models, np.zeros((0, 2, num_parameters), np.float32), np.zeros(1))
