"""The clock of asynchronous training: which device becomes ready, drops out or comes back, and when. NumPy only.

The state consists of arrays alone, so that a run can stop and resume between any two calls. A min-heap of (time,
sequence number, device) is made only while events are taken, from those that are due. A device has at most one pending
event, so it is in exactly one place: it trains (READY or DROPPED is pending), it is away (BACK is pending), or it waits
for the server (nothing is pending).

All functions are pure; times are float64 seconds. A caller that aggregates every `period_s` takes the events until
`index * period_s`. A running sum of periods would round differently from a product, which always gives the same times.
"""

import heapq
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

READY, DROPPED, BACK = 0, 1, 2
KIND_NAMES = ("ready", "dropped", "back")
WHATS = (*KIND_NAMES, "start", "scheduled", "received", "missing", "rejected")


class ClockState(NamedTuple):
    """The time and the pending events.

    Attributes:
      time_s: of the last event taken, or the time until which events were taken; float64, shape ().
      next_sequence: sequence number of the next event; ties in time are broken by it; int64, shape ().
      event_times_s: of each device's pending event, inf if it waits for the server; float64, shape (clients,).
      event_kinds: READY, DROPPED or BACK, meaningful where an event is pending; int8, shape (clients,).
      event_sequences: its sequence number, meaningful where an event is pending; int64, shape (clients,).
      away_s: how long the device will be away if its pending event is DROPPED, else 0; float64, shape (clients,).
    """

    time_s: np.ndarray
    next_sequence: np.ndarray
    event_times_s: np.ndarray
    event_kinds: np.ndarray
    event_sequences: np.ndarray
    away_s: np.ndarray


class Event(NamedTuple):
    """Something that happened to a device, `kind` being READY, DROPPED or BACK."""

    time_s: float
    sequence: int
    client: int
    kind: int


class LogRow(NamedTuple):
    """A row of `events.csv`.

    Attributes:
      time_s: virtual time.
      client: index of the device.
      what: "start" (it has got a model), "ready", "scheduled", "received" (the server has its update), "dropped" or
        "back"; of a client that was asked for a round also "missing" (no answer when the round ended) or "rejected".
      model_version: of the model that it trains, trained or lost.
    """

    time_s: float
    client: int
    what: str
    model_version: int


class PackedLog(NamedTuple):
    """Rows as arrays, for a state, each of shape (rows,).

    Times are float64, clients and versions int64, and what happened is an index into WHATS, int8.
    """

    times_s: np.ndarray
    clients: np.ndarray
    whats: np.ndarray
    versions: np.ndarray


def pack_log(rows: Iterable[LogRow]) -> PackedLog:
    """The rows as arrays."""
    times_s, clients, whats, versions = zip(*rows, strict=True) if (rows := list(rows)) else ((),) * 4
    codes = [WHATS.index(what) for what in whats]
    return PackedLog(
        np.array(times_s, np.float64),
        np.array(clients, np.int64),
        np.array(codes, np.int8),
        np.array(versions, np.int64),
    )


def unpack_log(log: PackedLog) -> list[LogRow]:
    """The inverse of `pack_log`."""
    columns = (log.times_s.tolist(), log.clients.tolist(), log.whats.tolist(), log.versions.tolist())
    return [
        LogRow(time_s, client, WHATS[what], version) for time_s, client, what, version in zip(*columns, strict=True)
    ]


def create_clock(num_clients: int) -> ClockState:
    """A clock at 0 s; all devices wait for the server."""
    return ClockState(
        time_s=np.asarray(0.0),
        next_sequence=np.asarray(0, np.int64),
        event_times_s=np.full(num_clients, np.inf),
        event_kinds=np.zeros(num_clients, np.int8),
        event_sequences=np.zeros(num_clients, np.int64),
        away_s=np.zeros(num_clients),
    )


def start_devices(
    state: ClockState, clients: np.ndarray, durations_s: np.ndarray, away_s: np.ndarray | None = None
) -> ClockState:
    """Devices start to train at the clock's time; sequence numbers are given out in the order of `clients`.

    Args:
      state: the clock.
      clients: indices of devices that wait for the server, each once, shape (devices,).
      durations_s: until each is ready or drops out, finite and above 0, shape (devices,).
      away_s: 0 where the device becomes ready; above 0 where it drops out instead, loses its work and comes back after
        this time, shape (devices,). None: nobody drops out.

    Raises:
      ValueError: a device has a pending event, or a time is out of its range.
    """
    away_s = np.zeros(len(clients)) if away_s is None else away_s
    # A second pending event would overwrite the first, and with it lose a training.
    busy = clients[np.isfinite(state.event_times_s[clients])]
    if len(busy):
        raise ValueError(f"device {busy[0]} starts, but has a pending event: expected devices that wait for the server")
    if not ((durations_s > 0) & (durations_s < np.inf) & (away_s >= 0) & (away_s < np.inf)).all():
        raise ValueError("a device trains or is away for a time that is not finite, or not above 0 s")
    # Each start gets a number, so that ties in time are broken alike in every run.
    sequences = state.next_sequence + np.arange(len(clients))
    return state._replace(
        next_sequence=np.asarray(state.next_sequence + len(clients)),
        event_times_s=_replace_at(state.event_times_s, clients, state.time_s + durations_s),
        event_kinds=_replace_at(state.event_kinds, clients, np.where(away_s > 0, DROPPED, READY)),
        event_sequences=_replace_at(state.event_sequences, clients, sequences),
        away_s=_replace_at(state.away_s, clients, away_s),
    )


def take_until(state: ClockState, until_s: float) -> tuple[ClockState, list[Event]]:
    """All events up to and including a time, in order of (time, sequence number, device); the clock then shows it.

    A device whose DROPPED is taken gets a pending BACK, which is taken as well if it is due.

    Raises:
      ValueError: the time is before the clock's or not finite.
    """
    if not state.time_s <= until_s < np.inf:
        raise ValueError(
            f"events until {until_s} s: expected a finite time from {state.time_s} s on, where the clock is"
        )
    # A device has at most two events until then: it drops out and comes back, and then waits for the server.
    state, events = _take_due(state, until_s, len(state.event_times_s) * 2)
    # Not the time of the last event: what the caller starts now starts at the end of the period.
    return state._replace(time_s=np.asarray(until_s, np.float64)), events


def take_next(state: ClockState) -> tuple[ClockState, Event | None]:
    """The next event, at which the clock then stands; None, and the clock as it was, if nothing is pending."""
    next_s = find_next_time(state)
    if next_s == np.inf:
        return state, None
    # One alone: the server may start devices before it takes the next event, even one of the same time.
    state, events = _take_due(state, next_s, at_most=1)
    return state._replace(time_s=np.asarray(next_s, np.float64)), events[0]


def take_all(state: ClockState) -> tuple[ClockState, list[Event]]:
    """All events that are pending, and those that follow from them, as `take_next` would give them one by one."""
    events = []
    # A device that drops out comes back later than the last event that was pending, so once may not be enough.
    while len(pending_s := state.event_times_s[np.isfinite(state.event_times_s)]):
        state, taken = take_until(state, float(pending_s.max()))
        events += taken
    return state, events


def find_next_time(state: ClockState) -> float:
    """When the next event happens, in s; inf if nothing is pending."""
    return float(state.event_times_s.min(initial=np.inf))


def find_waiting(state: ClockState) -> np.ndarray:
    """Devices without a pending event, which the server may start: int64, ascending."""
    return np.flatnonzero(np.isinf(state.event_times_s))


def find_away(state: ClockState) -> np.ndarray:
    """Devices that dropped out and are not back: int64, ascending."""
    return np.flatnonzero(np.isfinite(state.event_times_s) & (state.event_kinds == BACK))


def count_training(state: ClockState) -> int:
    """How many devices train, also those that will drop out; without those that are away."""
    # An absent device has a pending event, too, but trains nothing.
    return int(np.count_nonzero(np.isfinite(state.event_times_s) & (state.event_kinds != BACK)))


def log_events(events: Iterable[Event], model_versions: np.ndarray) -> list[LogRow]:
    """Rows of events taken; `model_versions` is the version that each device started from, shape (clients,)."""
    return [
        LogRow(event.time_s, event.client, KIND_NAMES[event.kind], int(model_versions[event.client]))
        for event in events
    ]


def log_clients(time_s: float, clients: np.ndarray, what: str, model_versions: np.ndarray) -> list[LogRow]:
    """Rows of what happens to several devices at one time; `model_versions` has shape (clients of the federation,)."""
    return [LogRow(float(time_s), int(client), what, int(model_versions[client])) for client in clients]


def _take_due(state: ClockState, until_s: float, at_most: int) -> tuple[ClockState, list[Event]]:
    """Takes events up to a time, in order, at most `at_most`; leaves the clock's time to the caller."""
    times_s, kinds = state.event_times_s.copy(), state.event_kinds.copy()
    sequences, away_s = state.event_sequences.copy(), state.away_s.copy()
    next_sequence = int(state.next_sequence)
    due = np.flatnonzero(times_s <= until_s)
    # Only what is due enters the heap; the sequence number decides between events at the same time, so that the order
    # does not depend on how the arrays were built.
    heap = list(zip(times_s[due].tolist(), sequences[due].tolist(), due.tolist(), strict=True))
    heapq.heapify(heap)
    events = []
    while heap and len(events) < at_most:
        time_s, sequence, client = heapq.heappop(heap)
        events.append(Event(time_s, sequence, client, int(kinds[client])))
        times_s[client] = np.inf
        if events[-1].kind == DROPPED:
            # The device comes back later, possibly within the time asked for.
            times_s[client], kinds[client], sequences[client] = time_s + away_s[client], BACK, next_sequence
            away_s[client] = 0.0
            next_sequence += 1
            if times_s[client] <= until_s:
                heapq.heappush(heap, (float(times_s[client]), int(sequences[client]), client))
    return ClockState(state.time_s, np.asarray(next_sequence, np.int64), times_s, kinds, sequences, away_s), events


def _replace_at(array: np.ndarray, indices: np.ndarray, values: np.ndarray) -> np.ndarray:
    array = array.copy()
    array[indices] = values
    return array
