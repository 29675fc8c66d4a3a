"""Models that are trained each by itself, and never averaged: one for each client, or one on the examples of all.

A round:
1. Each model of the round before is trained, as a client of FedAvg trains the global one.
2. What comes of it is the model of this round; one whose training is not finite stays as it was.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow_federated as tff

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.client.cohort import NOBODY, pad_cohort, tell_clients
from tff_algos.client.local_training import train_locally
from tff_algos.late_computation import LateComputation
from tff_algos.protocol import ClientWork, FederatedProcess, RoundOutput, Weights
from tff_algos.rounds.aggregation import RoundTotals, build_common_metrics, sum_bytes
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.virtual_clock import compute_phases_s
from tff_algos.weights import add_deltas, build_type, initialize_weights, stack_models, take_model

# Trainings of one call. Their models travel with it, and one message of the worker carries at most 2 GB.
_MODELS_PER_CALL = 64


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      models: stacked along axis 0, a row for each client of the process's `trained`.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    models: Weights


def _build_round(model_spec: ModelSpec, training: LocalTrainingConfig, input_type: tff.Type) -> Callable:
    """{model, ClientInput}@CLIENTS -> {model, loss sum, examples trained, is finite}@CLIENTS."""

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
class SeparateProcess(FederatedProcess):
    """Trains a model on the examples of each client of `trained`; who uses which is the algorithm's.

    Attributes:
      clients: the federation.
      config: the algorithm's, with `training`.
      seed: of the first weights and the local training.
      initial_weights: every model before the first round.
      run_round: the computation of a round.
    """

    clients: FederatedData
    config: Any
    seed: int
    initial_weights: Weights
    run_round: Callable

    @property
    def trained(self) -> FederatedData:
        """On whose examples a model each is trained; by default all clients'."""
        return self.clients

    @property
    def everyone(self) -> np.ndarray:
        """Indices of all clients that train."""
        return np.arange(len(self.clients.clients))

    def initialize(self) -> ServerState:
        models = stack_models([self.initial_weights] * len(self.trained.clients))
        return ServerState(np.int32(0), np.float64(0.0), models)

    def next(self, state: ServerState) -> RoundOutput:
        # Step 1
        num_models, num_clients = len(self.trained.clients), len(self.everyone)
        parts = np.split(np.arange(num_models), range(_MODELS_PER_CALL, num_models, _MODELS_PER_CALL))
        models, loss_sums, num_trained, is_finite = zip(
            *(result for part in parts for result in self.train(state, part)), strict=True
        )
        # Step 2
        virtual_time_s = np.float64(float(state.virtual_time_s) + self.compute_seconds(state))
        new_state = ServerState(np.int32(state.round_num + 1), virtual_time_s, stack_models(models))
        # Of the pool's model, all clients' part is lost.
        num_rejected = (len(is_finite) - sum(is_finite)) * (num_clients // num_models)
        totals = RoundTotals(sum(loss_sums), sum(num_trained), num_rejected, 0.0, 0.0)
        sent = sum_bytes(self.list_work(state, new_state))
        return RoundOutput(new_state, build_common_metrics(totals, float(virtual_time_s), num_clients, *sent))

    def train(self, state: ServerState, part: np.ndarray) -> list:
        """Step 1 for the models of one call: what `run_round` gives for each of them."""
        round_num, groups = int(state.round_num) + 1, np.zeros_like(part)
        training = self.config.training
        told = tell_clients(self.trained, part, groups, "equal", training, self.seed, "training", round_num)
        inputs = pad_cohort(told)
        models = [take_model(state.models, index) for index in part]
        models += [self.initial_weights] * (len(inputs) - len(models))  # empty slots train nothing, but need a model
        return self.run_round(list(zip(models, inputs, strict=True)))[: len(part)]

    @abc.abstractmethod
    def list_work(self, state: ServerState, next_state: ServerState) -> list[ClientWork]:
        """What the clients themselves do in a round."""

    def compute_seconds(self, state: ServerState) -> float:
        """Virtual seconds of the round that begins with this state; by default those of the clients' work."""
        return compute_phases_s(self.clients.profiles, self.list_work(state, state), float(state.virtual_time_s))

    def map_models(self, state: ServerState, function: Callable[[Weights], Weights]) -> ServerState:
        return state._replace(models=function(state.models))


def build_separate_parts(model_spec: ModelSpec, clients: FederatedData, config: Any, seed: int) -> dict[str, Any]:
    """The fields of a `SeparateProcess`; see there, and `build_local_only_process`."""
    weights = initialize_weights(model_spec, seed)
    run_round = LateComputation(_build_round, model_spec, config.training, build_type((weights, NOBODY)))
    return {
        "clients": clients,
        "config": config,
        "seed": seed,
        "initial_weights": weights,
        "run_round": run_round,
    }
