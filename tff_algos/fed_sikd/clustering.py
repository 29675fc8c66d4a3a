"""FedSiKD's clustering of the clients, Eq. (2): k-means on their statistics, k fixed or chosen by three indices.

Also the random clusters of the baseline RandomCluster, and the choice of each cluster's leader. Every clustering here
has clusters 0..k-1 in order of first appearance, none of them empty.
"""

import math
from typing import NamedTuple

import numpy as np

from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.statistics import standardize
from tff_algos.rounds.clustered import number_by_first_appearance

KMEANS_RESTARTS = 10
# The silhouette takes the square of the clients, so that of more it is the mean over a random part of them.
MOST_FOR_SILHOUETTE = 5000

# Standardised statistics that agree to this many decimals count as equal, so that rounding errors split no clients.
DECIMALS = 9


class Clustering(NamedTuple):
    """Clusters of clients and three indices of their quality, NaN where undefined.

    Attributes:
      assignments: cluster of each client, int32, shape (clients,), values 0..num_clusters-1.
      num_clusters: k.
      silhouette: mean silhouette coefficient, in [-1, 1], larger is better; undefined for k = 1 and k = clients.
      calinski_harabasz: dispersion between over within clusters, larger is better; undefined for k = 1, k = clients,
        and where the clients of each cluster are identical (division by 0).
      davies_bouldin: mean similarity of a cluster and its most similar one, at least 0, smaller is better; undefined
        for k = 1 and k = clients.
    """

    assignments: np.ndarray
    num_clusters: int
    silhouette: float = math.nan
    calinski_harabasz: float = math.nan
    davies_bouldin: float = math.nan


def cluster_clients(statistics: np.ndarray | None, num_clients: int, config: FedSiKDConfig, seed: int) -> Clustering:
    """The clusters of a run, as its settings ask for them.

    Args:
      statistics: of the clients, finite, shape (clients, columns); None if they share none.
      num_clients: of the federation.
      config: settings.
      seed: the run's.
    """
    if statistics is None:
        return cluster_at_random(num_clients, config.num_clusters, seed)
    found = cluster_by_statistics(standardize(statistics), config.num_clusters, config.max_clusters, seed)
    return draw_members(found, seed) if config.clustering == "random" else found


def cluster_by_statistics(standardized: np.ndarray, num_clusters: int, max_clusters: int, seed: int) -> Clustering:
    """Clusters the clients by k-means (k-means++, 10 restarts), Eq. (2).

    There are never more clusters than distinct rows. When the indices choose among 2..`max_clusters`, only a k below
    the number of clients is a candidate (the indices are undefined at k = clients); without candidates k is 1.

    Args:
      standardized: statistics of the clients (`statistics.standardize`), at least one, shape (clients, columns).
      num_clusters: k, or 0 to choose it by the three indices (`choose_by_majority`).
      max_clusters: largest k to choose, at least 2.
      seed: at least 0; the result is a pure function of it and the rows.
    """
    points = np.round(np.asarray(standardized, np.float64), DECIMALS) + 0.0  # + 0.0 turns -0.0 into 0.0
    num_distinct = len(np.unique(points, axis=0))
    if num_clusters > 0:
        return _run_kmeans(points, min(num_clusters, num_distinct), num_distinct, seed)
    largest = min(max_clusters, num_distinct, len(points) - 1)
    candidates = [_run_kmeans(points, k, num_distinct, seed) for k in range(2, largest + 1)]
    return choose_by_majority(candidates) if candidates else _run_kmeans(points, 1, num_distinct, seed)


def choose_by_majority(candidates: list[Clustering]) -> Clustering:
    """The clustering that at least two of the three indices prefer, or the silhouette's if all differ.

    Within an index, ties go to the first candidate, so give them by ascending k. The silhouette and Davies-Bouldin must
    be defined; an undefined Calinski-Harabasz (clusters of identical clients) counts as infinite, the best.
    """
    separations = [math.inf if math.isnan(c.calinski_harabasz) else c.calinski_harabasz for c in candidates]
    by_silhouette = int(np.argmax([candidate.silhouette for candidate in candidates]))
    by_calinski_harabasz = int(np.argmax(separations))
    by_davies_bouldin = int(np.argmin([candidate.davies_bouldin for candidate in candidates]))
    others_agree = by_calinski_harabasz == by_davies_bouldin
    return candidates[by_calinski_harabasz if others_agree else by_silhouette]


def draw_members(clustering: Clustering, seed: int) -> Clustering:
    """Random clusters for RandomCluster with the sizes of a clustering: the same labels, dealt to shuffled clients.

    A comparison of the two then shows what the members make, not the sizes. The indices are NaN: those of the
    clustering say nothing about the members drawn.
    """
    shuffled = np.random.default_rng(seed).permutation(clustering.assignments)
    return Clustering(number_by_first_appearance(shuffled), clustering.num_clusters)


def cluster_at_random(num_clients: int, num_clusters: int, seed: int) -> Clustering:
    """Random clusters of equal sizes for RandomCluster: the clients, shuffled, are dealt to the clusters one by one.

    So sizes differ by at most one, and no cluster is empty; there are `min(num_clusters, num_clients)` clusters. The
    paper does not say how it draws them. The indices are NaN, since there are no statistics to compute them from.
    """
    num_clusters = min(num_clusters, num_clients)
    dealt = np.random.default_rng(seed).permutation(num_clients) % num_clusters
    return Clustering(number_by_first_appearance(dealt), num_clusters)


def choose_leaders(assignments: np.ndarray, num_train: np.ndarray, examples_per_s: np.ndarray, by: str) -> np.ndarray:
    """The client that leads each cluster: the one with the most examples, or the fastest device.

    Args:
      assignments: cluster of each client, shape (clients,), values 0..k-1, none missing.
      num_train: train examples of each client.
      examples_per_s: training speed of each client's device.
      by: 'examples' or 'speed'; ties go to the client with the lowest index.

    Returns:
      Client indices, int32, shape (k,).
    """
    merit = np.asarray(num_train if by == "examples" else examples_per_s, np.float64)
    num_clusters = int(np.max(assignments)) + 1
    merit_by_cluster = np.where(assignments == np.arange(num_clusters)[:, np.newaxis], merit, -np.inf)
    return merit_by_cluster.argmax(axis=1).astype(np.int32)


def choose_for_silhouette(assignments: np.ndarray, seed: int, most: int = MOST_FOR_SILHOUETTE) -> np.ndarray:
    """Ascending indices of all clients or, if there are more than `most`, of so many drawn ones.

    The first client of each cluster is among them, too, since a cluster without any would not count.
    """
    if len(assignments) <= most:
        return np.arange(len(assignments))
    _, first = np.unique(assignments, return_index=True)
    return np.union1d(first, np.random.default_rng(seed).choice(len(assignments), most, replace=False))


def _run_kmeans(points: np.ndarray, num_clusters: int, num_distinct: int, seed: int) -> Clustering:
    """k-means with at most `num_distinct` clusters, and the indices of its result."""
    # Here, since random clusters of equal sizes do without it.
    from sklearn import cluster, metrics

    # A plain RandomState takes no seed beyond 32 bits.
    random_state = np.random.RandomState(np.random.MT19937(seed))
    kmeans = cluster.KMeans(num_clusters, init="k-means++", n_init=KMEANS_RESTARTS, random_state=random_state)
    assignments = number_by_first_appearance(kmeans.fit_predict(points))
    if not 1 < num_clusters < len(points):
        return Clustering(assignments, num_clusters)
    is_exact = num_clusters == num_distinct
    seen = choose_for_silhouette(assignments, seed)
    return Clustering(
        assignments,
        num_clusters,
        silhouette=float(metrics.silhouette_score(points[seen], assignments[seen])),
        calinski_harabasz=math.nan if is_exact else float(metrics.calinski_harabasz_score(points, assignments)),
        davies_bouldin=float(metrics.davies_bouldin_score(points, assignments)),
    )
