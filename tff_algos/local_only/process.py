"""Local training alone: every client trains a model on its own examples, and nothing is ever sent.

A round is the local training of a round of FedAvg, from the client's own model of the round before. All start alike.
`test_accuracy` is thus the mean over the clients' models. A client whose training gives something not finite keeps the
model it had.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.client.cohort import CLIENT_INPUT_TYPE, build_client_inputs
from tff_algos.client.local_training import count_examples_trained, train_locally
from tff_algos.local_only.config import LocalOnlyConfig
from tff_algos.protocol import FederatedProcess, RoundOutput, Weights, use_shared_model
from tff_algos.rounds.aggregation import RoundTotals
from tff_algos.rounds.round_metrics import build_common_metrics
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.virtual_clock import compute_client_seconds, compute_synchronous_round_s
from tff_algos.weights import initialize_weights, is_float, stack_models, take_model

# Clients of one call, whose models travel with it.
_CLIENTS_PER_CALL = 64


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      models: the clients' models, stacked along axis 0.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    models: Weights


def build_local_round(model_spec: ModelSpec, training: LocalTrainingConfig, template_weights: Weights) -> Callable:
    """{model, ClientInput}@CLIENTS -> {model, loss sum, examples trained, is finite}@CLIENTS."""
    model_type = tff.StructWithPythonType([tff.TensorType(a.dtype.type, a.shape) for a in template_weights], tuple)
    input_type = tff.StructWithPythonType([model_type, CLIENT_INPUT_TYPE], tuple)

    @tff.tensorflow.computation(input_type)
    def client_work(given):
        start, client = tuple(given[0]), given[1]
        x, y = read_split(client.path, "train", model_spec)
        result = train_locally(model_spec, training, start, x, y, client.seed, client.learning_rate)
        deltas = iter(result.weights_delta)
        trained = tuple(array + next(deltas) if is_float(array) else tf.identity(array) for array in start)
        return trained, result.loss_sum, result.num_trained, result.is_finite

    @tff.federated_computation(tff.FederatedType(input_type, tff.CLIENTS))
    def run_round(given):
        return tff.federated_map(client_work, given)

    return run_round


def build_local_only_process(
    model_spec: ModelSpec, clients: FederatedData, config: LocalOnlyConfig, seed: int
) -> FederatedProcess:
    """Local training as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation; all clients train in every round.
      config: settings.
      seed: of the first weights and the local training.
    """
    initial_weights = initialize_weights(model_spec, seed)
    run_round = build_local_round(model_spec, config.training, initial_weights)
    everyone = np.arange(len(clients.clients))
    examples_trained = np.array([count_examples_trained(config.training, n) for n in clients.num_train])
    round_s = compute_synchronous_round_s(compute_client_seconds(clients.profiles, everyone, examples_trained, 0, 0))
    names = [client.name for client in clients.clients]

    def initialize() -> ServerState:
        return ServerState(np.int32(0), np.float64(0.0), stack_models([initial_weights] * len(everyone)))

    def train_part(state: ServerState, part: np.ndarray) -> list:
        round_num, groups = int(state.round_num) + 1, np.zeros_like(part)
        inputs = build_client_inputs(clients, part, groups, "equal", config.training, seed, "training", round_num)
        models = [take_model(state.models, index) for index in part]
        models += [initial_weights] * (len(inputs) - len(models))
        return run_round(list(zip(models, inputs, strict=True)))[: len(part)]

    def run_next(state: ServerState) -> RoundOutput:
        parts = [everyone[first : first + _CLIENTS_PER_CALL] for first in range(0, len(everyone), _CLIENTS_PER_CALL)]
        models, loss_sums, num_trained, is_finite = zip(
            *(result for part in parts for result in train_part(state, part)), strict=True
        )
        new_state = ServerState(
            np.int32(state.round_num + 1), np.float64(state.virtual_time_s + round_s), stack_models(models)
        )
        totals = RoundTotals(sum(loss_sums), sum(num_trained), len(is_finite) - sum(is_finite), 0.0, 0.0)
        return RoundOutput(new_state, build_common_metrics(totals, new_state.virtual_time_s, len(everyone), 0, 0))

    def get_models(state: ServerState) -> dict[str, Weights]:
        return {name: take_model(state.models, index) for index, name in enumerate(names)}

    def client_model(state: ServerState) -> list[str]:
        del state
        return names

    return FederatedProcess(
        initialize=initialize,
        next=run_next,
        get_models=get_models,
        client_model=client_model,
        personalize=use_shared_model(get_models, client_model),
        map_models=lambda state, function: state._replace(models=function(state.models)),
    )
