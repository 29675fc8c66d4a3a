"""Virtual time: how many seconds a round would take on the simulated devices."""

from collections.abc import Sequence

import numpy as np

from datasets.federated_data import DeviceProfiles
from tff_algos.protocol import ClientWork
from tff_algos.simulation.availability import compute_window_wait_s


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


def compute_synchronous_round_s(client_seconds: np.ndarray) -> float:
    """A synchronous round lasts as long as its slowest participant; without participants it takes no time."""
    return float(client_seconds.max(initial=0.0))


def compute_phases_s(profiles: DeviceProfiles, phases: Sequence[ClientWork], start_s: float) -> float:
    """Virtual seconds of the parts of a synchronous round, one after the other.

    The server waits for every participant. Where devices have windows, one that cannot be reached gets its model when
    its next window opens, and a training that ends outside a window is sent when the next one opens.

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
        durations_s.append(compute_synchronous_round_s(seconds))
    return sum(durations_s)
