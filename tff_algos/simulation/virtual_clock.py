"""Virtual time: how many seconds a round would take on the simulated devices.

When devices can be reached: windows of the day, and by chance. NumPy only.

A device with windows gets a model, and sends one, only inside them; its training need not fit into one. A synchronous
server draws its cohort among the devices that can be reached:

1. It waits until as many devices are in a window at once as it asks for, or, if there never are, for the moment of the
   coming day at which the most are. A server that asks for all devices takes those that can be reached, if any can.
2. Each of these can be reached with the probability `DeviceProfiles.availability`, drawn anew in every round. If none
   can, one of them is drawn all the same.
"""

from collections.abc import Sequence

import numpy as np

from datasets.federated_data import DAY_S, DeviceProfiles, Windows
from tff_algos.protocol import ClientWork
from tff_algos.seeds import derive_generator
from tff_algos.settings.config_fields import ConfigError

_LEAST_WAIT_S = 1e-6  # a moment that is meant to be an opening can lie a rounding before it


def compute_window_wait_s(windows: Windows, clients: np.ndarray, time_s: np.ndarray | float) -> np.ndarray:
    """How long until each device is in a window, 0 if it is in one; float64, shape (len(clients),).

    Args:
      windows: of all devices.
      clients: indices of the devices.
      time_s: virtual time, the same for all or of each device.
    """
    since_s, lengths_s = _measure(windows, clients, time_s)
    return np.where(since_s < lengths_s, 0.0, np.where(lengths_s > 0, DAY_S - since_s, np.inf)).min(axis=1)


def find_available(
    profiles: DeviceProfiles, candidates: np.ndarray, num_asked: int, time_s: float, seed: int, round_num: int
) -> tuple[float, np.ndarray]:
    """The devices that a synchronous server can ask, and how many virtual seconds it waits until it can.

    Args:
      profiles: the simulated devices.
      candidates: indices of the devices that it would ask, ascending.
      num_asked: how many it wants; 0 or as many as there are for all that can be reached, then it waits for one.
      time_s: virtual time at which it begins.
      seed: the run's.
      round_num: 1-based.

    Returns:
      (seconds, indices, ascending); no indices only without candidates.
    """
    wait_s, available = 0.0, candidates
    if profiles.windows is not None and len(candidates):
        # Who asks for all would wait for ever for devices that are never there together.
        needed = num_asked if 0 < num_asked < len(candidates) else 1
        wait_s, available = _wait_for_windows(profiles.windows, candidates, needed, time_s)
    chances = profiles.availability[available]
    if (chances < 1).any():
        generator = derive_generator(seed, "availability", round_num)
        # One draw for each device of the federation: whether one can be reached does not depend on the others.
        drawn = generator.random(len(profiles.availability))[available] < chances
        available = available[drawn] if drawn.any() else generator.choice(available, 1)
    return wait_s, available


def count_most_at_once(profiles: DeviceProfiles, num_clients: int) -> int:
    """The largest number of the first `num_clients` devices that are ever in a window at once."""
    if profiles.windows is None:
        return num_clients
    # More than there are: it waits for the moment at which the most are there.
    return len(_wait_for_windows(profiles.windows, np.arange(num_clients), num_clients + 1, 0.0)[1])


def check_cohort_size(cohort_size: int, profiles: DeviceProfiles, num_clients: int) -> None:
    """Raises ConfigError if so many devices are never in a window at once; 0 or all asks for no number."""
    most = count_most_at_once(profiles, num_clients)
    if most < cohort_size < num_clients:
        expected = f"at most {most}, since no more devices are ever available at once by --device_profiles"
        raise ConfigError("cohort_size", cohort_size, expected)


def _measure(windows: Windows, clients: np.ndarray, time_s: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Seconds since each window of each device opened last, in [0, a day), and its length; (clients, windows)."""
    since_s = np.mod(np.reshape(time_s, (-1, 1)) - windows.starts_s[clients], DAY_S)
    return np.where(DAY_S - since_s < _LEAST_WAIT_S, 0.0, since_s), windows.lengths_s[clients]


def _wait_for_windows(
    windows: Windows, candidates: np.ndarray, num_asked: int, time_s: float
) -> tuple[float, np.ndarray]:
    """Step 1: how long to wait, and which of the candidates are in a window then."""
    since_s, lengths_s = _measure(windows, candidates, time_s)
    is_open = since_s < lengths_s
    # Within a day each window opens once, and closes once unless that comes later. More devices can be there only at
    # an opening, so these are the moments to look at.
    openings_s, closings_s = DAY_S - since_s, np.where(is_open, 0.0, DAY_S) - since_s + lengths_s
    moments_s = np.unique(np.append(openings_s[lengths_s > 0], 0.0))
    opened, closed = (
        np.searchsorted(np.sort(times_s, axis=None), moments_s, "right") for times_s in (openings_s, closings_s)
    )
    num_open = is_open.sum() + opened - closed
    enough = np.flatnonzero(num_open >= num_asked)
    wait_s = moments_s[enough[0] if len(enough) else num_open.argmax()]
    is_open_then = is_open.astype(int) + (openings_s <= wait_s) - (closings_s <= wait_s) > 0
    return float(wait_s), candidates[is_open_then.any(axis=1)]


def compute_client_seconds(
    profiles: DeviceProfiles,
    clients: np.ndarray,
    num_examples: np.ndarray | float,
    bytes_down: np.ndarray | float,
    bytes_up: np.ndarray | float,
) -> np.ndarray:
    """Download, training and upload of each client, float64, shape (len(clients),).

    Args:
      profiles: the simulated devices.
      clients: their indices, shape (participants,).
      num_examples: examples that each processes (examples x epochs x models trained), shape (participants,).
      bytes_down: bytes that each receives, a number or shape (participants,).
      bytes_up: bytes that each sends, likewise.
    """
    return (
        bytes_down / profiles.downlink_bytes_per_s[clients]
        + num_examples / profiles.examples_per_s[clients]
        + bytes_up / profiles.uplink_bytes_per_s[clients]
    )


def compute_phases_s(profiles: DeviceProfiles, phases: Sequence[ClientWork], start_s: float) -> float:
    """Virtual seconds of the parts of a synchronous round, one after the other.

    The server waits for every participant, so a part lasts as long as its slowest one; nobody takes no time. Where
    devices have windows, one that cannot be reached gets its model when its next window opens, and a training that ends
    outside a window is sent when the next one opens.

    Args:
      profiles: the simulated devices.
      phases: what is done in each part.
      start_s: virtual time at which the first part begins.
    """
    durations_s: list[float] = []
    for work in phases:
        seconds = compute_client_seconds(profiles, *work)
        if profiles.windows is not None:
            now_s = start_s + sum(durations_s)
            ready_s = compute_window_wait_s(profiles.windows, work.clients, now_s) + seconds
            seconds = ready_s + compute_window_wait_s(profiles.windows, work.clients, now_s + ready_s)
        durations_s.append(float(seconds.max(initial=0.0)))
    return sum(durations_s)
