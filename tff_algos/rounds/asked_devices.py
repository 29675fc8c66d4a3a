"""Devices that are asked over a network, in place of simulated ones, by servers that do not wait for all.

Nobody knows how long a start will last, so its end lies far off on the clock of events until it comes. Then the event
gets its time, and is taken at once:

| happened | event |
|---|---|
| a device that trains answers | READY |
| it leaves, or was not there when it was to start | DROPPED; the end of its absence lies far off |
| it joins again | BACK |

Who trains what is read from the server's state, and whoever has not been asked for that by this object is. So a server
that goes on from a checkpoint needs nothing else, and so do those that return, and those whose version is made later.

Each event has a tick of its own, later than the one before. Hence no order of events that happen at one time can be
lost, and a record (`tff_algos.simulation.recorded`) repeats them exactly.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tff_algos.client.local_training import LocalResult
from tff_algos.protocol import Weights
from tff_algos.rounds.network import ANSWERED, JOINED, LEFT, REJECTED, TICK_S, Happening, Network, Task
from tff_algos.rounds.partners import AskedBy, RepeatedFrom
from tff_algos.rounds.versioned_round import VersionedInput, VersionedResult, average_updates, derive_start_seed
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.arrivals import DeviceStarts
from tff_algos.simulation.event_clock import BACK, DROPPED, READY, ClockState, Event, take_next, take_until
from tff_algos.simulation.recorded import FAR_S, build_recorded_devices, find_far
from tff_algos.simulation.training_times import SimulatedDevices, StartPlan
from tff_algos.weights import is_float


def round_to_tick(time_s: float) -> float:
    """The nearest time that is a whole number of ticks."""
    return round(time_s / TICK_S) * TICK_S


class AskedDevices:
    """The methods of `SimulatedDevices` by what happens in a network.

    What was answered in a round is forgotten when the next one begins.

    Args:
      simulated: the devices in whose place they are; what they draw is drawn by the same seed.
      network: of the clients; its clock starts when the first event is waited for.
      training: gives the rate of each version.
      first_version: the number of the first model; each version counts as the round whose number is as far from 1.
    """

    counts_by_start = True

    def __init__(
        self, simulated: SimulatedDevices, network: Network, training: LocalTrainingConfig, first_version: int
    ):
        self._simulated, self._network = simulated, network
        self._training, self._first_version = training, first_version
        self._starts: DeviceStarts  # from when it watches on
        self._get_model: Callable[[int], Weights | None] = lambda version: None
        self._asked: dict[int, int] = {}  # the number of the start that each client was asked for last
        self._answers: dict[bytes, LocalResult] = {}  # by the start's seed, which no other start has
        self._rejected: set[tuple[int, int]] = set()
        self._held: Happening | None = None  # too late for the period in which it was taken from the network
        self._heard_s, self._has_begun = 0.0, False  # the time of what was taken last; whether the clock has started

    @property
    def seed(self) -> int:
        """The run's."""
        return self._simulated.seed

    @property
    def longest_training_s(self) -> float:
        """What a period is a share of: T_max of the settings, though a device may take longer."""
        return self._simulated.longest_training_s

    def begin_round(self, round_num: int) -> None:
        """A round begins; the answers of the round before are forgotten."""
        del round_num
        self._answers.clear()
        self._rejected.clear()

    def watch(self, starts: DeviceStarts, get_model: Callable[[int], Weights | None]) -> None:
        """Is told who trains what, see `SimulatedDevices.watch`; must be called before events are taken."""
        self._starts, self._get_model = starts, get_model

    def plan_starts(self, clients: np.ndarray, num_starts: np.ndarray, time_s: float) -> StartPlan:
        """All become ready, nobody knows when."""
        del num_starts, time_s
        return StartPlan(np.full(len(clients), FAR_S), np.zeros(len(clients)))

    def take_next(self, clock: ClockState) -> tuple[ClockState, Event | None]:
        """Waits for what happens next."""
        return self._take(clock, None)

    def take_until(self, clock: ClockState, until_s: float) -> tuple[ClockState, list[Event]]:
        """Waits until a time, a whole number of ticks, and gives what happened until then."""
        events: list[Event] = []
        while True:
            # One by one: who left can be back within the same time.
            clock, event = self._take(clock, until_s)
            if event is None:
                return take_until(clock, until_s)[0], events
            events.append(event)

    def take_all(self, clock: ClockState) -> tuple[ClockState, list[Event]]:
        """Cannot be waited for: who left may never come back."""
        raise NotImplementedError

    def find_rejected(self, clients: np.ndarray, start_numbers: np.ndarray) -> np.ndarray:
        """Whose answer of its start of this number was rejected in this round; bool, shape (clients,)."""
        keys = zip(clients.tolist(), start_numbers.tolist(), strict=True)
        return np.array([key in self._rejected for key in keys], bool)

    def compute_updates(self, inputs: Sequence[VersionedInput]) -> list[LocalResult]:
        """What the clients of these inputs answered in this round, in the place of `build_versioned_updates`."""
        return [self._answers[given.client.seed.tobytes()] for given in inputs if given.client.path]

    def run_round(self, inputs: Sequence[VersionedInput]) -> VersionedResult:
        """The mean of what they answered, in the place of `build_versioned_round`."""
        weights = [given.client.weight for given in inputs if given.client.path]
        return average_updates(self.compute_updates(inputs), np.array(weights, np.float32))

    def _take(self, clock: ClockState, until_s: float | None) -> tuple[ClockState, Event | None]:
        if not self._has_begun:
            self._heard_s, self._has_begun = float(clock.time_s), True
            self._network.start_clock(self._heard_s)
        while True:
            self._ask(clock)
            # A seat is not where the clock has it: whoever was to start was not there, or a server began anew.
            moved = self._find_moved(clock)
            # What has happened by now may be that it came.
            wait_s = until_s if moved is None else min(self._network.now_s(), np.inf if until_s is None else until_s)
            if happening := self._hear(wait_s):
                client, kind = happening.client, self._find_kind(clock, happening)
            elif moved is not None:
                client, kind = moved
            else:
                return clock, None
            if kind is None:
                continue
            time_s = max(self._heard_s, float(clock.time_s) + TICK_S)
            if until_s is not None and time_s > until_s:
                self._held = happening
                return clock, None
            if happening is not None and kind == READY:
                self._keep(happening)
            if kind == DROPPED:
                self._network.withdraw(client)
            return take_next(_put(clock, client, kind, time_s))

    def _hear(self, until_s: float | None) -> Happening | None:
        happening, self._held = self._held or self._network.take(until_s), None
        if happening is not None:
            self._heard_s = max(self._heard_s, happening.time_s)
        return happening

    def _is_present(self) -> np.ndarray:
        is_present = np.zeros(len(self._simulated.num_examples), bool)
        is_present[self._network.find_present()] = True
        return is_present

    def _ask(self, clock: ClockState) -> None:
        """Asks whoever is there, trains by the state, and was not asked for that by this object."""
        starts, tasks = self._starts, []
        for client in np.flatnonzero(_find_training(clock) & self._is_present()).tolist():
            number, version = int(starts.num_starts[client]), int(starts.versions[client])
            if self._asked.get(client) == number or (model := self._get_model(version)) is None:
                continue
            self._asked[client] = number
            rate = np.float32(self._training.round_learning_rate(version + 1 - self._first_version))
            seed = derive_start_seed(self.seed, client, number)
            tasks.append(Task(client, number, version, model, seed, rate))
        self._network.ask(*tasks)

    def _find_moved(self, clock: ClockState) -> tuple[int, int] | None:
        """A client that trains and is not there, or is away and is there, and its next event."""
        is_present, is_far = self._is_present(), find_far(clock)
        is_back = is_far & (clock.event_kinds == BACK) & is_present
        moved = np.flatnonzero(_find_training(clock) & ~is_present | is_back)
        return (int(moved[0]), BACK if is_back[moved[0]] else DROPPED) if len(moved) else None

    def _find_kind(self, clock: ClockState, happening: Happening) -> int | None:
        """The event that comes of a happening; None if it changes nothing, as an answer that nobody waits for."""
        client = happening.client
        if happening.what == JOINED:
            return BACK if find_far(clock)[client] and clock.event_kinds[client] == BACK else None
        if not _find_training(clock)[client]:
            return None
        if happening.what == LEFT:
            return DROPPED
        assert happening.what in (ANSWERED, REJECTED)
        # The number after a server began anew can be an older one's: what this object did not ask for is of no use.
        is_due = happening.number == int(self._starts.num_starts[client]) == self._asked.get(client)
        return READY if is_due else None

    def _keep(self, happening: Happening) -> None:
        client, number, result = happening.client, happening.number, happening.result
        if happening.what == REJECTED or result is None or not result.is_finite:
            self._rejected.add((client, number))
            model = self._get_model(int(self._starts.versions[client]))
            assert model is not None  # which the client was sent
            result = _build_rejected(model)
        self._answers[derive_start_seed(self.seed, client, number).tobytes()] = result


# Whoever an asynchronous server may hand its model to.
Devices = SimulatedDevices | AskedDevices


def replace_devices(
    devices: Any, partners: AskedBy | RepeatedFrom, training: LocalTrainingConfig, first_version: int
) -> Devices:
    """The devices of a process that works with these partners, see `AskedDevices`.

    The terms of those that are asked are of rounds that wait, and do nothing here.
    """
    if isinstance(partners, RepeatedFrom):
        return build_recorded_devices(devices, partners.record)
    return AskedDevices(devices, partners.network, training, first_version)


def _find_training(clock: ClockState) -> np.ndarray:
    """Who trains and has not answered; bool, shape (clients,)."""
    return find_far(clock) & (clock.event_kinds == READY)


def _put(clock: ClockState, client: int, kind: int, time_s: float) -> ClockState:
    """The clock on which a client's pending event, which lay far off, is this one, at this time."""
    times_s, kinds, away_s = clock.event_times_s.copy(), clock.event_kinds.copy(), clock.away_s.copy()
    times_s[client], kinds[client], away_s[client] = time_s, kind, FAR_S if kind == DROPPED else 0.0
    return clock._replace(event_times_s=times_s, event_kinds=kinds, away_s=away_s)


def _build_rejected(model: Weights) -> LocalResult:
    """What local training makes of an update that is not finite."""
    deltas = tuple(np.zeros(array.shape, array.dtype) for array in model if is_float(array))
    zero = np.float32(0)
    return LocalResult(deltas, zero, zero, zero, np.bool_(False))
