"""Who reports to an asynchronous server next, and the versions of the model that devices train from. NumPy only.

The order of arrivals does not depend on what the devices learn. So the arrivals of a whole round can be found before
any of them is trained.

Weights by staleness of asynchronous aggregation (Xie et al. 2019), and FedAsync's mixing weight. NumPy only.

FedAsync's server sets x_t = (1 - alpha_t) x_{t-1} + alpha_t x_new with alpha_t = alpha * s(t - tau). Here the staleness
t - tau is the number of updates that the server mixed in between the device's start and its arrival. An update that no
other overtook thus has staleness 0 and weight alpha.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from tff_algos.protocol import Weights
from tff_algos.seeds import derive_generator
from tff_algos.settings.asynchronous import CONSTANT, HINGE, POLYNOMIAL
from tff_algos.simulation.event_clock import (
    READY,
    ClockState,
    LogRow,
    count_training,
    find_waiting,
    log_clients,
    log_events,
    start_devices,
)
from tff_algos.simulation.training_times import SimulatedDevices, StartPlan


class DeviceStarts(NamedTuple):
    """Where the devices are.

    Attributes:
      clock: the event queue and the virtual time.
      versions: the version that each device got last, int64, shape (clients,).
      num_starts: how often each device has started, int64, shape (clients,).
    """

    clock: ClockState
    versions: np.ndarray
    num_starts: np.ndarray


class Arrival(NamedTuple):
    """A device is ready.

    Attributes:
      client: its index.
      start_version: the version that it trained.
      newest_version: the newest version at that time.
      start_number: which of its starts this was, from 1 on.
    """

    client: int
    start_version: int
    newest_version: int
    start_number: int

    @property
    def staleness(self) -> int:
        """How many versions were made since the device started."""
        return self.newest_version - self.start_version


class Collected(NamedTuple):
    """Arrivals in order, the devices after them, the number of models handed out meanwhile, and the log."""

    arrivals: list[Arrival]
    starts: DeviceStarts
    num_handed_out: int
    log: list[LogRow]


class Startable(Protocol):
    """Devices that can be handed a model: `SimulatedDevices`, and those that are asked in their place."""

    @property
    def seed(self) -> int:
        """The run's."""

    def plan_starts(self, clients: np.ndarray, num_starts: np.ndarray, time_s: float) -> StartPlan:
        """See `SimulatedDevices.plan_starts`."""


def start_at(devices: Startable, starts: DeviceStarts, clients: np.ndarray, version: int) -> DeviceStarts:
    """Devices that wait for the server get a version and start to train it at the clock's time."""
    plan = devices.plan_starts(clients, starts.num_starts[clients], float(starts.clock.time_s))
    versions, num_starts = starts.versions.copy(), starts.num_starts.copy()
    versions[clients] = version
    num_starts[clients] += 1
    return DeviceStarts(start_devices(starts.clock, clients, *plan), versions, num_starts)


def choose_next(devices: Startable, starts: DeviceStarts, concurrency: int) -> np.ndarray:
    """Which devices start, ascending: as many as there are free places, drawn among those that wait for the server.

    Args:
      devices: whose seed draws; not asked if all that wait may start.
      starts: where they are.
      concurrency: how many may train at a time; 0: all.
    """
    waiting = find_waiting(starts.clock)
    # Devices that are away do not count: their slot is another's until they are back.
    free = (concurrency or len(starts.versions)) - count_training(starts.clock)
    if free >= len(waiting):
        return waiting
    # By the number of starts so far, which a resumed run knows from its state.
    generator = derive_generator(devices.seed, "next device", int(starts.num_starts.sum()))
    return np.sort(generator.choice(waiting, free, replace=False))


def find_used_versions(starts: DeviceStarts) -> np.ndarray:
    """The versions that devices train or come back from; int64."""
    return np.delete(starts.versions, find_waiting(starts.clock))


def collect_arrivals(
    devices: SimulatedDevices,
    starts: DeviceStarts,
    newest_version: int,
    num_arrivals: int,
    arrivals_per_version: int,
    concurrency: int = 0,
    get_model: Callable[[int], Weights | None] = lambda version: None,
) -> Collected:
    """The next arrivals; when a place falls free, a device starts at once, with the newest version.

    Args:
      devices: what the times depend on.
      starts: the devices before.
      newest_version: of the server's model.
      num_arrivals: how many to wait for.
      arrivals_per_version: after so many arrivals the server makes a new version, before the next device starts.
      concurrency: how many devices train at a time; 0: all, so that each starts again when it arrived or came back.
      get_model: gives devices that are asked the model of a version; None of one that is still in the making.
    """
    arrivals, num_handed_out, log = [], 0, []
    while len(arrivals) < num_arrivals:
        devices.watch(starts, get_model)
        clock, event = devices.take_next(starts.clock)
        if event is None:
            break
        starts = starts._replace(clock=clock)
        log += log_events([event], starts.versions)
        if event.kind == READY:
            client, number = np.array([event.client]), starts.num_starts[[event.client]]
            if devices.find_rejected(client, number).any():
                log += log_clients(event.time_s, client, "rejected", starts.versions)
            version = int(starts.versions[event.client])
            arrivals.append(Arrival(event.client, version, newest_version, int(number[0])))
            # Counted before a device starts: it gets the version that this update helped to make.
            newest_version += len(arrivals) % arrivals_per_version == 0
            log += log_clients(event.time_s, client, "received", starts.versions)
        chosen = choose_next(devices, starts, concurrency)
        starts = start_at(devices, starts, chosen, newest_version)
        log += log_clients(event.time_s, chosen, "start", starts.versions)
        num_handed_out += len(chosen)
    return Collected(arrivals, starts, num_handed_out, log)


class ModelVersions(NamedTuple):
    """Some versions of one model: their numbers, int64, ascending, shape (versions,), and the models, stacked alike."""

    numbers: np.ndarray
    models: Weights

    @property
    def newest(self) -> int:
        """The largest number."""
        return int(self.numbers[-1])

    def get(self, number: int) -> Weights:
        """The model of a version that is in use."""
        row = int(np.searchsorted(self.numbers, number))
        return tuple(stacked[row] for stacked in self.models)


def create_versions(model: Weights) -> ModelVersions:
    """The first model, as version 0."""
    return ModelVersions(np.zeros(1, np.int64), tuple(array[np.newaxis] for array in model))


def add_versions(versions: ModelVersions, models: list[Weights], used: np.ndarray) -> ModelVersions:
    """The versions with newer models added, numbered on from the newest, and without those that no device uses.

    The newest always stays.

    Args:
      versions: the versions so far.
      models: the newer ones, oldest first.
      used: the version that each device uses, of the old ones or the new ones, in any order.
    """
    numbers = np.concatenate([versions.numbers, versions.newest + 1 + np.arange(len(models))])
    # A version stays only while a device trains from it, so the memory does not grow with the rounds.
    in_use = np.isin(numbers, used)
    in_use[-1] = True
    stacked = tuple(
        np.concatenate([old, *(model[i][np.newaxis] for model in models)])[in_use]
        for i, old in enumerate(versions.models)
    )
    return ModelVersions(numbers[in_use], stacked)


def compute_mixing_weight(
    alpha: float, staleness: np.ndarray | int, function: str, decay: float, grace: float
) -> np.ndarray:
    """alpha_t = alpha * s(staleness), float64, in (0, alpha], the shape of `staleness`.

    | function | s(d) |
    |---|---|
    | constant | 1 |
    | polynomial | (d + 1)^-a |
    | hinge | 1 if d <= b, else 1 / (a (d - b) + 1) |

    Args:
      alpha: mixing weight of a fresh update, in (0, 1].
      staleness: updates mixed in since the device started, at least 0.
      function: one of `STALENESS_NAMES`.
      decay: a, at least 0.
      grace: b, at least 0.
    """
    staleness = np.asarray(staleness, np.float64)
    if function == CONSTANT:
        shares = np.ones_like(staleness)
    elif function == POLYNOMIAL:
        shares = (staleness + 1.0) ** -decay
    else:
        assert function == HINGE
        shares = 1.0 / (decay * np.maximum(staleness - grace, 0.0) + 1.0)
    return alpha * shares
