"""FedBuff: Nguyen et al. 2022, "Federated Learning with Buffered Asynchronous Aggregation", Algorithm 1.

All devices train all the time. A round:
1. The server waits until `buffer_size` updates have arrived; a device starts again at once, with the newest model.
2. It adds their mean, each weighted by its staleness, times its learning rate, to the global model.

| paper | here |
|---|---|
| K | `buffer_size` |
| eta_g, eta_l, Q | `server_learning_rate`, `training.learning_rate`, `training.steps` |
| s(tau) = 1 / sqrt(1 + tau) | `staleness` polynomial with `staleness_decay` 0.5 |

Deviations from the paper: every device trains all the time (the paper keeps a number of clients busy); no secure
aggregation and no privacy; an update that is not finite is left out of the mean.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.arrivals import Collected, DeviceStarts, collect_arrivals, start_at
from tff_algos.buffered.config import BufferedConfig
from tff_algos.byte_ledger import compute_model_bytes
from tff_algos.cohort import compute_padded_size
from tff_algos.event_clock import create_clock
from tff_algos.local_training import count_examples_trained
from tff_algos.model_versions import ModelVersions, add_versions, create_versions
from tff_algos.process import FederatedProcess, RoundOutput, Weights, use_shared_model
from tff_algos.round_metrics import build_common_metrics
from tff_algos.staleness import StalenessParameters, compute_mixing_weight
from tff_algos.training_times import SimulatedDevices
from tff_algos.versioned_round import VersionedResult, build_versioned_inputs, build_versioned_round
from tff_algos.weights import initialize_weights


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: aggregations done, int32.
      starts: the clock, and which version each device trains.
      versions: the global models in use, the newest among them.
    """

    round_num: np.int32
    starts: DeviceStarts
    versions: ModelVersions


@dataclasses.dataclass(frozen=True)
class _Buffered:
    """The process's functions, over what stays the same from round to round."""

    clients: FederatedData
    config: BufferedConfig
    seed: int
    initial_weights: Weights
    devices: SimulatedDevices
    run_round: Callable

    def initialize(self) -> ServerState:
        """All devices have the first model, and start at time 0."""
        num_clients = len(self.clients.clients)
        nowhere = DeviceStarts(
            create_clock(num_clients), np.zeros(num_clients, np.int64), np.zeros(num_clients, np.int64)
        )
        starts = start_at(self.devices, nowhere, np.arange(num_clients), 0)
        return ServerState(np.int32(0), starts, create_versions(self.initial_weights))

    def next(self, state: ServerState) -> RoundOutput:
        config, versions = self.config, state.versions
        size = config.buffer_size
        collected = collect_arrivals(self.devices, state.starts, versions.newest, size, size)
        arrivals = collected.arrivals
        staleness = np.array([arrival.staleness for arrival in arrivals])
        parameters = StalenessParameters(config.staleness_decay, config.staleness_grace)
        weights = compute_mixing_weight(1.0, staleness, config.staleness, parameters)
        inputs = build_versioned_inputs(
            self.clients,
            np.array([arrival.client for arrival in arrivals]),
            [versions.get(arrival.start_version) for arrival in arrivals],
            weights,
            config.training,
            self.seed,
            np.full(size, int(state.round_num) + 1),
            compute_padded_size(size),
        )
        result: VersionedResult = self.run_round(inputs)
        model = self.step(versions.get(versions.newest), result, weights)
        new_versions = add_versions(versions, [model], collected.starts.versions)
        metrics = self.build_metrics(collected, result, staleness)
        return RoundOutput(ServerState(np.int32(state.round_num + 1), collected.starts, new_versions), metrics)

    def step(self, model: Weights, result: VersionedResult, weights: np.ndarray) -> Weights:
        """Step 2: eta_g / K * sum_i s_i delta_i, over the K updates that are finite."""
        is_finite = np.asarray(result.is_finite)[: len(weights)] > 0
        rate = self.config.server_learning_rate * (weights[is_finite].mean() if is_finite.any() else 0.0)
        updates = iter(result.mean_update)
        return tuple(
            (array + rate * np.asarray(next(updates))).astype(array.dtype) if array.dtype.kind == "f" else array
            for array in model
        )

    def build_metrics(self, collected: Collected, result: VersionedResult, staleness: np.ndarray) -> dict[str, float]:
        model_bytes = compute_model_bytes(self.initial_weights)
        sent = (collected.num_handed_out * model_bytes, len(collected.arrivals) * model_bytes)
        time_s = float(collected.starts.clock.time_s)
        metrics = build_common_metrics(result.totals, time_s, len(collected.arrivals), *sent)
        metrics["mean_staleness"] = float(staleness.mean())
        metrics["max_staleness"] = int(staleness.max())
        return metrics

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {"global": state.versions.get(state.versions.newest)}

    def client_model(self, state: ServerState) -> list[str]:
        del state
        return ["global"] * len(self.clients.clients)

    def client_columns(self, state: ServerState) -> dict[str, list]:
        return {"starts": state.starts.num_starts.tolist()}


def build_buffered_process(
    model_spec: ModelSpec, clients: FederatedData, config: BufferedConfig, seed: int
) -> FederatedProcess:
    """FedBuff as a process; needs a TFF context (see `launch.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation.
      config: settings.
      seed: of the first weights, the times and the local training.
    """
    initial_weights = initialize_weights(model_spec, seed)
    model_bytes = compute_model_bytes(initial_weights)
    num_examples = np.array([count_examples_trained(config.training, n) for n in clients.num_train])
    places = compute_padded_size(config.buffer_size)
    functions = _Buffered(
        clients=clients,
        config=config,
        seed=seed,
        initial_weights=initial_weights,
        devices=SimulatedDevices(config.times, seed, clients.profiles, num_examples, model_bytes, model_bytes),
        run_round=build_versioned_round(model_spec, config.training, initial_weights, places),
    )
    return FederatedProcess(
        initialize=functions.initialize,
        next=functions.next,
        get_models=functions.get_models,
        client_model=functions.client_model,
        personalize=use_shared_model(functions.get_models, functions.client_model),
        client_columns=functions.client_columns,
    )
