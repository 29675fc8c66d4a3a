"""Ditto: Algorithm 1 of Li, Hu, Beirami and Smith 2021; an algorithm in one file, outside of the source tree.

"Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021. In the project's folder, type
`python -m launch.train --algo=examples.ditto:ALGORITHM`; in the folder of this file, `--algo=ditto:ALGORITHM`. A round:
1. The server draws a cohort (all clients by default) and broadcasts the global model w.
2. Each client of the cohort trains its personal model v_k, which it keeps, on F_k(v_k) + lambda / 2 |v_k - w|^2.
3. It trains a copy of w on F_k and sends the update.
4. The server adds the mean of the updates, weighted by the clients' examples, to w.

| paper | here |
|---|---|
| w^t, v_k | `ServerState.models`, rows of `ServerState.personal` |
| lambda | `pull` |

Limit case: a pull of 0 is local training. Whatever the pull, w is the model of FedAvg. Deviations from the paper:
- v_k and the copy of w are trained with the same settings, on the same batches. The optimizer can be Adam.
- A client whose personal training is not finite keeps the v_k it had, and counts as rejected.
- The simulation keeps all v_k on the host and sends them to the clients in one call, which limits it to 2 GB of models.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow_federated as tff
from tff_algos.rounds.grouped_round import build_grouped_round

from datasets.federated_data import ClientShard, FederatedData
from launch.settings.algorithms import Algorithm
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.client.cohort import CLIENT_INPUT_TYPE, build_client_inputs, sample_cohort
from tff_algos.client.local_training import count_examples_trained, train_locally
from tff_algos.protocol import FederatedProcess, RoundOutput, Weights
from tff_algos.rounds.round_metrics import build_common_metrics
from tff_algos.settings.config_fields import AlgorithmConfig, group, setting
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.byte_ledger import compute_model_bytes
from tff_algos.simulation.virtual_clock import compute_client_seconds, compute_synchronous_round_s
from tff_algos.weights import add_deltas, build_model_type, build_stacked_type, initialize_weights, take_model


@dataclasses.dataclass(frozen=True)
class DittoConfig(AlgorithmConfig):
    """Each field is a flag, `--ditto_<field>`, with this default, help text and range."""

    training: LocalTrainingConfig = group(LocalTrainingConfig, flag_prefix="")
    pull: float = setting(0.1, "Pull of the personal models to the global one (paper: lambda).", minimum=0)
    cohort_size: int = setting(0, "Clients asked in a round; 0 or more than there are means all.", minimum=0)


class ServerState(NamedTuple):
    """Everything that a resume needs; models are stacked along axis 0."""

    round_num: np.int32
    virtual_time_s: np.float64
    models: Weights  # one row, the global model
    personal: Weights  # a row a client


def build_personal_round(model_spec: ModelSpec, config: DittoConfig, template: Weights) -> Callable:
    """Step 2, (stacked w@SERVER, {<v_k, ClientInput>}@CLIENTS) -> {<new v_k, is finite>}@CLIENTS."""
    training = dataclasses.replace(config.training, proximal_weight=config.pull)
    models_type = build_stacked_type(template, 1)
    client_type = tff.StructWithPythonType([build_model_type(template), CLIENT_INPUT_TYPE], tuple)

    @tff.tensorflow.computation(models_type, client_type)
    def client_work(models, given):
        own, client = tuple(given[0]), given[1]
        x, y = read_split(client.path, "train", model_spec)
        anchor = tuple(array[0] for array in models)
        result = train_locally(model_spec, training, own, x, y, client.seed, client.learning_rate, anchor=anchor)
        return add_deltas(own, result.weights_delta), result.is_finite

    @tff.federated_computation(tff.FederatedType(models_type, tff.SERVER), tff.FederatedType(client_type, tff.CLIENTS))
    def run_round(models, clients):
        return tff.federated_map(client_work, (tff.federated_broadcast(models), clients))

    return run_round


@dataclasses.dataclass(frozen=True, eq=False)
class DittoProcess(FederatedProcess):
    """Ditto; the fields are what stays the same from round to round."""

    is_personal = True  # so that clients are tested, and exported, with what `personalize` gives
    clients: FederatedData
    config: DittoConfig
    seed: int
    initial_weights: Weights
    run_personal_round: Callable
    run_global_round: Callable

    def initialize(self) -> ServerState:
        models = tuple(array[np.newaxis] for array in self.initial_weights)
        personal = tuple(np.repeat(array, len(self.clients.clients), axis=0) for array in models)
        return ServerState(np.int32(0), np.float64(0.0), models, personal)

    def next(self, state: ServerState) -> RoundOutput:
        data, training, round_num = self.clients, self.config.training, int(state.round_num) + 1
        # Step 1
        cohort = sample_cohort(len(data.clients), self.config.cohort_size, "fixed", self.seed, round_num)
        groups = [0] * len(cohort)  # all train the one global model
        inputs = build_client_inputs(data, cohort, groups, "examples", training, self.seed, "training", round_num)
        # Step 2
        starts = [take_model(state.personal, client) for client in cohort]
        starts += [self.initial_weights] * (len(inputs) - len(starts))  # inputs end with empty places, see `pad_cohort`
        results = self.run_personal_round(state.models, list(zip(starts, inputs, strict=True)))[: len(cohort)]
        personal = tuple(map(np.copy, state.personal))  # a process never changes a state that it was given
        for stacked, *rows in zip(personal, *(trained for trained, _ in results), strict=True):
            stacked[cohort] = rows
        # Steps 3 and 4
        models, totals = self.run_global_round(state.models, inputs)
        num_examples = np.array([2 * count_examples_trained(training, n) for n in data.num_train[cohort]])  # two models
        size = compute_model_bytes(self.initial_weights)
        seconds = compute_client_seconds(data.profiles, cohort, num_examples, size, size)
        time_s = np.float64(state.virtual_time_s + compute_synchronous_round_s(seconds))
        sent = len(cohort) * size
        metrics = build_common_metrics(totals, time_s, len(cohort), sent, sent)
        metrics["num_rejected"] += sum(not is_finite for _, is_finite in results)
        return RoundOutput(ServerState(np.int32(round_num), time_s, tuple(map(np.asarray, models)), personal), metrics)

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {"global": take_model(state.models, 0)}

    def client_model(self, state: ServerState) -> list[str]:
        return ["global"] * len(self.clients.clients)

    def personalize(self, state: ServerState, clients: Sequence[ClientShard]) -> Iterator[tuple[ClientShard, Weights]]:
        return ((client, take_model(state.personal, client.index)) for client in clients)


def build_ditto_process(model_spec: ModelSpec, clients: FederatedData, config: DittoConfig, seed: int) -> DittoProcess:
    """Ditto as a process; needs a TFF context when it runs."""
    weights = initialize_weights(model_spec, seed)
    run_personal_round = build_personal_round(model_spec, config, weights)
    run_global_round = build_grouped_round(model_spec, config.training, weights, num_groups=1)
    return DittoProcess(clients, config, seed, weights, run_personal_round, run_global_round)


ALGORITHM = Algorithm(
    name="ditto",
    title="Ditto",
    color="#E69F00",
    summary="Ditto (Li et al. 2021): personal models, each pulled to the global one.",
    config_class=DittoConfig,
    builder="build_ditto_process",
)
