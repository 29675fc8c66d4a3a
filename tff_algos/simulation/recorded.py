"""Devices of which a record says how long each start lasted, and how long who left was away. NumPy only.

Times of a record are whole ticks (`tff_algos.rounds.network`), so that a start's time plus what it lasted is exactly
the time at which it ended. What had not ended when the record did lies far off.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.event_clock import ClockState, Event, LogRow, find_next_time, take_next
from tff_algos.simulation.training_times import SimulatedDevices, StartPlan

# Of what has not happened yet. No run lasts a half of it, and nothing is ever added to a time that lies so far off.
FAR_S = 2.0**40


def find_far(clock: ClockState) -> np.ndarray:
    """Whose pending event nobody knows the time of; bool, shape (clients,)."""
    return np.isfinite(clock.event_times_s) & (clock.event_times_s >= FAR_S / 2)


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedDevices(SimulatedDevices):
    """As the devices whose fields they have, but they are ready, leave and come back when a record says so.

    Attributes:
      durations_s: by (client, number of its start, from 1 on): until it was ready or left.
      away_s: likewise, of those that left: until they were back.
      rejected: likewise, the starts whose answers were rejected.
      num_rounds: of the record.
    """

    durations_s: Mapping[tuple[int, int], float] = dataclasses.field(default_factory=dict)
    away_s: Mapping[tuple[int, int], float] = dataclasses.field(default_factory=dict)
    rejected: frozenset[tuple[int, int]] = frozenset()
    num_rounds: int = 0
    counts_by_start: ClassVar[bool] = True

    def plan_starts(self, clients: np.ndarray, num_starts: np.ndarray, time_s: float) -> StartPlan:
        """What the record says will happen to devices that are handed a model."""
        del time_s
        keys = list(zip(clients.tolist(), (num_starts + 1).tolist(), strict=True))
        durations_s = np.array([self.durations_s.get(key, FAR_S) for key in keys], np.float64)
        return StartPlan(durations_s, np.array([self.away_s.get(key, 0.0) for key in keys], np.float64))

    def take_next(self, clock: ClockState) -> tuple[ClockState, Event | None]:
        """What happens next.

        Raises:
          ConfigError: the record knows of nothing more, since it is another run's.
        """
        if FAR_S / 2 <= find_next_time(clock) < np.inf:
            raise ConfigError("replay", "its record", "that of a run with these settings: nothing more happens in it")
        return take_next(clock)

    def begin_round(self, round_num: int) -> None:
        """A round begins.

        Raises:
          ConfigError: the record ends before it.
        """
        if round_num > self.num_rounds:
            raise ConfigError("rounds", round_num, f"at most {self.num_rounds}, where the record ends")

    def find_rejected(self, clients: np.ndarray, start_numbers: np.ndarray) -> np.ndarray:
        """Whose update of its start of this number the record calls rejected; bool, shape (clients,)."""
        keys = zip(clients.tolist(), start_numbers.tolist(), strict=True)
        return np.array([key in self.rejected for key in keys], bool)


def build_recorded_devices(devices: SimulatedDevices, record: Mapping[int, Sequence[LogRow]]) -> RecordedDevices:
    """These devices, but with the times of a record.

    Args:
      devices: of the same federation and settings.
      record: the rows of each round, from 1 on, in order of time, as an asynchronous process logs them.

    Raises:
      ConfigError: a device ends what it did not start.
    """
    numbers, began_s, left_s = {}, {}, {}
    durations_s, away_s, rejected = {}, {}, set()
    for round_num in sorted(record):
        for time_s, client, what, _ in record[round_num]:
            numbers[client] = numbers.get(client, 0) + (what == "start")
            key = client, numbers[client]
            if what == "start":
                began_s[client] = time_s
            elif what in ("ready", "dropped", "back", "rejected") and not numbers[client]:
                raise ConfigError("replay", f"round {round_num}", f"a start of client {client} before it is {what}")
            if what in ("ready", "dropped"):
                durations_s[key] = time_s - began_s[client]
            if what == "dropped":
                left_s[client], away_s[key] = time_s, FAR_S
            if what == "back" and client in left_s:
                away_s[key] = time_s - left_s[client]
            if what == "rejected":
                rejected.add(key)
    fields = {field.name: getattr(devices, field.name) for field in dataclasses.fields(SimulatedDevices)}
    return RecordedDevices(
        **fields,
        durations_s=durations_s,
        away_s=away_s,
        rejected=frozenset(rejected),
        num_rounds=max(record, default=0),
    )
