"""One federated round in which each client trains the model of its group; FedAvg is the case of a single group.

Functional type of the computation that `build_grouped_round` returns:
(models@SERVER, {ClientInput}@CLIENTS) -> <models@SERVER, RoundTotals@SERVER>
"""

from collections.abc import Callable

import tensorflow_federated as tff

from models.model_spec import ModelSpec
from tff_algos.aggregation import ClientUpdate, add_to_models, compute_group_means, sum_by_group, summarize_totals
from tff_algos.client_data import read_split
from tff_algos.cohort import CLIENT_INPUT_TYPE
from tff_algos.local_training import train_locally
from tff_algos.local_training_config import LocalTrainingConfig
from tff_algos.process import Weights
from tff_algos.weights import build_stacked_type


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
    models_type = build_stacked_type(template_weights, num_groups)

    @tff.tensorflow.computation(models_type, CLIENT_INPUT_TYPE)
    def client_work(models, client):
        x, y = read_split(client.path, "train", model_spec)
        start = tuple(model[client.group] for model in models)
        result = train_locally(model_spec, training, start, x, y, client.seed, client.learning_rate)
        return ClientUpdate(result, client.group, client.weight)

    @tff.tensorflow.computation
    def server_update(models, totals):
        return add_to_models(models, compute_group_means(totals), server_learning_rate), summarize_totals(totals)

    @tff.federated_computation(
        tff.FederatedType(models_type, tff.SERVER), tff.FederatedType(CLIENT_INPUT_TYPE, tff.CLIENTS)
    )
    def run_round(models, clients):
        updates = tff.federated_map(client_work, (tff.federated_broadcast(models), clients))
        return tff.federated_map(server_update, (models, sum_by_group(updates, num_groups)))

    return run_round
