"""A run on some of the data's own clients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_formats import format_of

from datasets.arrays import make_array_dataset
from datasets.client_source import ClientSource
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.federate import PartitionSettings, build_federated_data, keep_some_clients

NAMES = tuple("abcdefgh")
TRAIN, TEST = np.array([3, 0, 1, 4, 2, 5, 1, 2]), np.array([1, 2, 0, 1, 3, 1, 1, 2])


def make_source():
    def read(client, split):
        count = {"train": TRAIN, "test": TEST}[split][client]
        values = 100.0 * client + np.arange(count) + (0.5 if split == "test" else 0)
        return values[:, None].astype(np.float32), np.full(count, client, np.int32)

    def count_labels():
        return np.diag(TRAIN)

    counts = {"train": TRAIN, "test": TEST}
    return ClientSource(
        "own", ExampleFormat((1,), "float32", NAMES), NAMES, counts, read, "d" * 64, count_labels=count_labels
    )


def make_arrays(with_tests: bool):
    parts = []
    for split, counts in (("train", TRAIN), ("test", TEST)):
        clients = np.repeat(np.arange(8), counts * (TRAIN > 0))  # nobody has tests alone, which such data may not have
        values = 100.0 * clients + np.concatenate([np.arange(count) for count in counts * (TRAIN > 0)])
        parts.append((values[:, None].astype(np.float32) + (0.5 if split == "test" else 0), clients))
    (train_x, train_y), (test_x, test_y) = parts
    names = np.array(NAMES)
    own = {"test_clients": names[test_y]} if with_tests else {}
    return make_array_dataset(
        "own", (train_x, train_y), (test_x, test_y), format_of(train_x, NAMES), names[train_y], **own
    )


def keep_drawn_clients(source, most, seed):
    return keep_some_clients(source, PartitionSettings("natural", most_clients=most, seed=seed))


@given(most=st.integers(1, 9), seed=st.integers(0, 99))
def test_a_source_keeps_whole_clients_in_order_that_have_something_to_train_on(most, seed):
    source, kept = make_source(), keep_drawn_clients(make_source(), most, seed)
    if most >= 7:  # seven of the eight have a train example: nothing to draw, nothing changes
        assert kept.client_names == NAMES and kept.digest == source.digest
        return
    places = [NAMES.index(name) for name in kept.client_names]
    assert len(places) == most and places == sorted(places) and 1 not in places
    np.testing.assert_array_equal(kept.num_examples["train"], TRAIN[places])
    np.testing.assert_array_equal(kept.num_examples["test"], TEST[places])
    np.testing.assert_array_equal(kept.count_labels(), np.diag(TRAIN)[places])
    for place, client in enumerate(places):
        for split in ("train", "test"):
            np.testing.assert_array_equal(kept.read(place, split)[0], source.read(client, split)[0])
    assert kept.digest == keep_drawn_clients(make_source(), most, seed).digest != source.digest


def test_clients_are_drawn_by_the_seed():
    drawn = {keep_drawn_clients(make_source(), 3, seed).client_names for seed in range(20)}
    assert len(drawn) > 5
    assert {name for names in drawn for name in names} == set(NAMES) - {"b"}


@pytest.mark.parametrize("with_tests", [True, False])
def test_arrays_keep_their_clients_and_the_tests_that_are_theirs(tmp_path, with_tests):
    settings = PartitionSettings("natural", most_clients=3)
    arrays = make_arrays(with_tests)
    data = build_federated_data(arrays, settings, str(tmp_path))
    assert len(data.clients) == 3
    for client in data.clients:
        place = NAMES.index(client.name)
        x, _ = data.read_split(client, "train")
        np.testing.assert_array_equal(x[:, 0] // 100, np.full(TRAIN[place], place))
    owners = {NAMES.index(client.name) for client in data.clients}
    expected = owners if with_tests else set(np.flatnonzero(TRAIN).tolist())
    assert set((data.test_x[:, 0] // 100).astype(int).tolist()) == {owner for owner in expected if TEST[owner]}
    # The cache of client files tells them from all clients.
    assert len(build_federated_data(arrays, PartitionSettings("natural"), str(tmp_path)).clients) > 3


def test_the_common_test_set_of_a_source_is_that_of_the_kept(tmp_path):
    data = build_federated_data(make_source(), PartitionSettings("natural", most_clients=2), str(tmp_path))
    owners = {NAMES.index(client.name) for client in data.clients}
    assert set((data.test_x[:, 0] // 100).astype(int).tolist()) == {owner for owner in owners if TEST[owner]}


@pytest.mark.parametrize("data", [make_source(), make_arrays(with_tests=True)])
def test_clients_with_fewer_examples_are_left_out_before_any_is_drawn(data):
    kept = keep_some_clients(data, PartitionSettings("natural", fewest_examples=3))
    assert kept.client_names == ("a", "d", "f")
    drawn = {
        keep_some_clients(data, PartitionSettings("natural", fewest_examples=3, most_clients=2, seed=seed)).client_names
        for seed in range(20)
    }
    assert drawn == {("a", "d"), ("a", "f"), ("d", "f")}
    with pytest.raises(DatasetError, match=r"^fewest_examples=6: expected at most 5, which the largest client has$"):
        keep_some_clients(data, PartitionSettings("natural", fewest_examples=6))


def test_another_partition_says_its_number_otherwise():
    with pytest.raises(DatasetError, match=r"^most_clients=3: expected 0, or more if partition=natural$"):
        PartitionSettings("iid", most_clients=3)
