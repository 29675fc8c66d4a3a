"""Local training alone: every client trains a model on its own examples, and nothing is ever sent.

All clients start from the same model. A round:
1. Each client trains its own model of the round before, as a client of FedAvg trains the global one.
2. The trained model is the client's model; a client whose training is not finite keeps the one it had.

There is no shared model, so `test_accuracy` is the mean over the clients' models.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow_federated as tff

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.client.cohort import NOBODY, pad_cohort, tell_clients
from tff_algos.client.local_training import count_examples_trained, train_locally
from tff_algos.late_computation import LateComputation
from tff_algos.local_only.config import LocalOnlyConfig
from tff_algos.protocol import ClientWork, FederatedProcess, RoundOutput, Weights
from tff_algos.rounds.aggregation import RoundTotals, build_common_metrics
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.virtual_clock import compute_phases_s
from tff_algos.weights import add_deltas, build_type, initialize_weights, stack_models, take_model

# Clients of one call. Their models travel with it, and one message of the worker carries at most 2 GB.
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
    input_type = build_type((template_weights, NOBODY))
    return LateComputation(_build_round, model_spec, training, input_type)


def _build_round(model_spec: ModelSpec, training: LocalTrainingConfig, input_type: tff.Type) -> Callable:
    @tff.tensorflow.computation(input_type)
    def client_work(given):
        start, client = tuple(given[0]), given[1]
        x, y = read_split(client.path, "train", model_spec)
        result = train_locally(model_spec, training, start, x, y, client.seed, client.learning_rate)
        trained = add_deltas(start, result.weights_delta)
        return trained, result.loss_sum, result.num_trained, result.is_finite

    @tff.federated_computation(tff.FederatedType(input_type, tff.CLIENTS))
    def run_round(given):
        return tff.federated_map(client_work, given)

    return run_round


@dataclasses.dataclass(frozen=True, eq=False)
class LocalOnlyProcess(FederatedProcess):
    """Local training; the fields are what stays the same from round to round.

    Attributes:
      clients, config, seed: see `build_local_only_process`.
      initial_weights: every client's model before the first round.
      run_round: the computation of `build_local_round`.
    """

    clients: FederatedData
    config: LocalOnlyConfig
    seed: int
    initial_weights: Weights
    run_round: Callable

    shares_models = False

    @property
    def everyone(self) -> np.ndarray:
        return np.arange(len(self.clients.clients))

    def initialize(self) -> ServerState:
        return ServerState(np.int32(0), np.float64(0.0), stack_models([self.initial_weights] * len(self.everyone)))

    def next(self, state: ServerState) -> RoundOutput:
        # Step 1
        starts = range(0, len(self.everyone), _CLIENTS_PER_CALL)
        parts = [self.everyone[first : first + _CLIENTS_PER_CALL] for first in starts]
        models, loss_sums, num_trained, is_finite = zip(
            *(result for part in parts for result in self.train(state, part)), strict=True
        )
        # Step 2
        work, now_s = self.list_work(state, state), float(state.virtual_time_s)
        virtual_time_s = np.float64(now_s + compute_phases_s(self.clients.profiles, work, now_s))
        new_state = ServerState(np.int32(state.round_num + 1), virtual_time_s, stack_models(models))
        totals = RoundTotals(sum(loss_sums), sum(num_trained), len(is_finite) - sum(is_finite), 0.0, 0.0)
        return RoundOutput(new_state, build_common_metrics(totals, virtual_time_s, len(self.everyone), 0, 0))

    def train(self, state: ServerState, part: np.ndarray) -> list:
        """Step 1 for the clients of one call: what `run_round` gives for each of them."""
        round_num, groups = int(state.round_num) + 1, np.zeros_like(part)
        training = self.config.training
        told = tell_clients(self.clients, part, groups, "equal", training, self.seed, "training", round_num)
        inputs = pad_cohort(told)
        models = [take_model(state.models, index) for index in part]
        models += [self.initial_weights] * (len(inputs) - len(models))  # empty slots train nothing, but need a model
        return self.run_round(list(zip(models, inputs, strict=True)))[: len(part)]

    def list_work(self, state: ServerState, next_state: ServerState) -> list[ClientWork]:
        """Every client trains; nothing travels."""
        num_examples = np.array([count_examples_trained(self.config.training, n) for n in self.clients.num_train])
        return [ClientWork(self.everyone, num_examples)]

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {client.name: take_model(state.models, client.index) for client in self.clients.clients}

    def client_model(self, state: ServerState) -> list[str]:
        return [client.name for client in self.clients.clients]

    def map_models(self, state: ServerState, function: Callable[[Weights], Weights]) -> ServerState:
        return state._replace(models=function(state.models))


def build_local_only_process(
    model_spec: ModelSpec, clients: FederatedData, config: LocalOnlyConfig, seed: int
) -> LocalOnlyProcess:
    """Local training as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation; all clients train in every round.
      config: settings.
      seed: of the first weights and the local training.
    """
    initial_weights = initialize_weights(model_spec, seed)
    run_round = build_local_round(model_spec, config.training, initial_weights)
    return LocalOnlyProcess(clients, config, seed, initial_weights, run_round)
