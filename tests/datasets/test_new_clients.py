"""New clients that are drawn: who they are, and that everyone keeps name, examples, device and kind."""

import dataclasses

import numpy as np
import pytest
from refusals import assert_refused
from small_formats import format_of

from datasets.archetypes import Archetypes
from datasets.arrays import make_array_dataset
from datasets.client_source import ClientSource
from datasets.device_table import load_device_profiles
from datasets.federate import build_federated_data
from datasets.federated_data import SPLITS
from datasets.new_clients import draw_new_clients, draw_order, leave_out_new_clients
from datasets.partition_settings import PartitionSettings

NAMES = ("ann", "bob", "cleo", "dan", "eve", "fay")
# Of six, two drawn ones are dan and eve's neighbour fay.
ORDER, IN_ORDER = [0, 1, 2, 4, 3, 5], ("ann", "bob", "cleo", "eve", "dan", "fay")
NATURAL = PartitionSettings(partition="natural")


def make_arrays():
    """40 examples of each client, which carry its number, and its label in all but the first."""
    owners = np.arange(240) % 6
    x = owners.astype(np.float32).reshape(-1, 1, 1)
    y = np.where(np.arange(240) < 6, 0, owners % 3)
    return make_array_dataset("toy", (x, y), (x[:3], y[:3]), format_of(x, ("a", "b", "c")), np.array(NAMES)[owners])


def make_source():
    arrays = make_arrays()

    def read(client, split):
        return np.full((20, 1, 1), client, np.float32), np.full(20, client % 3, np.int32)

    counts = {split: np.full(6, 20) for split in ("train", "test")}
    return ClientSource("own", arrays.format, NAMES, counts, read, "d" * 64)


@pytest.mark.parametrize("make", [make_arrays, make_source])
def test_drawn_clients_are_new_and_everyone_stays_who_they_are(make, tmp_path):
    whole = build_federated_data(make(), NATURAL, str(tmp_path))
    lines = [f"{client},{100 + client},1e6,1e6,{client}-24,device {client}" for client in range(6)]
    head = "client,examples_per_s,downlink_bytes_per_s,uplink_bytes_per_s,available_h,device"
    (tmp_path / "devices.csv").write_text("\n".join([head, *lines]))
    profiles = load_device_profiles(str(tmp_path / "devices.csv"), 6, 0)
    whole = dataclasses.replace(whole, profiles=profiles, archetypes=Archetypes(("x", "y"), (0, 0), (0, 0, 0, 1, 1, 1)))
    data = draw_new_clients(whole, 2)
    assert tuple(client.name for client in data.everyone) == IN_ORDER and len(data.new_clients) == 2
    assert [client.index for client in data.everyone] == list(range(6))
    for client, place in zip(data.everyone, ORDER, strict=True):
        for split in SPLITS:
            for own, before in zip(
                data.read_split(client, split), whole.read_split(whole.clients[place], split), strict=True
            ):
                np.testing.assert_array_equal(own, before)
        assert set(data.read_split(client, "train")[0].ravel()) == {place} and client.path == whole.clients[place].path
    np.testing.assert_array_equal(data.label_counts, whole.label_counts[ORDER[:4]])
    assert data.profiles.examples_per_s.tolist() == [100, 101, 102, 104, 103, 105]
    assert data.profiles.names == tuple(f"device {place}" for place in ORDER)
    assert data.profiles.windows.starts_s[:, 0].tolist() == [3600 * place for place in ORDER]
    assert data.archetypes.of_clients == (0, 0, 0, 1, 1, 1) and data.digest == whole.digest
    np.testing.assert_array_equal(data.test_x, whole.test_x)
    trained = leave_out_new_clients(data)
    assert trained.clients == data.clients and not trained.new_clients
    assert trained.profiles.names == data.profiles.names[:4] and trained.archetypes.of_clients == (0, 0, 0, 1)
    assert_refused("new_clients=6: expected fewer than the 6 clients", draw_new_clients, whole, 6)


def test_of_two_kinds_by_name_both_have_new_ones_and_more_are_further_ones():
    """Twenty clients A_01 to A_20, then B_01 to B_20: the last eight would all be B."""
    order = draw_order(40, 8)
    assert order[32:].tolist() == [1, 16, 22, 25, 27, 29, 33, 38]
    assert sorted(order) == list(range(40)) and sorted(order[:32]) == order[:32].tolist()
    assert {*draw_order(40, 9)[31:]} > {*order[32:]}
