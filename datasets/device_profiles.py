"""Simulated devices: how fast each client computes and how fast its link is, drawn from a seed.

Speeds and link rates of phones spread over an order of magnitude and are skewed to the right, so both are log-normal:
  value = median * exp(sigma * z), z ~ N(0, 1), with one z for the processor and another for the link.
With sigma 0.6 a device at the 90th percentile computes 4.7 times as fast as one at the 10th; with sigma 0.8 its link is
7.8 times as fast. A client's uplink and downlink share their z: bad reception is bad both ways. The default medians
are those of a mobile link: 32 Mbit/s down, 8 Mbit/s up. They are assumptions, not measurements.
"""

import numpy as np

from datasets.errors import DatasetError
from datasets.federated_data import DeviceProfiles


def draw_device_profiles(
    num_clients: int,
    seed: int,
    *,
    median_examples_per_s: float = 500.0,
    speed_sigma: float = 0.6,
    median_downlink_bytes_per_s: float = 4e6,
    median_uplink_bytes_per_s: float = 1e6,
    link_sigma: float = 0.8,
    availability: float = 1.0,
) -> DeviceProfiles:
    """Draws a device for every client. Client i's device depends on the seed and i alone, not on `num_clients`.

    Args:
      num_clients: at least 1.
      seed: a non-negative integer.
      median_examples_per_s: median training speed, examples of the reference model a second.
      speed_sigma: standard deviation of the log speed; 0 makes all devices equal.
      median_downlink_bytes_per_s: median rate from server to client.
      median_uplink_bytes_per_s: median rate from client to server.
      link_sigma: standard deviation of the log link rate; 0 makes all links equal.
      availability: chance in (0, 1] that a device is reachable when asked; the same for all.

    Raises:
      DatasetError: a value out of its range.
    """
    medians = (median_examples_per_s, median_downlink_bytes_per_s, median_uplink_bytes_per_s)
    if num_clients < 1 or min(medians) <= 0 or min(speed_sigma, link_sigma) < 0 or not 0 < availability <= 1:
        raise DatasetError(
            "device profiles: expected clients and medians above 0, sigmas of at least 0, availability in (0, 1]"
        )
    speed_factor, link_factor = (
        np.exp(sigma * np.random.default_rng([seed, 4, quantity]).standard_normal(num_clients))
        for quantity, sigma in enumerate((speed_sigma, link_sigma))
    )
    return DeviceProfiles(
        examples_per_s=median_examples_per_s * speed_factor,
        downlink_bytes_per_s=median_downlink_bytes_per_s * link_factor,
        uplink_bytes_per_s=median_uplink_bytes_per_s * link_factor,
        availability=np.full(num_clients, float(availability)),
    )
