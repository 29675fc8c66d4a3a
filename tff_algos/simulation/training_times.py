"""How long a simulated device trains, when it drops out, and when it can be reached. NumPy only.

A device starts once the server has handed it a model. From there on:

1. It waits for its next availability window, if it is outside one.
2. It trains for T_k (see `TrainingTimesConfig.speed`).
3. With probability `dropout` it drops out at a moment drawn uniformly from its training, loses its work, and is away
   for a time ~ U(0, max_away_s).
4. Otherwise it is ready as soon as it is in a window again.

Windows: where the device profiles have some, they are these. If not, time is cut into cycles of
`availability_cycle_s`. In each cycle a device can be reached for a fraction of it, `availability_share` *
`DeviceProfiles.availability`, beginning at a moment (its phase) that is drawn once for each device, uniform in the
cycle. A window need not hold a whole training: only the download of the model and the upload of the update need one,
and they take effect at once in it.

Each draw is a pure function of (seed, purpose, device, number of its starts so far), where the number of starts takes
the place of the round. So the draws are the same after a resume, and in whatever order the devices are asked.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from datasets.federated_data import DeviceProfiles
from tff_algos.protocol import Weights
from tff_algos.seeds import derive_seed
from tff_algos.settings.asynchronous import SPEEDS, TrainingTimesConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.event_clock import ClockState, Event, take_all, take_next, take_until
from tff_algos.simulation.virtual_clock import compute_client_seconds, compute_window_wait_s


class StartPlan(NamedTuple):
    """What will happen to devices that start, as `event_clock.start_devices` takes it.

    Attributes:
      durations_s: until the device is ready or drops out, above 0, float64, shape (devices,).
      away_s: how long it is away after it dropped out, above 0; 0 if it becomes ready; float64, shape (devices,).
    """

    durations_s: np.ndarray
    away_s: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class SimulatedDevices:
    """What the times depend on. Its methods are all that an asynchronous server asks of devices, whoever they are.

    Attributes:
      counts_by_start: whether what a device is told goes by its start, as it must where the device trains before the
        server knows in which round it will use the update; else by that round.
      config: the settings.
      seed: the run's.
      profiles: of the devices; read by speed "profiles" and by availability windows.
      num_examples: that each device processes in a start (steps x batch size), shape (clients,); for "profiles".
      bytes_down: of the model on its way to a device; for "profiles".
      bytes_up: of the update on its way back; for "profiles".
      label_counts: examples of each label, shape (clients, classes); for "by_label".

    Raises:
      ConfigError: the speed is by label, and the labels are no classes.
    """

    config: TrainingTimesConfig
    seed: int
    profiles: DeviceProfiles
    num_examples: np.ndarray
    bytes_down: float
    bytes_up: float
    label_counts: np.ndarray | None = None
    counts_by_start: ClassVar[bool] = False

    def __post_init__(self):
        if self.config.speed == "by_label" and self.label_counts is not None and not self.label_counts.shape[1]:
            others = ", ".join(speed for speed in SPEEDS if speed != "by_label")
            raise ConfigError("speed", self.config.speed, f"one of {others} for a task whose labels are no classes")

    @property
    def longest_training_s(self) -> float:
        """T_max, see `compute_longest_training_s`."""
        return compute_longest_training_s(self)

    def plan_starts(self, clients: np.ndarray, num_starts: np.ndarray, time_s: float) -> StartPlan:
        """What will happen to devices that are handed a model, see the function of this name."""
        return plan_starts(self, clients, num_starts, time_s)

    def take_until(self, clock: ClockState, until_s: float) -> tuple[ClockState, list[Event]]:
        """What happens up to a time, see `event_clock.take_until`."""
        return take_until(clock, until_s)

    def take_all(self, clock: ClockState) -> tuple[ClockState, list[Event]]:
        """What happens until nothing is pending, see `event_clock.take_all`."""
        return take_all(clock)

    def take_next(self, clock: ClockState) -> tuple[ClockState, Event | None]:
        """What happens next, see `event_clock.take_next`."""
        return take_next(clock)

    def begin_round(self, round_num: int) -> None:
        """A round begins; of simulated devices there are as many as are asked for."""
        del round_num

    def watch(self, starts: Any, get_model: Callable[[int], Weights | None]) -> None:
        """Is told who trains what before events are taken; simulated devices do not care.

        Args:
          starts: versions and numbers of starts, as in `arrivals.DeviceStarts`.
          get_model: from a version to its model; None if it is still in the making.
        """
        del starts, get_model

    def find_rejected(self, clients: np.ndarray, start_numbers: np.ndarray) -> np.ndarray:
        """Whose update of its start of this number, from 1 on, was rejected when it came; bool, shape (clients,).

        What a simulated device sends is looked at in its round.
        """
        del start_numbers
        return np.zeros(len(clients), bool)


def plan_starts(devices: SimulatedDevices, clients: np.ndarray, num_starts: np.ndarray, time_s: float) -> StartPlan:
    """What will happen to devices that are handed a model.

    Args:
      devices: what the times depend on.
      clients: indices of those that start, shape (devices,).
      num_starts: how often each has started before this start, shape (devices,).
      time_s: virtual time of the start.
    """
    training_s = compute_training_s(devices, clients, num_starts)
    wait_s = compute_wait_s(devices, clients, time_s)
    finished_s = wait_s + training_s
    # A training that ends outside a window is sent when the next one opens.
    finished_s = finished_s + compute_wait_s(devices, clients, time_s + finished_s)
    durations_s, away_s = finished_s, np.zeros(len(clients))
    if devices.config.dropout > 0:
        drops = np.flatnonzero(_draw(devices.seed, "drop-out", clients, num_starts) <= devices.config.dropout)
        dropping = (clients[drops], num_starts[drops])
        done = draw_shares_done(devices, *dropping)
        durations_s[drops] = wait_s[drops] + training_s[drops] * done
        away_s[drops] = devices.config.max_away_s * _draw(devices.seed, "time away", *dropping)
    return StartPlan(durations_s, away_s)


def draw_shares_done(devices: SimulatedDevices, clients: np.ndarray, num_starts: np.ndarray) -> np.ndarray:
    """How much of its training a device has done if it drops out in its start number `num_starts`, in (0, 1]."""
    return _draw(devices.seed, "moment of drop-out", clients, num_starts)


def compute_training_s(devices: SimulatedDevices, clients: np.ndarray, num_starts: np.ndarray) -> np.ndarray:
    """T_k of devices in their start number `num_starts` (0-based), above 0, float64, shape (len(clients),)."""
    config = devices.config
    if config.speed == "profiles":
        examples = devices.num_examples[clients]
        return compute_client_seconds(devices.profiles, clients, examples, devices.bytes_down, devices.bytes_up)
    if config.speed == "redrawn":
        return config.max_training_s * _draw(devices.seed, "redrawn training time", clients, num_starts)
    drawn = _draw_persistent(devices.seed, len(devices.num_examples))
    if config.speed == "by_label":
        # The same times as with persistent speeds, only dealt out by label, so that runs compare.
        drawn = np.sort(drawn)[rank_by_label(devices.label_counts)]
    return config.max_training_s * drawn[clients]


@functools.lru_cache(maxsize=1)
def _draw_persistent(seed: int, num_clients: int) -> np.ndarray:
    """The draws of all devices, which are the same at every start, so that one run makes them once."""
    clients = np.arange(num_clients)
    drawn = _draw(seed, "persistent training time", clients, np.zeros_like(clients))
    # One array serves all starts of a run.
    drawn.flags.writeable = False
    return drawn


def rank_by_label(label_counts: np.ndarray) -> np.ndarray:
    """Each device's rank in the order of the highest label that it holds, then of its mean label, then of its index.

    Args:
      label_counts: examples of each label, shape (clients, classes).

    Returns:
      int64, shape (clients,), a permutation.
    """
    labels = np.arange(label_counts.shape[1])
    highest = np.where(label_counts > 0, labels, -1).max(axis=1)
    mean = label_counts @ labels / np.maximum(label_counts.sum(axis=1), 1)
    # Twice: an order becomes each device's rank.
    return np.argsort(np.lexsort((mean, highest)))


def compute_longest_training_s(devices: SimulatedDevices) -> float:
    """T_max: no training takes longer, windows aside; with the speed "profiles", the time of the slowest device."""
    if devices.config.speed != "profiles":
        return devices.config.max_training_s
    clients = np.arange(len(devices.num_examples))
    return float(compute_training_s(devices, clients, np.zeros_like(clients)).max())


def compute_wait_s(devices: SimulatedDevices, clients: np.ndarray, time_s: np.ndarray | float) -> np.ndarray:
    """How long until each device can be reached, 0 if it can be now; float64, shape (len(clients),).

    Args:
      devices: what the times depend on.
      clients: indices of the devices.
      time_s: virtual time, the same for all or of each device.
    """
    if devices.profiles.windows is not None:
        return compute_window_wait_s(devices.profiles.windows, clients, time_s)
    cycle_s = devices.config.availability_cycle_s
    if cycle_s == 0:
        return np.zeros(len(clients))
    phase_s = cycle_s * _draw(devices.seed, "availability phase", clients, np.zeros_like(clients))
    since_opening_s = np.mod(time_s - phase_s, cycle_s)
    share = devices.config.availability_share * devices.profiles.availability[clients]
    is_open = since_opening_s < share * cycle_s
    return np.where(is_open, 0.0, cycle_s - since_opening_s)


def _draw(seed: int, purpose: str, clients: np.ndarray, num_starts: np.ndarray) -> np.ndarray:
    """U(0, 1] of 53 bits for each (device, number of starts); never 0, so that every training takes time."""
    pairs = zip(clients.tolist(), num_starts.tolist(), strict=True)
    words = [derive_seed(seed, purpose, round_num=starts, client=client) for client, starts in pairs]
    # Two 32-bit words give the 53 bits of a float64's fraction: 27 from the first, 26 from the second.
    high, low = np.array(words, np.int32).reshape(-1, 2).view(np.uint32).T.astype(np.float64)
    return 1.0 - (np.floor(high / 2**5) * 2**26 + np.floor(low / 2**6)) / 2**53
