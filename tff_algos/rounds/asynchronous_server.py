"""Servers that take updates whenever they arrive: their state, metrics, and the process that they extend."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from tff_algos.client.local_training import count_examples_trained
from tff_algos.protocol import ClientWork, FederatedProcess, Weights
from tff_algos.rounds.aggregation import RoundTotals, build_common_metrics
from tff_algos.rounds.asked_devices import Devices
from tff_algos.settings.asynchronous import TrainingTimesConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.arrivals import Collected, DeviceStarts, ModelVersions, choose_next, create_versions, start_at
from tff_algos.simulation.device_work import list_logged_work
from tff_algos.simulation.event_clock import LogRow, PackedLog, create_clock, log_clients, pack_log, unpack_log
from tff_algos.simulation.training_times import SimulatedDevices
from tff_algos.weights import compute_model_bytes


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      starts: the clock, and which version each device trains.
      versions: the global models in use, the newest among them.
      log: what happened in the last round.
      server: of the server's optimizer; empty without.
    """

    round_num: np.int32
    starts: DeviceStarts
    versions: ModelVersions
    log: PackedLog
    server: tuple[np.ndarray, ...] = ()


def build_devices(
    clients: FederatedData, times: TrainingTimesConfig, training: LocalTrainingConfig, weights: Weights, seed: int
) -> SimulatedDevices:
    """The simulated devices of a federation that trains a model of these weights."""
    model_bytes = compute_model_bytes(weights)
    num_examples = np.array([count_examples_trained(training, n) for n in clients.num_train])
    return SimulatedDevices(times, seed, clients.profiles, num_examples, model_bytes, model_bytes, clients.label_counts)


def advance_server(state: ServerState, collected: Collected, versions: ModelVersions) -> ServerState:
    """The state after a round; the log of the first round also holds the starts at time 0."""
    # `initialize` makes no round, and only rounds are logged, so the first round reports the starts at time 0 as well.
    first = np.flatnonzero(state.starts.num_starts) if state.round_num == 0 else np.zeros(0, np.int64)
    log = pack_log([*log_clients(0.0, first, "start", state.starts.versions), *collected.log])
    return ServerState(np.int32(state.round_num + 1), collected.starts, versions, log)


def build_server_metrics(totals: RoundTotals, collected: Collected, weights: Weights) -> dict[str, float]:
    """The metrics of a round whose updates are those of `collected`, each of a model of the size of `weights`."""
    # Models that are still being trained were handed out, too: down and up do not balance within a round.
    model_bytes, num_arrivals = compute_model_bytes(weights), len(collected.arrivals)
    sent = (collected.num_handed_out * model_bytes, num_arrivals * model_bytes)
    metrics = build_common_metrics(totals, float(collected.starts.clock.time_s), num_arrivals, *sent)
    # There is at least one arrival: a round ends with the number that it waits for.
    staleness = np.array([arrival.staleness for arrival in collected.arrivals])
    return {**metrics, "mean_staleness": float(staleness.mean()), "max_staleness": int(staleness.max())}


@dataclasses.dataclass(frozen=True, eq=False)
class AsynchronousProcess(FederatedProcess):
    """A server whose clients all use its newest model; what a round does is left to the algorithm.

    Attributes:
      clients: the federation.
      config: the algorithm's settings, with `concurrency`.
      seed: the run's.
      initial_weights: the global model before the first update.
      devices: the simulated devices, see `build_devices`; or those that are asked or recorded in their place.
    """

    clients: FederatedData
    config: Any
    seed: int
    initial_weights: Weights
    devices: Devices

    def initialize(self) -> ServerState:
        """As many devices as may train at a time get the first model and start at time 0."""
        num_clients = len(self.clients.clients)
        zeros = np.zeros(num_clients, np.int64)
        nowhere = DeviceStarts(create_clock(num_clients), zeros, zeros)
        starts = start_at(self.devices, nowhere, choose_next(self.devices, nowhere, self.config.concurrency), 0)
        return ServerState(np.int32(0), starts, create_versions(self.initial_weights), pack_log([]))

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {"global": state.versions.get(state.versions.newest)}

    def client_model(self, state: ServerState) -> list[str]:
        return ["global"] * len(state.starts.versions)

    def client_columns(self, state: ServerState) -> dict[str, list]:
        return {"starts": state.starts.num_starts.tolist()}

    @property
    def list_work(  # type: ignore[override]  # it is read only everywhere
        self,
    ) -> Callable[[ServerState, ServerState], list[ClientWork]] | None:
        """What a round cost the devices; None where nobody knows how far those that left had come."""
        return None if self.devices.counts_by_start else self._list_work

    def _list_work(self, state: ServerState, next_state: ServerState) -> list[ClientWork]:
        assert isinstance(self.devices, SimulatedDevices)  # as `list_work` says
        log, is_first_round = self.get_events(next_state), state.round_num == 0
        return list_logged_work(self.devices, log, state.starts.num_starts, is_first_round)

    def get_events(self, state: ServerState) -> list[LogRow]:
        return unpack_log(state.log)
