"""Asynchronous FL with periodic aggregation: Hu, Chen and Larsson 2021.

"Device Scheduling and Update Aggregation Policies for Asynchronous Federated Learning". Aggregation t = 1, 2, ...:
1. The clock advances by one period T; K(t) are the devices that became ready in it.
2. At most R of them are scheduled (section III-A). They send what they trained from theta(s_k(t)), the global model
   that they got last; the loss has the regulariser of Eq. (8).
3. theta(t + 1) is the weighted mean of the trained models, Eq. (10). The weights are by examples, Eq. (13), or by
   examples and age, Eq. (14).
4. All ready devices, scheduled or not, get theta(t + 1) and start again; the others go on undisturbed.

| paper | here |
|---|---|
| N, R, T | `len(clients.clients)`, `max_scheduled`, `period_fraction` * T_max |
| T_k, T_max | `training_times` |
| theta(t), s_k(t), a_k(t) | rows of `ServerState.models`, `start_indices`, `compute_ages` |
| c_k(t) | `ServerState.counts` |
| E, alpha_k, lambda | `training.steps`, `training.learning_rate`, `training.proximal_weight` |
| gamma | `gamma` |

In the simulation a device trains when it is scheduled, from the model that it got. The result is the same as if it had
trained when it started, and devices that are not scheduled cost nothing. Only a policy that looks at updates
(significance) has all ready devices trained; their updates come back to the host, which averages the scheduled ones.

With `waiting="synchronous"` the server waits for every device before it schedules. With `proximal_weight=0` this is the
FedAvg of the paper, Eq. (5), with the weights of the scheduled devices as in its section IV. Limit cases: all devices
ready in each period is synchronous FedAvg with the scheduled devices as cohort; gamma = 1 is equal weighting; R >= N
makes all policies alike.

Deviations from the paper:
- Eq. (7) with t' < t (see below).
- An update that is not finite is left out, and the weights of the others are scaled up to 1.
- Devices can drop out, an extension; one that did gets the global model at the first aggregation after it is back.
- A period in which nobody is ready changes nothing but the time. It still counts as an aggregation in the numbering t.
- The learning rate is that of the aggregation in which the update is sent; of devices that are asked over a network,
  and of those that repeat a record, that of the version from which they started, and their seeds go by the start.
- Section IV draws T_k "in every global iteration", and so do we: no device is slow for good. The paper's reasons speak
  of "slower devices", which is `training_times.speed="persistent"`.
- The server's step can be an optimizer's, or shorter than the whole way to the mean.
- Mini-batches come from shuffled passes over a device's examples; those of Eq. (4) are drawn at random.

Device k starts from theta(s_k(t)), and its age is a_k(t) = t - s_k(t). Eq. (7) is taken with t' < t. As printed, with
t' <= t, a ready device would count its present readiness as the reception of a model that it has yet to get, and would
have the age -1. A device that was never ready before has s_k = 1, the initial model. The freshest age is 0.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.async_periodic.config import AsyncPeriodicConfig
from tff_algos.client.cohort import compute_padded_size
from tff_algos.client.local_training import LocalResult
from tff_algos.protocol import ClientWork, FederatedProcess, RoundOutput, Weights
from tff_algos.rounds.aggregation import RoundTotals, build_common_metrics
from tff_algos.rounds.asked_devices import AskedDevices, Devices, replace_devices, round_to_tick
from tff_algos.rounds.asynchronous_server import build_devices
from tff_algos.rounds.partners import AskedBy, RepeatedFrom
from tff_algos.rounds.server_step import ServerStep, build_server_step
from tff_algos.rounds.versioned_round import (
    VersionedInput,
    average_updates,
    build_versioned_inputs,
    build_versioned_round,
    build_versioned_updates,
    compute_update_norms,
    spoil,
)
from tff_algos.seeds import derive_generator
from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.arrivals import DeviceStarts
from tff_algos.simulation.device_work import list_logged_work
from tff_algos.simulation.event_clock import (
    READY,
    ClockState,
    Event,
    LogRow,
    PackedLog,
    create_clock,
    find_away,
    find_waiting,
    log_clients,
    log_events,
    pack_log,
    start_devices,
    unpack_log,
)
from tff_algos.simulation.scheduling import POLICIES, SchedulingContext, count_scheduled, schedule
from tff_algos.weights import add_deltas, compute_model_bytes, initialize_weights, is_float, stack_models, take_model

FIRST_INDEX = 1


def create_start_indices(num_clients: int) -> np.ndarray:
    """s_k(1): all devices start from theta(1); int64, shape (clients,)."""
    return np.full(num_clients, FIRST_INDEX, np.int64)


def record_reception(start_indices: np.ndarray, clients: np.ndarray, index: int) -> np.ndarray:
    """s_k, Eq. (7), after devices got theta(`index`); index = t + 1 for the ready ones of aggregation t."""
    start_indices = start_indices.copy()
    start_indices[clients] = index
    return start_indices


def compute_ages(start_indices: np.ndarray, index: int) -> np.ndarray:
    """a_k(t) = t - s_k(t), Eq. (9), at aggregation t = `index`; int64, shape (clients,)."""
    return index - start_indices


def compute_weights(
    weighting: str,
    averaged_devices: str,
    scheduled: np.ndarray,
    num_examples: np.ndarray,
    ages: np.ndarray,
    gamma: float,
) -> np.ndarray:
    """w_k(t) of all devices, float64, shape (clients,), sums to 1.

    With "all" devices, those that are not scheduled have weights as well, for their start models, Eq. (10).

    Args:
      weighting: "equal", Eq. (13), or "age_aware", Eq. (14).
      averaged_devices: the set P: "scheduled" or "all".
      scheduled: indices of the scheduled devices, at least one.
      num_examples: |S_k|, at least 1, shape (clients,).
      ages: a_k(t), shape (clients,).
      gamma: above 1 favours old updates, below 1 fresh ones; 1 is "equal", to the bit.
    """
    members = scheduled if averaged_devices == "scheduled" else np.arange(len(num_examples))
    weights = np.zeros(len(num_examples))
    counted_ages = ages[members] if weighting == "age_aware" else np.zeros(len(members))
    weights[members] = compute_age_aware_weights(num_examples[members], counted_ages, gamma)
    return weights


def compute_age_aware_weights(num_examples: np.ndarray, ages: np.ndarray, gamma: float) -> np.ndarray:
    """|S_k| gamma^a_k / sum_i |S_i| gamma^a_i, Eq. (14), over the given devices; with ages of 0 this is Eq. (13).

    The powers are divided by the largest one, in logarithms, so that none overflows and at least one is 1.
    """
    # An old device's power can overflow, and of a small gamma all powers vanish.
    logarithms = np.asarray(ages, np.float64) * np.log(gamma)
    weights = num_examples * np.exp(logarithms - logarithms.max())
    return weights / weights.sum()


NORM_BYTES = 4  # what a ready device sends for a policy that looks at updates


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: aggregations done, int32.
      clock: the event queue and the virtual time.
      models: theta(v) from the oldest version in use to the newest, stacked along axis 0, the newest last.
      start_indices: s_k, the version that each device got last, int64, shape (clients,).
      num_starts: how often each device has started, int64, shape (clients,).
      counts: c_k, how often each device has been scheduled, int64, shape (clients,).
      log: what happened since the aggregation before.
      server: of the server's step; empty for a plain one.
    """

    round_num: np.int32
    clock: ClockState
    models: Weights
    start_indices: np.ndarray
    num_starts: np.ndarray
    counts: np.ndarray
    log: PackedLog
    server: tuple[np.ndarray, ...] = ()


class Aggregation(NamedTuple):
    """The outcome of an aggregation: new model and server's state, the scalars of the training, who took part."""

    model: Weights
    server: tuple[np.ndarray, ...]
    totals: RoundTotals
    ready: np.ndarray
    scheduled: np.ndarray


def mix_models(models: Weights, version_weights: np.ndarray, mean_update: Weights, update_weight: float) -> Weights:
    """Eq. (10): start models weighted by version, plus the updates; integer weights are those of the newest version.

    A trained model is a start model plus an update. Devices that started from the same version share their start model,
    so the mean needs one product for each version, not one for each device.

    Args:
      models: stacked versions.
      version_weights: sum of the weights of the devices that started from each version, shape (versions,).
      mean_update: weighted mean of the updates, floating-point weights only.
      update_weight: sum of the weights of the devices whose updates these are.
    """
    shares, update_share = version_weights / version_weights.sum(), update_weight / version_weights.sum()
    # The shares are float64, so the start models are mixed, and the updates added, in float64.
    starts = [np.tensordot(shares, stacked, axes=1) if is_float(stacked) else stacked[-1] for stacked in models]
    mixed = add_deltas(starts, map(np.asarray, mean_update), update_share)
    return tuple(array.astype(stacked.dtype) for array, stacked in zip(mixed, models, strict=True))


@dataclasses.dataclass(frozen=True, eq=False)
class AsyncPeriodicProcess(FederatedProcess):
    """Asynchronous FL; the fields are what stays the same from aggregation to aggregation.

    Attributes:
      clients, config, seed: see `build_async_periodic_process`.
      initial_weights: theta(1).
      devices: the simulated devices, see `build_devices`; or those that are asked or recorded in their place.
      num_slots: of a call of `run_round`.
      run_round: the computation of `build_versioned_round`, for a policy that looks at no updates; else None.
      compute_updates: the computation of `build_versioned_updates`, for one that does; else None.
      server_step: the server's step.
    """

    clients: FederatedData
    config: AsyncPeriodicConfig
    seed: int
    initial_weights: Weights
    devices: Devices
    num_slots: int
    run_round: Callable | None
    compute_updates: Callable | None
    server_step: ServerStep

    @property
    def num_clients(self) -> int:
        return len(self.clients.clients)

    def ask(self, partners: AskedBy | RepeatedFrom) -> "AsyncPeriodicProcess":
        """The process, whose devices are asked, or repeat what a record says.

        Raises:
          ConfigError: the server waits for all devices, of which one may never come back.
        """
        if self.config.waiting != "periodic":
            raise ConfigError("waiting", self.config.waiting, "periodic, where devices are not simulated")
        devices = replace_devices(self.devices, partners, self.config.training, first_version=FIRST_INDEX)
        if not isinstance(devices, AskedDevices):
            return dataclasses.replace(self, devices=devices)
        return dataclasses.replace(
            self,
            devices=devices,
            run_round=None if self.run_round is None else devices.run_round,
            compute_updates=None if self.compute_updates is None else devices.compute_updates,
        )

    def initialize(self) -> ServerState:
        """All devices get the first model and start at time 0."""
        num_starts = np.zeros(self.num_clients, np.int64)
        state = ServerState(
            round_num=np.int32(0),
            clock=create_clock(self.num_clients),
            models=stack_models([self.initial_weights]),
            start_indices=create_start_indices(self.num_clients),
            num_starts=num_starts,
            counts=np.zeros(self.num_clients, np.int64),
            log=pack_log([]),
            server=self.server_step.initialize_one(),
        )
        return self.start(state, np.arange(self.num_clients))

    def start(self, state: ServerState, clients: np.ndarray) -> ServerState:
        """Devices begin to train at the clock's time."""
        plan = self.devices.plan_starts(clients, state.num_starts[clients], float(state.clock.time_s))
        num_starts = state.num_starts.copy()
        num_starts[clients] += 1
        return state._replace(clock=start_devices(state.clock, clients, *plan), num_starts=num_starts)

    def wait(self, clock: ClockState, index: int) -> tuple[ClockState, list[Event]]:
        """Step 1: the clock at aggregation `index`, and what happened until then."""
        if self.config.waiting == "periodic":
            until_s = index * self.config.period_fraction * self.devices.longest_training_s
            # Devices start at this time, too, and a record gives back whole ticks only.
            return self.devices.take_until(clock, round_to_tick(until_s) if self.devices.counts_by_start else until_s)
        return self.devices.take_all(clock)  # synchronous: devices that dropped out are waited for as well

    def build_inputs(
        self, state: ServerState, chosen: np.ndarray, weights: np.ndarray, num_slots: int
    ) -> list[VersionedInput]:
        """What devices are told when they train, with the model that each got last."""
        rows = self.find_rows(state)[chosen].tolist()
        # Many devices share a version: it is taken out of the stack once.
        versions = {row: take_model(state.models, row) for row in set(rows)}
        round_nums, start_numbers = np.full(len(chosen), int(state.round_num) + 1), None
        if self.devices.counts_by_start:
            round_nums, start_numbers = state.start_indices[chosen], state.num_starts[chosen]
        inputs = build_versioned_inputs(
            self.clients,
            chosen,
            [versions[row] for row in rows],
            weights[chosen],
            self.config.training,
            self.seed,
            round_nums,
            num_slots,
            start_numbers,
        )
        return spoil(inputs, self.devices.find_rejected(chosen, state.num_starts[chosen]))

    def find_rows(self, state: ServerState) -> np.ndarray:
        """The row of `models` that each device started from."""
        newest = int(state.round_num) + 1  # theta(t) of aggregation t, in the last row; the rows before have no gaps
        return state.start_indices - newest + len(state.models[0]) - 1

    def train_ready(self, state: ServerState, ready: np.ndarray) -> dict[int, LocalResult]:
        """The updates of all ready devices, for a policy that looks at them; none for the others."""
        if self.compute_updates is None:
            return {}
        results = self.compute_updates(self.build_inputs(state, ready, np.ones(self.num_clients), 1))
        return dict(zip(ready.tolist(), results, strict=False))  # the results end with those of empty slots

    def choose(self, state: ServerState, ready: np.ndarray, updates: dict[int, LocalResult]) -> np.ndarray:
        """Step 2: the scheduled devices, ascending."""
        norms = None
        if updates:
            norms = np.zeros(self.num_clients)
            norms[list(updates)] = compute_update_norms(list(updates.values()))
        context = SchedulingContext(self.config.max_scheduled, state.counts, norms)
        generator = derive_generator(self.seed, "scheduling", int(state.round_num) + 1)
        return schedule(self.config.scheduling, ready, context, generator)

    def aggregate(self, state: ServerState, ready: np.ndarray) -> Aggregation:
        """Steps 2 and 3."""
        newest = take_model(state.models, -1)
        if not len(ready):
            return Aggregation(newest, state.server, RoundTotals(0.0, 0.0, 0, 0.0, 0.0), ready, ready)
        config, updates = self.config, self.train_ready(state, ready)
        scheduled = self.choose(state, ready, updates)
        ages = compute_ages(state.start_indices, int(state.round_num) + 1)
        num_examples = self.clients.num_train
        weights = compute_weights(
            config.weighting, config.averaged_devices, scheduled, num_examples, ages, config.gamma
        )
        if updates:
            result = average_updates([updates[device] for device in scheduled.tolist()], weights[scheduled])
        else:
            result = self.run_round(self.build_inputs(state, scheduled, weights, self.num_slots))
        is_rejected = np.zeros(self.num_clients, bool)
        is_rejected[scheduled] = np.asarray(result.is_finite)[: len(scheduled)] == 0
        # A device whose update is left out has no weight for its start model either.
        weights = np.where(is_rejected, 0.0, weights)
        if weights.sum() == 0:
            return Aggregation(newest, state.server, result.totals, ready, scheduled)
        by_version = np.bincount(self.find_rows(state), weights, len(state.models[0]))
        mixed = mix_models(state.models, by_version, tuple(result.mean_update), weights[scheduled].sum())
        return Aggregation(*self.step(newest, mixed, state.server), result.totals, ready, scheduled)

    def step(self, newest: Weights, mixed: Weights, server: tuple) -> tuple[Weights, tuple]:
        """The server's step from the newest model along the way to the mean one; by default all of it, Eq. (10)."""
        # The mean as it is, without the rounding of a way from the newest model to it.
        if self.server_step.is_plain and self.config.server.learning_rate == 1:
            return mixed, server
        way = [mean - old for mean, old in zip(mixed, newest, strict=True) if is_float(old)]
        return self.server_step.step_one(newest, way, server)

    def watch(self, state: ServerState) -> None:
        """Tells devices that are asked who trains what."""
        row_of_first = int(state.round_num) + 2 - len(state.models[0])  # the version in the first row
        get_model = lambda version: take_model(state.models, version - row_of_first)
        self.devices.watch(DeviceStarts(state.clock, state.start_indices, state.num_starts), get_model)

    def log_events(self, state: ServerState, events: list[Event]) -> list[LogRow]:
        """Rows of events, each of an update that was rejected followed by a row that says so."""
        rows = []
        for row in log_events(events, state.start_indices):
            client, rows = np.array([row.client]), [*rows, row]
            if row.what == "ready" and self.devices.find_rejected(client, state.num_starts[client]).any():
                rows += log_clients(row.time_s, client, "rejected", state.start_indices)
        return rows

    def next(self, state: ServerState) -> RoundOutput:
        index = int(state.round_num) + 1
        self.devices.begin_round(index)
        self.watch(state)
        # Step 1
        clock, events = self.wait(state.clock, index)
        event_rows = self.log_events(state, events)
        ready = np.array(sorted(event.client for event in events if event.kind == READY), np.int64)
        # Steps 2 and 3
        done = self.aggregate(state, ready)
        metrics = self.build_metrics(state, clock, done)
        # Step 4
        receivers = find_waiting(clock)
        start_indices = record_reception(state.start_indices, receivers, index + 1)
        if self.devices.counts_by_start and self.config.averaged_devices == "scheduled":
            # Who is away trains nothing, and would keep every model since; a real one may stay away for good.
            start_indices = record_reception(start_indices, find_away(clock), index + 1)
        num_versions = index + 2 - int(start_indices.min())  # versions from the oldest that a device still trains
        models = tuple(
            np.concatenate([stacked, array[np.newaxis]])[-num_versions:]
            for stacked, array in zip(state.models, done.model, strict=True)
        )
        counts = count_scheduled(state.counts, done.scheduled)
        everyone = np.arange(self.num_clients if index == 1 else 0)  # the starts at time 0
        now_s, versions = float(clock.time_s), state.start_indices
        # In order of time: all that follows the events happens at the aggregation.
        log = [
            *log_clients(0.0, everyone, "start", versions),
            *event_rows,
            *log_clients(now_s, done.scheduled, "scheduled", versions),
            *log_clients(now_s, done.scheduled, "received", versions),
            *log_clients(now_s, receivers, "start", start_indices),
        ]
        new_state = ServerState(
            np.int32(index), clock, models, start_indices, state.num_starts, counts, pack_log(log), done.server
        )
        return RoundOutput(self.start(new_state, receivers), metrics)

    def build_metrics(self, state: ServerState, clock: ClockState, done: Aggregation) -> dict[str, float]:
        model_bytes = compute_model_bytes(self.initial_weights)
        bytes_up = len(done.scheduled) * model_bytes
        bytes_up += len(done.ready) * NORM_BYTES if self.compute_updates is not None else 0
        bytes_down = len(find_waiting(clock)) * model_bytes
        num_scheduled = len(done.scheduled)
        metrics = build_common_metrics(done.totals, float(clock.time_s), num_scheduled, bytes_down, bytes_up)
        ages = compute_ages(state.start_indices, int(state.round_num) + 1)[done.scheduled]
        steps = (new - old for new, old in zip(done.model, take_model(state.models, -1), strict=True))
        metrics["num_ready"] = len(done.ready)
        metrics["num_scheduled"] = num_scheduled
        metrics["mean_age"] = float(ages.mean()) if num_scheduled else 0.0
        metrics["max_age"] = int(ages.max(initial=0))
        metrics["scheduled_count_std"] = float(count_scheduled(state.counts, done.scheduled).std())
        metrics["update_norm"] = float(np.sqrt(sum(np.sum(np.square(step, dtype=np.float64)) for step in steps)))
        return metrics

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {"global": take_model(state.models, -1)}

    def client_model(self, state: ServerState) -> list[str]:
        return ["global"] * self.num_clients

    def client_columns(self, state: ServerState) -> dict[str, list]:
        return {"scheduled": state.counts.tolist(), "starts": state.num_starts.tolist()}

    @property
    def list_work(  # type: ignore[override]  # it is read only everywhere
        self,
    ) -> Callable[[ServerState, ServerState], list[ClientWork]] | None:
        """What a round cost the devices; None where nobody knows how far those that left had come."""
        return None if self.devices.counts_by_start else self._list_work

    def _list_work(self, state: ServerState, next_state: ServerState) -> list[ClientWork]:
        log, norm_bytes = self.get_events(next_state), NORM_BYTES if self.compute_updates is not None else 0
        return list_logged_work(self.devices, log, state.num_starts, state.round_num == 0, norm_bytes)

    def get_events(self, state: ServerState) -> list[LogRow]:
        return unpack_log(state.log)


def build_async_periodic_process(
    model_spec: ModelSpec, clients: FederatedData, config: AsyncPeriodicConfig, seed: int
) -> AsyncPeriodicProcess:
    """Asynchronous FL as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation.
      config: settings.
      seed: of the first weights, the times, the scheduling and the local training.
    """
    initial_weights = initialize_weights(model_spec, seed)
    num_slots = compute_padded_size(min(config.max_scheduled, len(clients.clients)))
    computation = (model_spec, config.training, initial_weights)
    needs_updates = POLICIES[config.scheduling].needs_updates
    return AsyncPeriodicProcess(
        clients=clients,
        config=config,
        seed=seed,
        initial_weights=initial_weights,
        devices=build_devices(clients, config.times, config.training, initial_weights, seed),
        num_slots=num_slots,
        run_round=None if needs_updates else build_versioned_round(*computation, num_slots),
        compute_updates=build_versioned_updates(*computation) if needs_updates else None,
        server_step=build_server_step(config.server, initial_weights),
    )
