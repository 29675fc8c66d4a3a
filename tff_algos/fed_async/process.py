"""FedAsync: Xie, Koyejo and Gupta 2019, "Asynchronous Federated Optimization", Algorithm 1.

`concurrency` devices train at a time, or all of them. A round of this process is `updates_per_round` updates, each in
three steps:
1. A device becomes ready. Another that is drawn among those that wait, or it itself, starts at once, from the model
   that step 3 gives.
2. It sends the model x_new, trained from the version that it got last.
3. The server mixes x_new into the global model, with a weight that falls with the staleness of that version:
   x_t = (1 - alpha_t) x_{t-1} + alpha_t x_new,  alpha_t = alpha * s(staleness).

| paper | here |
|---|---|
| x_t | newest of `ServerState.versions` |
| t, tau | numbers of versions, `DeviceStarts.versions` |
| alpha, s, a, b | `mixing_weight`, `staleness`, `staleness_decay`, `staleness_grace` |
| rho, gamma, H | `training.proximal_weight`, `training.learning_rate`, `training.steps` |

Who becomes ready when does not depend on what is trained, so the simulation finds all arrivals of a round first. It
then trains them in waves: all arrivals whose start model exists by then, in one call. They are mixed in in the order of
their arrival.

Deviations from the paper:
- The paper's server triggers workers; here `concurrency` devices train at a time, by default all, each of which then
  restarts at once, on the clock of the asynchronous systems.
- The staleness counts from 0 (see `simulation/staleness.py`).
- An update that is not finite leaves the model as it is, but still makes a version.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.cohort import compute_padded_size
from tff_algos.client.local_training import LocalResult
from tff_algos.fed_async.config import FedAsyncConfig
from tff_algos.protocol import RoundOutput, Weights
from tff_algos.rounds.aggregation import RoundTotals
from tff_algos.rounds.asynchronous_server import (
    AsynchronousProcess,
    ServerState,
    advance_server,
    build_devices,
    build_server_metrics,
)
from tff_algos.rounds.versioned_round import build_versioned_inputs, build_versioned_updates
from tff_algos.simulation.arrivals import (
    Arrival,
    add_versions,
    collect_arrivals,
    compute_mixing_weight,
    find_used_versions,
)
from tff_algos.weights import add_deltas, initialize_weights, is_float


def mix(model: Weights, start: Weights, result: LocalResult, mixing_weight: float) -> Weights:
    """(1 - alpha_t) x + alpha_t x_new for floating-point weights; x if the update is not finite."""
    if not result.is_finite:
        return model
    trained = add_deltas(start, map(np.asarray, result.weights_delta))
    return tuple(
        ((1 - mixing_weight) * old + mixing_weight * new).astype(old.dtype) if is_float(old) else old
        for old, new in zip(model, trained, strict=True)
    )


def find_wave(arrivals: list[Arrival], newest_version: int) -> int:
    """How many of the first arrivals started from versions that exist already; at least 1 if there are arrivals."""
    waiting = (i for i, arrival in enumerate(arrivals) if arrival.start_version > newest_version)
    return next(waiting, len(arrivals))


def sum_totals(results: list[LocalResult]) -> RoundTotals:
    """The scalars of a round; the drift is 0, since updates that are mixed in one by one have no common mean."""
    loss_sum, num_trained = (
        sum(float(getattr(each, name)) for each in results) for name in ("loss_sum", "num_trained")
    )
    return RoundTotals(loss_sum, num_trained, sum(not each.is_finite for each in results), 0.0, 0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class FedAsyncProcess(AsynchronousProcess):
    """FedAsync; `compute_updates` is the computation of `build_versioned_updates`."""

    config: FedAsyncConfig
    compute_updates: Callable

    # What a process whose clients cannot be asked says of it.
    obstacle = "of asynchronous algorithms, only async_periodic and buffered have such clients"

    def next(self, state: ServerState) -> RoundOutput:
        config, versions = self.config, state.versions
        # Step 1
        collected = collect_arrivals(
            self.devices, state.starts, versions.newest, config.updates_per_round, 1, config.concurrency
        )
        models = {int(number): versions.get(int(number)) for number in versions.numbers}
        newest, results, waiting = versions.newest, [], collected.arrivals
        # A device that arrives late in the round may have started from a model mixed in this very round. So the round
        # is trained in waves, each of as many arrivals as start from models that exist by then.
        while waiting:
            # Step 2
            size = find_wave(waiting, newest)
            wave, waiting = waiting[:size], waiting[size:]
            results += self.train(wave, models)
            # Step 3
            for arrival, result in zip(wave, results[-size:], strict=True):
                rule = config.staleness, config.staleness_decay, config.staleness_grace
                weight = compute_mixing_weight(config.mixing_weight, arrival.staleness, *rule)
                models[newest + 1] = mix(models[newest], models[arrival.start_version], result, float(weight))
                newest += 1
        # Devices may have started from versions that were made and replaced within the round.
        new_models = [models[number] for number in range(versions.newest + 1, newest + 1)]
        new_versions = add_versions(versions, new_models, find_used_versions(collected.starts))
        metrics = build_server_metrics(sum_totals(results), collected, self.initial_weights)
        return RoundOutput(advance_server(state, collected, new_versions), metrics)

    def train(self, wave: list[Arrival], models: dict[int, Weights]) -> list[LocalResult]:
        """The updates of arrivals whose start models exist.

        Every call is padded to the size of the largest wave, since each distinct size costs the worker an executor.
        """
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


def build_fed_async_process(
    model_spec: ModelSpec, clients: FederatedData, config: FedAsyncConfig, seed: int
) -> FedAsyncProcess:
    """FedAsync as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation.
      config: settings.
      seed: of the first weights, the times and the local training.
    """
    initial_weights = initialize_weights(model_spec, seed)
    return FedAsyncProcess(
        clients=clients,
        config=config,
        seed=seed,
        initial_weights=initial_weights,
        devices=build_devices(clients, config.times, config.training, initial_weights, seed),
        compute_updates=build_versioned_updates(model_spec, config.training, initial_weights),
    )
