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

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.buffered.config import BufferedConfig
from tff_algos.client.cohort import compute_padded_size
from tff_algos.protocol import FederatedProcess, RoundOutput, Weights
from tff_algos.rounds.asynchronous_server import (
    ServerState,
    advance_server,
    build_asynchronous_process,
    build_devices,
    build_server_metrics,
)
from tff_algos.rounds.versioned_round import VersionedResult, build_versioned_inputs, build_versioned_round
from tff_algos.simulation.arrivals import collect_arrivals
from tff_algos.simulation.model_versions import add_versions
from tff_algos.simulation.staleness import StalenessParameters, compute_mixing_weight
from tff_algos.simulation.training_times import SimulatedDevices
from tff_algos.weights import initialize_weights


@dataclasses.dataclass(frozen=True)
class _Buffered:
    """The process's functions, over what stays the same from round to round."""

    clients: FederatedData
    config: BufferedConfig
    seed: int
    initial_weights: Weights
    devices: SimulatedDevices
    run_round: Callable

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
        metrics = build_server_metrics(result.totals, collected, self.initial_weights)
        return RoundOutput(advance_server(state, collected, new_versions), metrics)

    def step(self, model: Weights, result: VersionedResult, weights: np.ndarray) -> Weights:
        """Step 2: eta_g / K * sum_i s_i delta_i, over the K updates that are finite."""
        is_finite = np.asarray(result.is_finite)[: len(weights)] > 0
        rate = self.config.server_learning_rate * (weights[is_finite].mean() if is_finite.any() else 0.0)
        updates = iter(result.mean_update)
        return tuple(
            (array + rate * np.asarray(next(updates))).astype(array.dtype) if array.dtype.kind == "f" else array
            for array in model
        )


def build_buffered_process(
    model_spec: ModelSpec, clients: FederatedData, config: BufferedConfig, seed: int
) -> FederatedProcess:
    """FedBuff as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation.
      config: settings.
      seed: of the first weights, the times and the local training.
    """
    initial_weights = initialize_weights(model_spec, seed)
    devices = build_devices(clients, config.times, config.training, initial_weights, seed)
    places = compute_padded_size(config.buffer_size)
    functions = _Buffered(
        clients=clients,
        config=config,
        seed=seed,
        initial_weights=initial_weights,
        devices=devices,
        run_round=build_versioned_round(model_spec, config.training, initial_weights, places),
    )
    return build_asynchronous_process(devices, initial_weights, functions.next)
