"""FedAvg: Algorithm 1 of McMahan et al. 2017.

"Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017.

A round:
1. The server draws a cohort (all clients by default) and broadcasts the global model.
2. Each client of the cohort trains it on its own examples.
3. The server adds the mean of the clients' updates, weighted by their examples, times its learning rate.

| paper | here |
|---|---|
| K, C | `len(clients.clients)`, `cohort_size` / K |
| E, B, eta | `training.epochs`, `training.batch_size`, `training.learning_rate` |
| n_k | `ClientShard.num_train` |
| w_t | `ServerState.models` |

With `fine_tuning.steps` above 0 it is the baseline "Fine-Tuning" of AMFL-P: at the end, each client trains the global
model on its own examples, all with as many steps and the same rate.

Limit cases: one client is plain training; `client_weighting="equal"` is an unweighted mean; a `proximal_weight` gives
FedProx (Li et al. 2020, Eq. 2).

Deviations from the paper: the local optimizer can be Adam, and the server can scale the mean update.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from datasets.federated_data import ClientShard, FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.cohort import build_client_inputs, compute_usual_places, pad_cohort, sample_cohort
from tff_algos.client.fine_tuning import build_fine_tuning
from tff_algos.client.local_training import count_examples_trained
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.protocol import FederatedProcess, RoundOutput, Weights, use_shared_model
from tff_algos.rounds.grouped_round import build_grouped_round
from tff_algos.rounds.round_metrics import build_common_metrics
from tff_algos.simulation.byte_ledger import compute_model_bytes
from tff_algos.simulation.virtual_clock import compute_client_seconds, compute_synchronous_round_s
from tff_algos.weights import initialize_weights, stack_models, take_model


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      models: the global model, stacked alone along axis 0.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    models: Weights


def build_fed_avg_process(
    model_spec: ModelSpec, clients: FederatedData, config: FedAvgConfig, seed: int
) -> FederatedProcess:
    """FedAvg as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation.
      config: settings.
      seed: of the first weights, the cohorts and the local training.
    """
    initial_weights = initialize_weights(model_spec, seed)
    run_round = build_grouped_round(model_spec, config.training, initial_weights, 1, config.server_learning_rate)
    model_bytes = compute_model_bytes(initial_weights)
    examples_trained = np.array([count_examples_trained(config.training, n) for n in clients.num_train])
    num_clients, is_fixed = len(clients.clients), config.participation == "fixed"
    places = 1 if is_fixed else compute_usual_places(num_clients, min(config.cohort_size or num_clients, num_clients))

    def initialize() -> ServerState:
        return ServerState(np.int32(0), np.float64(0.0), stack_models([initial_weights]))

    def run_next(state: ServerState) -> RoundOutput:
        round_num = int(state.round_num) + 1
        cohort = sample_cohort(num_clients, config.cohort_size, config.participation, seed, round_num)
        inputs = build_client_inputs(
            clients,
            cohort,
            np.zeros_like(cohort),
            config.client_weighting,
            config.training,
            seed,
            "training",
            round_num,
        )
        models, totals = run_round(state.models, pad_cohort(inputs, places))
        seconds = compute_client_seconds(clients.profiles, cohort, examples_trained[cohort], model_bytes, model_bytes)
        virtual_time_s = state.virtual_time_s + compute_synchronous_round_s(seconds)
        sent = len(cohort) * model_bytes
        metrics = build_common_metrics(totals, virtual_time_s, len(cohort), sent, sent)
        metrics["total_drift"] = float(totals.total_drift)
        return RoundOutput(ServerState(np.int32(round_num), np.float64(virtual_time_s), tuple(models)), metrics)

    def get_models(state: ServerState) -> dict[str, Weights]:
        return {"global": take_model(state.models, 0)}

    def client_model(state: ServerState) -> list[str]:
        del state
        return ["global"] * len(clients.clients)

    tuning = config.fine_tuning
    fine_tune = build_fine_tuning(model_spec, tuning, initial_weights, seed) if tuning.steps else None

    def personalize(state: ServerState, members: Sequence[ClientShard]) -> Iterator[tuple[ClientShard, Weights]]:
        steps, rates = np.full(len(members), tuning.steps), np.full(len(members), tuning.learning_rate)
        return fine_tune(take_model(state.models, 0), members, steps, rates)

    return FederatedProcess(
        initialize=initialize,
        next=run_next,
        get_models=get_models,
        client_model=client_model,
        personalize=personalize if fine_tune else use_shared_model(get_models, client_model),
        is_personal=fine_tune is not None,
        map_models=lambda state, function: state._replace(models=function(state.models)),
    )
