"""FL+HC's clustering of the clients (Briggs et al. 2020, Algorithm 1): agglomerative, on their weight updates."""

import numpy as np

from tff_algos.rounds.clustered import number_by_first_appearance

# Parameters compared at a time: a float64 block of 40 clients (1.3 MB) stays in the cache.
BLOCK_PARAMETERS = 4096


def cluster_updates(
    updates: np.ndarray, distance_threshold: float, num_clusters: int, distance_multiple: float = 0.0
) -> np.ndarray:
    """Clusters clients whose updates are close: average linkage, Euclidean distance.

    Args:
      updates: flattened weight updates, trained minus initial, float32, shape (clients, parameters), at least one
        client.
      distance_threshold: above 0, clusters merge while their average distance is at most this; 0 cuts the tree at
        `num_clusters` instead.
      num_clusters: number of clusters if the threshold is 0: exactly `min(num_clusters, clients)`, ties or not.
      distance_multiple: above 0, the threshold is this times the median distance between two clients' updates,
        whatever the other two say.

    Returns:
      Cluster of each client, int32, shape (clients,), 0, 1, ... in order of first appearance.

    Raises:
      ValueError: an update is not finite.
    """
    from scipy.cluster import hierarchy  # here, since the other algorithms do without it

    if len(updates) == 1:
        return np.zeros(1, np.int32)
    distances = pairwise_distances(updates)
    if not np.isfinite(distances).all():
        raise ValueError("updates hold NaN or infinity: expected finite updates; leave out the clients that diverged")
    tree = hierarchy.linkage(distances, method="average")
    if distance_multiple > 0:
        # If most updates are alike, the median is 0, and only equal updates share a cluster.
        labels = hierarchy.fcluster(tree, distance_multiple * np.median(distances), criterion="distance")
    elif distance_threshold > 0:
        labels = hierarchy.fcluster(tree, distance_threshold, criterion="distance")
    else:
        labels = hierarchy.cut_tree(tree, n_clusters=min(num_clusters, len(updates)))[:, 0]
    return number_by_first_appearance(labels)


def pairwise_distances(updates: np.ndarray) -> np.ndarray:
    """Euclidean distances of all pairs of rows, accumulated in float64, block by block.

    Args:
      updates: shape (clients, parameters), any float dtype; only a block of it at a time is copied to float64.

    Returns:
      float64, shape (clients * (clients - 1) / 2,), pairs in the order (0, 1), (0, 2), ..., (1, 2), ...; the square
      matrix is `scipy.spatial.distance.squareform` of it.
    """
    from scipy.spatial import distance

    num_clients, num_parameters = updates.shape
    squared = np.zeros(num_clients * (num_clients - 1) // 2)
    for start in range(0, num_parameters, BLOCK_PARAMETERS):
        block = updates[:, start : start + BLOCK_PARAMETERS].astype(np.float64)
        squared += distance.pdist(block, "sqeuclidean")
    return np.sqrt(squared)
