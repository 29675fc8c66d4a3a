"""One federated round in which each client trains the model of its group; FedAvg is the case of a single group.

Functional types of the computations that the builders return:
  build_grouped_round:   (models@SERVER, {ClientInput}@CLIENTS) -> <models@SERVER, RoundTotals@SERVER>
  build_grouped_updates: (models@SERVER, {ClientInput}@CLIENTS) -> <mean updates@SERVER, RoundTotals@SERVER>
"""

from collections.abc import Callable

import tensorflow_federated as tff

from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.client.cohort import CLIENT_INPUT_TYPE
from tff_algos.client.compression import compress, find_compressed
from tff_algos.client.local_training import train_locally
from tff_algos.protocol import Weights
from tff_algos.rounds.aggregation import (
    ClientUpdate,
    compute_group_means,
    sum_by_group,
    summarize_totals,
)
from tff_algos.settings.compression import CompressionConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import add_deltas, build_stacked_type, is_float


def build_grouped_round(
    model_spec: ModelSpec,
    training: LocalTrainingConfig,
    template_weights: Weights,
    num_groups: int,
    server_learning_rate: float = 1.0,
) -> Callable:
    """A computation: models[g] += server_learning_rate * weighted mean of the updates of the clients of group g.

    Args:
      model_spec: the model that every group trains.
      training: local training of each client.
      template_weights: one model's weights, for their shapes and dtypes.
      num_groups: rows of the stacked models; a group without clients in a round keeps its model.
      server_learning_rate: 1 is plain averaging.
    """

    @tff.tensorflow.computation
    def server_update(models, totals):
        return add_deltas(models, compute_group_means(totals), server_learning_rate), summarize_totals(totals)

    client_work = build_client_work(model_spec, training, template_weights, num_groups, CompressionConfig())
    models_type = build_stacked_type(template_weights, num_groups)

    @tff.federated_computation(
        tff.FederatedType(models_type, tff.SERVER), tff.FederatedType(CLIENT_INPUT_TYPE, tff.CLIENTS)
    )
    def run_round(models, clients):
        updates = tff.federated_map(client_work, (tff.federated_broadcast(models), clients))
        return tff.federated_map(server_update, (models, sum_by_group(updates, num_groups)))

    return run_round


def build_grouped_updates(
    model_spec: ModelSpec,
    training: LocalTrainingConfig,
    template_weights: Weights,
    num_groups: int,
    compression: CompressionConfig,
) -> Callable:
    """A computation: for each group, the weighted mean of its clients' updates, which are compressed on their way.

    It takes the models as the clients have them; adding the means to the server's own is left to the caller. A mean has
    the floating-point weights only, each of shape (groups, *shape), zeros for a group without clients.

    Args:
      model_spec, training, template_weights, num_groups: see `build_grouped_round`.
      compression: of the updates.
    """

    @tff.tensorflow.computation
    def summarize(totals):
        return compute_group_means(totals), summarize_totals(totals)

    client_work = build_client_work(model_spec, training, template_weights, num_groups, compression)
    models_type = build_stacked_type(template_weights, num_groups)

    @tff.federated_computation(
        tff.FederatedType(models_type, tff.SERVER), tff.FederatedType(CLIENT_INPUT_TYPE, tff.CLIENTS)
    )
    def compute_updates(models, clients):
        updates = tff.federated_map(client_work, (tff.federated_broadcast(models), clients))
        return tff.federated_map(summarize, sum_by_group(updates, num_groups))

    return compute_updates


def build_client_work(
    model_spec: ModelSpec,
    training: LocalTrainingConfig,
    template_weights: Weights,
    num_groups: int,
    compression: CompressionConfig,
) -> Callable:
    """What a client does, as a TensorFlow computation (models, ClientInput) -> ClientUpdate."""
    models_type = build_stacked_type(template_weights, num_groups)
    is_compressed: list[bool] = []  # of the update's tensors
    if compression.is_active:
        weights = zip(template_weights, find_compressed(model_spec), strict=True)
        is_compressed = [is_rounded for array, is_rounded in weights if is_float(array)]

    @tff.tensorflow.computation(models_type, CLIENT_INPUT_TYPE)
    def client_work(models, client):
        x, y = read_split(client.path, "train", model_spec)
        start = tuple(model[client.group] for model in models)
        result = train_locally(model_spec, training, start, x, y, client.seed, client.learning_rate)
        # What the server gets, it gets compressed: the norm and the loss are still those of the update before.
        sent = compress(result.weights_delta, is_compressed, compression, client.seed)
        return ClientUpdate(result._replace(weights_delta=sent), client.group, client.weight)

    return client_work
