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
| w^c | rows of `ServerState.models` |

Before the clustering all clients belong to cluster 0, and there is one model. Limit case: one cluster is FedAvg.

Deviations from the paper:
- The exchange of step 2 is counted in the bytes and the time of the round that it opens.
- Every client takes part in every round (the paper samples a fraction inside each cluster).
- The scale of the distances depends on the model, so by default the threshold is a multiple of their median; a
  distance or a number of clusters can be given in its place.
"""

from typing import Any, NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.fl_hc.clustering import cluster_updates
from tff_algos.fl_hc.config import FLHCConfig
from tff_algos.protocol import CLUSTER, TOTAL_DRIFT, WITHIN_CLUSTER_DRIFT, ClientWork, Weights
from tff_algos.rounds.cluster_labels import count_clusters
from tff_algos.rounds.list_aggregator import join_update
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import PhaseOutcome, PlacedInput
from tff_algos.weights import stack_models, take_model

# A call's result must stay well below the 2 GB that a message of the worker can carry.
_MAX_RESULT_BYTES = 2**28


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      models: the cluster models, stacked along axis 0; one before the clustering.
      assignments: the cluster of each client, int32, shape (clients,).
      aggregator, server, kept: of these parts.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    models: Weights
    assignments: np.ndarray
    aggregator: Any = ()
    server: Any = ()
    kept: Any = ()


class FLHCProcess(SynchronousProcess):
    """FL+HC."""

    takes_new_clients = False

    def initialize(self) -> ServerState:
        models, assignments = stack_models([self.initial_weights]), np.zeros(len(self.everyone), np.int32)
        return ServerState(np.int32(0), np.float64(0.0), models, assignments, **self.initialize_parts(1))

    def prepare(self, state: ServerState, cohort: np.ndarray) -> tuple[ServerState, int]:
        """Step 2, once: the state with the clients in clusters, and how many updates were rejected.

        Every cluster gets a copy of the global model. Clients whose update is not finite have no say in the clustering;
        they join the largest cluster.
        """
        if not self.is_clustering(state):
            return state, 0
        inputs = [PlacedInput(each.told) for each in self.invite(state, cohort, "clustering")]
        # The distances need every client's update at once, but one message might not hold them all.
        size = max(_MAX_RESULT_BYTES // self.transport.model_bytes, 1)
        parts = [inputs[start : start + size] for start in range(0, len(inputs), size)]
        updates = [each.update for part in parts for each in self.phase.collect(state.models, part, ())]
        results = [update.result for update in self.phase.forge(updates, inputs)]
        is_finite = np.array([bool(result.is_finite) for result in results])
        assignments = np.zeros(len(cohort), np.int32)
        if is_finite.any():
            updates = np.stack([join_update(each.weights_delta) for each in results])
            cuts = self.config.distance_threshold, self.config.num_clusters, self.config.distance_multiple
            found = cluster_updates(updates[is_finite], *cuts)
            assignments[is_finite], assignments[~is_finite] = found, np.bincount(found).argmax()
        sources = np.zeros(count_clusters(assignments), int)
        clustered = state._replace(
            models=stack_models([take_model(state.models, 0)] * len(sources)),
            assignments=assignments,
            aggregator=self.aggregator.copy_groups(state.aggregator, sources),
            server=self.server_step.copy_rows(state.server, sources),
        )
        return clustered, int(np.sum(~is_finite))

    def is_clustering(self, state: ServerState) -> bool:
        """Whether the next round begins with step 2."""
        return state.round_num == self.config.clustering_round

    def choose_cohort(self, state: ServerState) -> tuple[float, np.ndarray]:
        return 0.0, self.everyone

    def count_places(self, num_invited: int) -> int:
        return 1

    def assign_groups(self, state: ServerState, cohort: np.ndarray) -> np.ndarray:
        return state.assignments[cohort]

    def list_phases(self, state: ServerState, cohort: np.ndarray) -> list[ClientWork]:
        """Every client receives, trains and sends a model, once more where the clusters are found."""
        return [*super().list_phases(state, cohort)] * (2 if self.is_clustering(state) else 1)

    def describe(
        self, state: ServerState, new_state: ServerState, outcome: PhaseOutcome, cohort: np.ndarray
    ) -> dict[str, float]:
        totals = outcome.totals
        return {
            "num_clusters": count_clusters(new_state.assignments),
            WITHIN_CLUSTER_DRIFT: float(totals.within_group_drift),
            TOTAL_DRIFT: float(totals.total_drift),
        }

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {f"cluster_{i}": take_model(state.models, i) for i in range(count_clusters(state.assignments))}

    def client_model(self, state: ServerState) -> list[str]:
        return [f"cluster_{cluster}" for cluster in state.assignments]

    def client_columns(self, state: ServerState) -> dict[str, list]:
        return {CLUSTER: state.assignments.tolist()}

    def summarize(self, state: ServerState) -> dict:
        sizes = np.bincount(state.assignments).tolist()
        return {"num_clusters": len(sizes), "cluster_sizes": sizes, **super().summarize(state)}


def build_fl_hc_process(model_spec: ModelSpec, clients: FederatedData, config: FLHCConfig, seed: int) -> FLHCProcess:
    """FL+HC as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model that every cluster trains.
      clients: the federation; all clients take part in every round.
      config: settings.
      seed: of the first weights and the local training.
    """
    return FLHCProcess(**build_parts(model_spec, clients, config, seed))
