"""`devices.csv`: the devices of a live run as they were measured, in the columns of `--device_profiles`.

A simulation with it predicts how long other rounds would take; it knows means, and not when somebody left.
"""

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from datasets.device_table import load_device_profiles
from datasets.errors import DatasetError
from datasets.federated_data import DeviceProfiles
from launch.runs.columns import (
    AVAILABILITY,
    CLIENT,
    DOWNLINK_BYTES_PER_S,
    EXAMPLES_PER_S,
    UPLINK_BYTES_PER_S,
)
from launch.runs.tables import format_cell, write_table

COLUMNS = (CLIENT, EXAMPLES_PER_S, DOWNLINK_BYTES_PER_S, UPLINK_BYTES_PER_S, AVAILABILITY)
LEAST_AVAILABILITY = 0.01  # of a client that was never there: the column takes no 0
LEAST_S = 2.0**-20  # what took no time took a tick, so that every rate is finite


class Answer(NamedTuple):
    """What is known of an answer that came.

    Attributes:
      client: whose it is.
      examples: on which it trained, each as often as it did: examples times epochs.
      training_s: how long that took, as the client says; at most the next.
      elapsed_s: from sending the task to having the answer, by the server's clock.
      bytes_down, bytes_up: of both messages.
    """

    client: int
    examples: float
    training_s: float
    elapsed_s: float
    bytes_down: int
    bytes_up: int


class Device(NamedTuple):
    """A client's device: the median over its answers.

    Attributes:
      examples_per_s: trained in a second.
      bytes_per_s: of its link, alike both ways: what was not training was sending, and both messages share it by their
        bytes.
    """

    examples_per_s: float
    bytes_per_s: float


def write_devices(
    path: pathlib.Path, answers: Iterable[Answer], rounds_present: Sequence[int], num_rounds: int
) -> bool:
    """Writes the file, a row a client; returns whether it was written: not if nobody has answered.

    Args:
      path: the file.
      answers: all that came in time or late, in any order.
      rounds_present: of each client, in how many rounds it was there.
      num_rounds: at least 1.
    """
    devices = measure_devices(answers)
    if not devices:
        return False
    # Who never answered is taken for an ordinary one.
    usual = Device(*np.median(np.array(list(devices.values())), axis=0))
    rows = []
    for client, present in enumerate(rounds_present):
        device = devices.get(client, usual)
        there = min(max(present / num_rounds, LEAST_AVAILABILITY), 1.0)
        rates = (device.examples_per_s, device.bytes_per_s, device.bytes_per_s)
        rows.append([format_cell(value) for value in (client, *rates, there)])
    write_table(path, COLUMNS, rows)
    return True


def read_devices(path: pathlib.Path, drawn: DeviceProfiles) -> DeviceProfiles:
    """What the file says of the clients' devices; as they were drawn if it is not there or damaged."""
    try:
        found = load_device_profiles(str(path), len(drawn.availability), seed=0)
    except DatasetError:
        return drawn
    return dataclasses.replace(found, names=())


def measure_devices(answers: Iterable[Answer]) -> Mapping[int, Device]:
    """{client: its device} of those that have answered."""
    found: dict[int, list[Device]] = {}
    for each in answers:
        if each.examples > 0 and each.bytes_down + each.bytes_up > 0:
            training_s = max(each.training_s, LEAST_S)
            sending_s = max(each.elapsed_s - each.training_s, LEAST_S)
            device = Device(each.examples / training_s, (each.bytes_down + each.bytes_up) / sending_s)
            found.setdefault(each.client, []).append(device)
    return {client: Device(*np.median(np.array(devices), axis=0)) for client, devices in found.items()}
