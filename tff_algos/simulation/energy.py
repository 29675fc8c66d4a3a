"""What devices spend: joules an example that they train on, and joules a byte, both ways. NumPy only."""

from collections.abc import Iterable

import numpy as np

from datasets.federated_data import EnergyRates
from tff_algos.protocol import ClientWork


def compute_joules(rates: EnergyRates, parts: Iterable[ClientWork]) -> np.ndarray:
    """Joules of each device: examples x joules an example + bytes x joules a byte; float64, shape (devices,).

    The examples are those of virtual time: an example costs the same whatever model it trains. Idling and waiting cost
    nothing.

    Args:
      rates: of all devices.
      parts: what they did.
    """
    joules = np.zeros(len(rates.joules_per_example))
    for work in parts:
        clients = work.clients
        spent = work.num_examples * rates.joules_per_example[clients]
        spent = spent + work.bytes_down * rates.joules_per_byte_down[clients]
        spent = spent + work.bytes_up * rates.joules_per_byte_up[clients]
        np.add.at(joules, clients, spent)  # a device may be named twice
    return joules
