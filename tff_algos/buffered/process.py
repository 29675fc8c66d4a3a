"""FedBuff: Nguyen et al. 2022, "Federated Learning with Buffered Asynchronous Aggregation", Algorithm 1.

`concurrency` devices train at a time, or all of them. A round:
1. The server waits until `buffer_size` updates have arrived. When a device has sent one, another that is drawn among
   those that wait, or it itself, starts at once with the newest model.
2. The server adds their mean, each update weighted by its staleness, times its learning rate, to the global model.

| paper | here |
|---|---|
| K | `buffer_size` |
| M, concurrency | `concurrency` |
| eta_g, eta_l, Q | `server.learning_rate`, `training.learning_rate`, `training.steps` |
| s(tau) = 1 / sqrt(1 + tau) | `staleness` polynomial with `staleness_decay` 0.5 |

Deviations from the paper: by default every device trains all the time (`concurrency` 0); no secure
aggregation and no privacy; an update that is not finite is left out of the mean; `training.proximal_weight` can add the
proximal term of the other asynchronous systems to the loss; the server's step can be an optimizer's.

The learning rate is that of the round in which the update is used; of devices that are asked over a network, and of
those that repeat a record, that of the version from which they started, and their seeds go by the start.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.buffered.config import BufferedConfig
from tff_algos.client.cohort import compute_padded_size
from tff_algos.protocol import RoundOutput, Weights
from tff_algos.rounds.asked_devices import AskedDevices, replace_devices
from tff_algos.rounds.asynchronous_server import (
    AsynchronousProcess,
    ServerState,
    advance_server,
    build_devices,
    build_server_metrics,
)
from tff_algos.rounds.partners import AskedBy, RepeatedFrom
from tff_algos.rounds.server_step import ServerStep, build_server_step
from tff_algos.rounds.versioned_round import VersionedResult, build_versioned_inputs, build_versioned_round, spoil
from tff_algos.simulation.arrivals import (
    add_versions,
    collect_arrivals,
    compute_mixing_weight,
    find_used_versions,
)
from tff_algos.weights import initialize_weights


@dataclasses.dataclass(frozen=True, eq=False)
class BufferedProcess(AsynchronousProcess):
    """FedBuff; `run_round` is the computation of `build_versioned_round`, `server_step` the server's step."""

    config: BufferedConfig
    run_round: Callable
    server_step: ServerStep

    def ask(self, partners: AskedBy | RepeatedFrom) -> "BufferedProcess":
        """The process, whose devices are asked, or repeat what a record says."""
        devices = replace_devices(self.devices, partners, self.config.training, first_version=0)
        run_round = devices.run_round if isinstance(devices, AskedDevices) else self.run_round
        return dataclasses.replace(self, devices=devices, run_round=run_round)

    def initialize(self) -> ServerState:
        return super().initialize()._replace(server=self.server_step.initialize_one())

    def next(self, state: ServerState) -> RoundOutput:
        config, versions = self.config, state.versions
        size = config.buffer_size
        # Step 1
        devices, known = self.devices, set(versions.numbers.tolist())
        devices.begin_round(int(state.round_num) + 1)
        # The version that this round makes is handed out at its end, and asked for in the next one.
        get_model = lambda version: versions.get(version) if version in known else None
        collected = collect_arrivals(
            devices, state.starts, versions.newest, size, size, config.concurrency, get_model=get_model
        )
        arrivals = collected.arrivals
        staleness = np.array([arrival.staleness for arrival in arrivals])
        rule = config.staleness, config.staleness_decay, config.staleness_grace
        weights = compute_mixing_weight(1.0, staleness, *rule)
        chosen = np.array([arrival.client for arrival in arrivals])
        start_numbers = np.array([arrival.start_number for arrival in arrivals])
        round_nums, by_start = np.full(size, int(state.round_num) + 1), devices.counts_by_start
        if by_start:
            round_nums = np.array([arrival.start_version for arrival in arrivals]) + 1  # version v is of round v + 1
        inputs = build_versioned_inputs(
            self.clients,
            chosen,
            [versions.get(arrival.start_version) for arrival in arrivals],
            weights,
            config.training,
            self.seed,
            round_nums,
            compute_padded_size(size),
            start_numbers if by_start else None,
        )
        inputs = spoil(inputs, devices.find_rejected(chosen, start_numbers))
        result: VersionedResult = self.run_round(inputs)
        # Step 2
        model, server = self.step(versions.get(versions.newest), result, weights, state.server)
        new_versions = add_versions(versions, [model], find_used_versions(collected.starts))
        metrics = build_server_metrics(result.totals, collected, self.initial_weights)
        return RoundOutput(advance_server(state, collected, new_versions)._replace(server=server), metrics)

    def step(
        self, model: Weights, result: VersionedResult, weights: np.ndarray, server: tuple[np.ndarray, ...]
    ) -> tuple[Weights, tuple[np.ndarray, ...]]:
        """Step 2: eta_g / K * sum_i s_i delta_i, over the K updates that are finite; nothing if none is."""
        is_finite = np.asarray(result.is_finite)[: len(weights)] > 0
        # The round gives sum_i s_i delta_i / sum_i s_i. Times the mean of the s_i, that is the sum divided by K.
        if not is_finite.any():
            return model, server
        return self.server_step.step_one(model, result.mean_update, server, factor=weights[is_finite].mean())


def build_buffered_process(
    model_spec: ModelSpec, clients: FederatedData, config: BufferedConfig, seed: int
) -> BufferedProcess:
    """FedBuff as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation.
      config: settings.
      seed: of the first weights, the times and the local training.
    """
    initial_weights = initialize_weights(model_spec, seed)
    num_slots = compute_padded_size(config.buffer_size)
    return BufferedProcess(
        clients=clients,
        config=config,
        seed=seed,
        initial_weights=initial_weights,
        devices=build_devices(clients, config.times, config.training, initial_weights, seed),
        run_round=build_versioned_round(model_spec, config.training, initial_weights, num_slots),
        server_step=build_server_step(config.server, initial_weights),
    )
