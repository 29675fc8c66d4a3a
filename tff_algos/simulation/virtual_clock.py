"""Virtual time: how many seconds a round would take on the simulated devices."""

import numpy as np

from datasets.federated_data import DeviceProfiles


def compute_client_seconds(
    profiles: DeviceProfiles,
    clients: np.ndarray,
    num_examples: np.ndarray,
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
