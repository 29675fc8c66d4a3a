"""What asynchronous devices did, read from the log of a round, and the joules that work costs. NumPy only."""

from collections.abc import Iterable, Sequence

import numpy as np

from datasets.federated_data import EnergyRates
from tff_algos.protocol import ClientWork
from tff_algos.simulation.event_clock import LogRow
from tff_algos.simulation.training_times import SimulatedDevices, draw_shares_done


def list_logged_work(
    devices: SimulatedDevices,
    log: Sequence[LogRow],
    num_starts: np.ndarray,
    is_first_round: bool,
    bytes_of_ready: float = 0,
) -> list[ClientWork]:
    """The work of a round, each kind of event a part.

    A device that is ready has trained its examples, also if its update is never sent; one that dropped out has trained
    the share that it had done. The model is counted when it is handed out, as in `bytes_down`, which does not have the
    first model of all devices.

    Args:
      devices: the simulated devices.
      log: of the round, in order of time.
      num_starts: of each device before the round, shape (clients,).
      is_first_round: whether the log begins with the starts at time 0, which `num_starts` has already.
      bytes_of_ready: what a ready device sends so that the server can choose.
    """
    # `bytes_down` of the first round does not have the first models, so energy leaves their starts out, too.
    rows = list(log)[np.count_nonzero(num_starts) if is_first_round else 0 :]
    clients = {what: np.array([row.client for row in rows if row.what == what], np.int64) for what in _WHATS}
    ready, dropped = clients["ready"], clients["dropped"]
    done = draw_shares_done(devices, dropped, _find_starts(rows, num_starts))
    return [
        ClientWork(clients["start"], bytes_down=devices.bytes_down),
        ClientWork(ready, devices.num_examples[ready], bytes_up=bytes_of_ready),
        ClientWork(dropped, devices.num_examples[dropped] * done),
        ClientWork(clients["received"], bytes_up=devices.bytes_up),
    ]


_WHATS = ("start", "ready", "dropped", "received")


def _find_starts(rows: Sequence[LogRow], num_starts: np.ndarray) -> np.ndarray:
    """For each row of a drop-out, which of its starts the device was in, 0-based; int64."""
    counts, found = num_starts.copy(), []
    for row in rows:
        counts[row.client] += row.what == "start"
        if row.what == "dropped":
            found.append(counts[row.client] - 1)
    return np.array(found, np.int64)


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
