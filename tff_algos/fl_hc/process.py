"""FL+HC: Briggs et al. 2020, "Federated learning with hierarchical clustering of local updates to improve training on
non-IID data", Algorithm 1; a baseline of FedSiKD.

The whole run; a round is step 1 or step 3:
1. The first `clustering_round` rounds are FedAvg with all clients.
2. At the start of the next round, each client trains the global model and sends its update; the server clusters the
   updates (agglomerative, average linkage, Euclidean) at a distance threshold or into a number of clusters.
3. From then on, that round included, FedAvg runs inside each cluster, independently. Each starts from the global model.

| paper | here |
|---|---|
| n | `clustering_round` |
| T, P (linkage), D (distance) | `distance_multiple` or `distance_threshold`, "average", Euclidean |
| Delta w_k | the rows that `cluster_updates` gets |
| w^c | rows of `ClusteredState.models` |

Before the clustering all clients belong to cluster 0, and there is one model. Limit case: one cluster is FedAvg.

Deviations from the paper:
- The exchange of step 2 is counted in the bytes and the time of the round that it opens.
- Every client takes part in every round (the paper samples a fraction inside each cluster).
- The scale of the distances depends on the model, so by default the threshold is a multiple of their median; a
  distance or a number of clusters can be given in its place.
"""

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.fl_hc.config import FLHCConfig
from tff_algos.protocol import ClientWork
from tff_algos.rounds.clustered import (
    ClusteredProcess,
    ClusteredState,
    count_clusters,
    number_by_first_appearance,
    stack_updates,
)
from tff_algos.rounds.synchronous import build_parts
from tff_algos.rounds.training_phase import SlotInput

# Parameters compared at a time: a float64 block of 40 clients (1.3 MB) stays in the cache.
BLOCK_PARAMETERS = 4096


def cluster_updates(
    updates: np.ndarray, distance_threshold: float, num_clusters: int, distance_multiple: float = 0.0
) -> np.ndarray:
    """Clusters clients whose updates are close: average linkage, Euclidean distance.

    Args:
      updates: flattened weight updates, trained minus initial, all finite, float32, shape (clients, parameters), at
        least one client.
      distance_threshold: above 0, clusters merge while their average distance is at most this; 0 cuts the tree at
        `num_clusters` instead.
      num_clusters: number of clusters if the threshold is 0: exactly `min(num_clusters, clients)`, ties or not.
      distance_multiple: above 0, the threshold is this times the median distance between two clients' updates,
        whatever the other two say.

    Returns:
      Cluster of each client, int32, shape (clients,), 0, 1, ... in order of first appearance.
    """
    from scipy.cluster import hierarchy  # here, since the other algorithms do without it

    if len(updates) == 1:
        return np.zeros(1, np.int32)
    distances = pairwise_distances(updates)
    tree = hierarchy.linkage(distances, method="average")
    if distance_multiple > 0:
        # If most updates are alike, the median is 0, and only equal updates share a cluster.
        labels = hierarchy.fcluster(tree, distance_multiple * np.median(distances), criterion="distance")
    elif distance_threshold > 0:
        labels = hierarchy.fcluster(tree, distance_threshold, criterion="distance")
    else:
        # `fcluster` would give fewer clusters where distances tie.
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


class FLHCProcess(ClusteredProcess):
    """FL+HC."""

    def prepare(self, state: ClusteredState, cohort: np.ndarray) -> tuple[ClusteredState, int]:
        """Step 2, once: the state with the clients in clusters, and how many updates were rejected.

        Every cluster gets a copy of the global model. Clients whose update is not finite have no say in the clustering;
        they join the largest cluster.
        """
        if not self.is_clustering(state):
            return state, 0
        inputs = [SlotInput(each.told) for each in self.invite(state, cohort, "clustering")]
        updates = [each.update for each in self.phase.collect(state.models, inputs, ())]
        results = [update.result for update in self.phase.forge(updates, inputs)]
        is_finite = np.array([bool(result.is_finite) for result in results])
        assignments = np.zeros(len(cohort), np.int32)
        if is_finite.any():
            updates = stack_updates(results)
            cuts = self.config.distance_threshold, self.config.num_clusters, self.config.distance_multiple
            found = cluster_updates(updates[is_finite], *cuts)
            assignments[is_finite], assignments[~is_finite] = found, np.bincount(found).argmax()
        clustered = self.continue_clusters(state, [0] * count_clusters(assignments), assignments)
        return clustered, int(np.sum(~is_finite))

    def is_clustering(self, state: ClusteredState) -> bool:
        """Whether the next round begins with step 2."""
        return state.round_num == self.config.clustering_round

    def list_phases(self, state: ClusteredState, cohort: np.ndarray) -> list[ClientWork]:
        """Every client receives, trains and sends a model, once more where the clusters are found."""
        return [*super().list_phases(state, cohort)] * (2 if self.is_clustering(state) else 1)


def build_fl_hc_process(model_spec: ModelSpec, clients: FederatedData, config: FLHCConfig, seed: int) -> FLHCProcess:
    """FL+HC as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model that every cluster trains.
      clients: the federation; all clients take part in every round.
      config: settings.
      seed: of the first weights and the local training.
    """
    return FLHCProcess(**build_parts(model_spec, clients, config, seed))
