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

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.client.cohort import CLIENT_INPUT_TYPE, ClientInput, build_client_inputs
from tff_algos.client.local_training import count_examples_trained, train_locally
from tff_algos.fl_hc.clustering import cluster_updates
from tff_algos.fl_hc.config import FLHCConfig
from tff_algos.protocol import (
    CLUSTER,
    NUM_REJECTED,
    TOTAL_DRIFT,
    WITHIN_CLUSTER_DRIFT,
    ClientWork,
    FederatedProcess,
    RoundOutput,
    Weights,
)
from tff_algos.rounds.cluster_labels import count_clusters
from tff_algos.rounds.grouped_round import build_grouped_round
from tff_algos.rounds.round_metrics import build_common_metrics
from tff_algos.simulation.byte_ledger import compute_model_bytes
from tff_algos.simulation.virtual_clock import compute_phases_s
from tff_algos.weights import build_stacked_type, initialize_weights, stack_models, take_model

# A call's result must stay well below the 2 GB that a message of the worker can carry.
_MAX_RESULT_BYTES = 2**28


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      models: the cluster models, stacked along axis 0; one before the clustering.
      assignments: the cluster of each client, int32, shape (clients,).
    """

    round_num: np.int32
    virtual_time_s: np.float64
    models: Weights
    assignments: np.ndarray


def build_local_updates(model_spec: ModelSpec, config: FLHCConfig, template_weights: Weights) -> Callable:
    """The computation (models@SERVER, {ClientInput}@CLIENTS) -> {<flattened update, is_finite>}@CLIENTS."""
    models_type = build_stacked_type(template_weights, 1)

    @tff.tensorflow.computation(models_type, CLIENT_INPUT_TYPE)
    def client_work(models, client):
        x, y = read_split(client.path, "train", model_spec)
        start = tuple(model[0] for model in models)
        result = train_locally(model_spec, config.training, start, x, y, client.seed, client.learning_rate)
        return tf.concat([tf.reshape(delta, [-1]) for delta in result.weights_delta], axis=0), result.is_finite

    @tff.federated_computation(
        tff.FederatedType(models_type, tff.SERVER), tff.FederatedType(CLIENT_INPUT_TYPE, tff.CLIENTS)
    )
    def compute_updates(models, clients):
        return tff.federated_map(client_work, (tff.federated_broadcast(models), clients))

    return compute_updates


@dataclasses.dataclass(frozen=True, eq=False)
class FLHCProcess(FederatedProcess):
    """FL+HC; the fields are what stays the same from round to round.

    Attributes:
      model_spec, clients, config, seed: see `build_fl_hc_process`.
      initial_weights: the global model before the first round.
      build_round: (number of clusters) -> the computation of `build_grouped_round`, cached.
    """

    model_spec: ModelSpec
    clients: FederatedData
    config: FLHCConfig
    seed: int
    initial_weights: Weights
    build_round: Callable[[int], Callable]

    @property
    def everyone(self) -> np.ndarray:
        return np.arange(len(self.clients.clients))

    def initialize(self) -> ServerState:
        assignments = np.zeros(len(self.everyone), np.int32)
        return ServerState(np.int32(0), np.float64(0.0), stack_models([self.initial_weights]), assignments)

    def build_inputs(self, state: ServerState, indices: np.ndarray, purpose: str) -> list[ClientInput]:
        config, groups, round_num = self.config, state.assignments[indices], int(state.round_num) + 1
        weighting, training = config.client_weighting, config.training
        return build_client_inputs(self.clients, indices, groups, weighting, training, self.seed, purpose, round_num)

    def cluster(self, state: ServerState) -> tuple[ServerState, int]:
        """Step 2: the state with the clients in clusters, and how many updates were rejected.

        Every cluster gets a copy of the global model. Clients whose update is not finite have no say in the clustering;
        they join the largest cluster.
        """
        compute_updates = build_local_updates(self.model_spec, self.config, self.initial_weights)
        # The distances need every client's update at once, but one message might not hold them all.
        size = max(_MAX_RESULT_BYTES // compute_model_bytes(self.initial_weights), 1)
        updates, is_finite = None, np.zeros(len(self.everyone), bool)
        for start in range(0, len(self.everyone), size):
            part = self.everyone[start : start + size]
            results = compute_updates(state.models, self.build_inputs(state, part, "clustering"))
            for client, (update, finite) in zip(part, results, strict=False):  # padded places come last
                if updates is None:
                    updates = np.empty((len(self.everyone), len(update)), np.float32)
                updates[client], is_finite[client] = update, finite
        assignments = np.zeros(len(self.everyone), np.int32)
        if is_finite.any():
            config = self.config
            cuts = config.distance_threshold, config.num_clusters, config.distance_multiple
            found = cluster_updates(updates[is_finite], *cuts)
            assignments[is_finite], assignments[~is_finite] = found, np.bincount(found).argmax()
        models = stack_models([take_model(state.models, 0)] * count_clusters(assignments))
        return state._replace(models=models, assignments=assignments), int(np.sum(~is_finite))

    def next(self, state: ServerState) -> RoundOutput:
        exchanges, num_rejected = self.list_work(state, state), 0
        # Step 2, once
        if state.round_num == self.config.clustering_round:
            state, num_rejected = self.cluster(state)
        # Step 1 before the clustering, with a single cluster; step 3 after it
        num_clusters = count_clusters(state.assignments)
        inputs = self.build_inputs(state, self.everyone, "training")
        models, totals = self.build_round(num_clusters)(state.models, inputs)
        duration_s = compute_phases_s(self.clients.profiles, exchanges, float(state.virtual_time_s))
        virtual_time_s = np.float64(state.virtual_time_s + duration_s)
        sent = len(exchanges) * len(self.everyone) * compute_model_bytes(self.initial_weights)
        metrics = build_common_metrics(totals, virtual_time_s, len(self.everyone), sent, sent)
        metrics[NUM_REJECTED] += num_rejected
        metrics["num_clusters"] = num_clusters
        metrics[WITHIN_CLUSTER_DRIFT] = float(totals.within_group_drift)
        metrics[TOTAL_DRIFT] = float(totals.total_drift)
        round_num = np.int32(state.round_num + 1)
        new_state = ServerState(round_num, virtual_time_s, tuple(models), state.assignments)
        return RoundOutput(new_state, metrics)

    def list_work(self, state: ServerState, next_state: ServerState) -> list[ClientWork]:
        """Every client receives, trains and sends a model, once more where the clusters are found."""
        del next_state
        model_bytes = compute_model_bytes(self.initial_weights)
        num_examples = [count_examples_trained(self.config.training, n) for n in self.clients.num_train]
        exchange = ClientWork(self.everyone, np.array(num_examples), model_bytes, model_bytes)
        return [exchange] * (2 if state.round_num == self.config.clustering_round else 1)

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {f"cluster_{i}": take_model(state.models, i) for i in range(count_clusters(state.assignments))}

    def client_model(self, state: ServerState) -> list[str]:
        return [f"cluster_{cluster}" for cluster in state.assignments]

    def client_columns(self, state: ServerState) -> dict[str, list]:
        return {CLUSTER: state.assignments.tolist()}

    def summarize(self, state: ServerState) -> dict:
        sizes = np.bincount(state.assignments).tolist()
        return {"num_clusters": len(sizes), "cluster_sizes": sizes}

    def map_models(self, state: ServerState, function: Callable[[Weights], Weights]) -> ServerState:
        return state._replace(models=function(state.models))


def build_fl_hc_process(model_spec: ModelSpec, clients: FederatedData, config: FLHCConfig, seed: int) -> FLHCProcess:
    """FL+HC as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model that every cluster trains.
      clients: the federation; all clients take part in every round.
      config: settings.
      seed: of the first weights and the local training.
    """
    initial_weights = initialize_weights(model_spec, seed)
    build_round = functools.cache(
        lambda num_clusters: build_grouped_round(model_spec, config.training, initial_weights, num_clusters)
    )
    return FLHCProcess(model_spec, clients, config, seed, initial_weights, build_round)
