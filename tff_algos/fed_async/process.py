"""FedAsync: Xie, Koyejo and Gupta 2019, "Asynchronous Federated Optimization", Algorithm 1.

All devices train all the time. Whenever one is ready, the server mixes its model into the global one and hands it the
new one:
  x_t = (1 - alpha_t) x_{t-1} + alpha_t x_new,  alpha_t = alpha * s(staleness).
A round of this process is `updates_per_round` such updates.

| paper | here |
|---|---|
| x_t | newest of `ServerState.versions` |
| t, tau | numbers of versions, `DeviceStarts.versions` |
| alpha, s, a, b | `mixing_weight`, `staleness`, `staleness_decay`, `staleness_grace` |
| rho, gamma, H | `training.proximal_weight`, `training.learning_rate`, `training.steps` |

In the simulation devices train in waves: all arrivals whose start model is known are trained in one call, and mixed in
in the order of their arrival.

Deviations from the paper:
- The paper's server triggers workers; here every device restarts at once, on the clock of the asynchronous systems.
- The staleness counts from 0 (see `staleness`).
- An update that is not finite leaves the model as it is; the version counts all the same.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.cohort import compute_padded_size
from tff_algos.client.local_training import LocalResult
from tff_algos.fed_async.config import FedAsyncConfig
from tff_algos.protocol import FederatedProcess, RoundOutput, Weights
from tff_algos.rounds.aggregation import RoundTotals
from tff_algos.rounds.asynchronous_server import (
    ServerState,
    advance_server,
    build_asynchronous_process,
    build_devices,
    build_server_metrics,
)
from tff_algos.rounds.versioned_round import build_versioned_inputs, build_versioned_updates
from tff_algos.simulation.arrivals import Arrival, collect_arrivals
from tff_algos.simulation.model_versions import add_versions
from tff_algos.simulation.staleness import StalenessParameters, compute_mixing_weight
from tff_algos.simulation.training_times import SimulatedDevices
from tff_algos.weights import initialize_weights


def mix(model: Weights, start: Weights, result: LocalResult, mixing_weight: float) -> Weights:
    """(1 - alpha_t) x + alpha_t x_new for floating-point weights; x if the update is not finite."""
    if not result.is_finite:
        return model
    deltas = iter(result.weights_delta)
    return tuple(
        ((1 - mixing_weight) * old + mixing_weight * (begun + np.asarray(next(deltas)))).astype(old.dtype)
        if old.dtype.kind == "f"
        else old
        for old, begun in zip(model, start, strict=True)
    )


def find_wave(arrivals: list[Arrival], newest_version: int) -> int:
    """How many of the first arrivals started from versions that are there; at least 1 of any arrivals."""
    waiting = (i for i, arrival in enumerate(arrivals) if arrival.start_version > newest_version)
    return next(waiting, len(arrivals))


def sum_totals(results: list[LocalResult]) -> RoundTotals:
    """The scalars of a round, whose updates have no common mean to drift from."""
    loss_sum, num_trained = (
        sum(float(getattr(each, name)) for each in results) for name in ("loss_sum", "num_trained")
    )
    return RoundTotals(loss_sum, num_trained, sum(not each.is_finite for each in results), 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class _FedAsync:
    """The process's functions, over what stays the same from round to round."""

    clients: FederatedData
    config: FedAsyncConfig
    seed: int
    initial_weights: Weights
    devices: SimulatedDevices
    compute_updates: Callable

    def train(self, wave: list[Arrival], models: dict[int, Weights]) -> list[LocalResult]:
        """The updates of arrivals whose start models are there; empty places fill the call up."""
        inputs = build_versioned_inputs(
            self.clients,
            np.array([arrival.client for arrival in wave]),
            [models[arrival.start_version] for arrival in wave],
            np.ones(len(wave)),
            self.config.training,
            self.seed,
            np.array([arrival.newest_version + 1 for arrival in wave]),
            compute_padded_size(self.config.updates_per_round),
        )
        return self.compute_updates(inputs)[: len(wave)]

    def next(self, state: ServerState) -> RoundOutput:
        config, versions = self.config, state.versions
        parameters = StalenessParameters(config.staleness_decay, config.staleness_grace)
        collected = collect_arrivals(self.devices, state.starts, versions.newest, config.updates_per_round, 1)
        models = {int(number): versions.get(int(number)) for number in versions.numbers}
        newest, results, waiting = versions.newest, [], collected.arrivals
        while waiting:
            size = find_wave(waiting, newest)
            wave, waiting = waiting[:size], waiting[size:]
            results += self.train(wave, models)
            for arrival, result in zip(wave, results[-size:], strict=True):
                weight = compute_mixing_weight(config.mixing_weight, arrival.staleness, config.staleness, parameters)
                models[newest + 1] = mix(models[newest], models[arrival.start_version], result, float(weight))
                newest += 1
        new_models = [models[number] for number in range(versions.newest + 1, newest + 1)]
        new_versions = add_versions(versions, new_models, collected.starts.versions)
        metrics = build_server_metrics(sum_totals(results), collected, self.initial_weights)
        return RoundOutput(advance_server(state, collected, new_versions), metrics)


def build_fed_async_process(
    model_spec: ModelSpec, clients: FederatedData, config: FedAsyncConfig, seed: int
) -> FederatedProcess:
    """FedAsync as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation.
      config: settings.
      seed: of the first weights, the times and the local training.
    """
    initial_weights = initialize_weights(model_spec, seed)
    devices = build_devices(clients, config.times, config.training, initial_weights, seed)
    functions = _FedAsync(
        clients=clients,
        config=config,
        seed=seed,
        initial_weights=initial_weights,
        devices=devices,
        compute_updates=build_versioned_updates(model_spec, config.training, initial_weights),
    )
    return build_asynchronous_process(devices, initial_weights, functions.next)
