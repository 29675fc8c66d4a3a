"""From arrays to clients: splits, files on disk and their cache as seen from outside."""

import dataclasses
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from small_formats import format_of

from datasets.arrays import make_array_dataset
from datasets.catalog import DATASETS, DatasetOptions, load_arrays
from datasets.errors import DatasetError
from datasets.federate import (
    PartitionSettings,
    build_federated_data,
    default_client_dir,
    partition_clients,
    split_client,
)
from datasets.federated_data import SPLITS
from datasets.partition_settings import ArchetypeSettings
from datasets.smoke import make_random_arrays

SETTINGS = PartitionSettings("dirichlet", num_clients=8)


def make_numbered(num_examples=240):
    """Examples that carry their own number, so that each can be followed to its client."""
    x = np.arange(num_examples, dtype=np.float32).reshape(-1, 1, 1)
    y = np.arange(num_examples) % 3
    clients = np.array(["ann", "bob", "cleo", "dan"])[np.arange(num_examples) % 4]
    return make_array_dataset("toy", (x, y), (x[:3], y[:3]), format_of(x, ("a", "b", "c")), clients)


@pytest.mark.parametrize("partition", ["iid", "dirichlet", "shards", "natural"])
def test_every_example_lands_in_one_split_of_one_client_with_its_label(tmp_path, partition):
    data = build_federated_data(make_numbered(), PartitionSettings(partition, 8), str(tmp_path))
    parts = [data.read_pooled(data.clients, split) for split in SPLITS]
    numbers = np.concatenate([x.ravel() for x, _ in parts]).astype(int)
    assert sorted(numbers) == list(range(240))
    np.testing.assert_array_equal(np.concatenate([y for _, y in parts]), numbers % 3)
    for client in data.clients:
        sizes = [len(data.read_split(client, split)[1]) for split in SPLITS]
        assert sizes == [client.num_train, client.num_validation, client.num_test]
        counts = np.bincount(data.read_split(client, "train")[1], minlength=3)
        np.testing.assert_array_equal(data.label_counts[client.index], counts)
        assert os.path.isabs(client.path)


def test_natural_clients_keep_their_names_and_examples(tmp_path):
    data = build_federated_data(make_numbered(), PartitionSettings("natural"), str(tmp_path))
    assert [client.name for client in data.clients] == ["ann", "bob", "cleo", "dan"]
    assert set(data.read_split(data.clients[2], "train")[0].ravel() % 4) == {2}
    assert len(data.profiles.examples_per_s) == 4


def test_natural_clients_can_have_the_test_part_as_their_own_test_splits(tmp_path):
    plain = make_numbered()
    names = np.array(["ann", "bob", "cleo", "dan"])
    test_x, owners = 1000 + np.arange(6, dtype=np.float32).reshape(-1, 1, 1), names[[0, 0, 1, 3, 3, 3]]
    train, test = (plain.train_x, plain.train_y), (test_x, np.arange(6) % 3)
    arrays = make_array_dataset("toy", train, test, plain.format, names[plain.train_clients], test_clients=owners)
    data = build_federated_data(arrays, PartitionSettings("natural"), str(tmp_path))
    own = [data.read_split(client, "test")[0].ravel().tolist() for client in data.clients]
    assert own == [[1000, 1001], [1002], [], [1003, 1004, 1005]]
    assert [client.num_validation for client in data.clients] == [5] * 4
    assert [client.num_train for client in data.clients] == [55] * 4  # nothing of the train part is held out for tests
    mixed = build_federated_data(arrays, PartitionSettings("iid", 8), str(tmp_path))
    assert all(client.num_test == 3 for client in mixed.clients)


@pytest.mark.parametrize("is_ordered", [True, False])
def test_few_train_examples_leave_the_other_splits_whole(is_ordered):
    """Of 60 examples 5 validate and 10 test; of the 45 for training the first 8 in time, or any 8, are kept."""
    whole = PartitionSettings("natural", test_fraction=1 / 6)
    few = dataclasses.replace(whole, most_train_examples=8)
    indices = np.arange(0, 120, 2)
    first, second = (split_client(indices, 3, settings, is_ordered) for settings in (whole, few))
    for split in ("validation", "test"):
        np.testing.assert_array_equal(first[split], second[split])
    assert len(first["train"]) == 45 and len(second["train"]) == 8
    assert set(second["train"]) < set(first["train"]) and list(second["train"]) == sorted(second["train"])
    assert (second["train"].tolist() == indices[:8].tolist()) == is_ordered
    assert len(split_client(indices[:20], 0, dataclasses.replace(few, most_train_examples=99))["train"]) == 15


def test_new_clients_come_last_and_count_nowhere(tmp_path):
    whole = build_federated_data(make_numbered(), PartitionSettings("natural"), str(tmp_path))
    data = build_federated_data(make_numbered(), PartitionSettings("natural"), str(tmp_path), num_new_clients=1)
    assert [client.name for client in data.clients] == ["ann", "bob", "cleo"]
    assert data.everyone == whole.clients and data.digest == whole.digest
    assert data.label_counts.tolist() == whole.label_counts[:3].tolist() and len(data.num_train) == 3
    np.testing.assert_array_equal(data.profiles.examples_per_s, whole.profiles.examples_per_s)
    with pytest.raises(DatasetError, match="new_clients=4: expected fewer than the 4 clients"):
        build_federated_data(make_numbered(), PartitionSettings("natural"), str(tmp_path), num_new_clients=4)


def test_splits_of_clients_in_time_are_cut_from_the_end(tmp_path):
    plain = make_numbered()
    parts = (plain.train_x, plain.train_y), (plain.test_x, plain.test_y)
    arrays = make_array_dataset("toy", *parts, plain.format, plain.train_clients, is_ordered_by_time=True)
    data = build_federated_data(arrays, PartitionSettings("natural"), str(tmp_path))
    for client in data.clients:
        train, validation, test = (data.read_split(client, split)[0].ravel() for split in SPLITS)
        assert (len(train), len(validation), len(test)) == (50, 5, 5)
        assert train.max() < validation.min() <= validation.max() < test.min()
    assert arrays.source_digest != plain.source_digest  # the cache must not mix them up
    mixed = build_federated_data(arrays, PartitionSettings("iid", 2), str(tmp_path))
    train, validation, _ = (mixed.read_split(mixed.clients[0], split)[0].ravel() for split in SPLITS)
    assert train.max() > validation.min()  # of other partitions, where time says nothing


def test_test_examples_of_unknown_clients_are_refused():
    x, y = np.zeros((4, 1, 1), np.float32), np.arange(4) % 2
    with pytest.raises(DatasetError, match="a client of the train part for each test example"):
        make_array_dataset(
            "toy", (x, y), (x, y), format_of(x, ("a", "b")), np.array(["ann"] * 4), test_clients=np.array(["bob"] * 4)
        )


def test_client_files_are_raw_bytes_of_the_stored_dtype(tmp_path):
    arrays = make_random_arrays(DATASETS["digits"])
    data = build_federated_data(arrays, SETTINGS, str(tmp_path))
    client = data.clients[3]
    assert data.format.input_dtype == "uint8" and data.format.input_shape == (8, 8, 1)
    assert os.path.getsize(f"{client.path}.train.x") == client.num_train * 64
    assert os.path.getsize(f"{client.path}.train.y") == client.num_train * 4
    assert os.path.exists(f"{client.path}.validation.x")


@hypothesis_settings(deadline=None)
@given(st.integers(1, 300), st.floats(0, 0.45), st.floats(0, 0.45))
def test_splits_leave_something_to_train_on(num_examples, validation_fraction, test_fraction):
    settings = PartitionSettings(validation_fraction=validation_fraction, test_fraction=test_fraction)
    parts = split_client(np.arange(num_examples), 0, settings)
    assert sorted(np.concatenate(list(parts.values()))) == list(range(num_examples))
    assert len(parts["train"]) >= 1
    if num_examples < 12:
        assert len(parts["train"]) == num_examples


@pytest.mark.parametrize(("num_examples", "num_held_out"), [(11, 0), (12, 1), (17, 1), (18, 2), (1500, 125)])
def test_a_twelfth_is_held_out_twice(num_examples, num_held_out):
    parts = split_client(np.arange(num_examples), 0, PartitionSettings())
    assert len(parts["validation"]) == len(parts["test"]) == num_held_out


def test_the_second_run_finds_the_files(tmp_path, monkeypatch):
    arrays = make_numbered()
    first = build_federated_data(arrays, SETTINGS, str(tmp_path))
    monkeypatch.setattr("datasets.federate.partition_clients", lambda *_: pytest.fail("partitioned again"))
    second = build_federated_data(arrays, SETTINGS, str(tmp_path))
    assert first.clients == second.clients
    np.testing.assert_array_equal(first.label_counts, second.label_counts)


def test_data_and_each_setting_have_their_own_files(tmp_path):
    changes = {
        "partition": "iid",
        "num_clients": 7,
        "dirichlet_alpha": 0.6,
        "labels_per_client": 3,
        "validation_fraction": 0.1,
        "test_fraction": 0.1,
        "most_train_examples": 9,
        "seed": 1,
    }
    elsewhere = {"archetypes", "pachinko", "variant", "fewest_examples", "most_clients"}  # the last two change the data
    assert {*changes, *elsewhere} == {field.name for field in dataclasses.fields(PartitionSettings)}
    variants = [SETTINGS, *(dataclasses.replace(SETTINGS, **{key: value}) for key, value in changes.items())]
    paths = {build_federated_data(make_numbered(), settings, str(tmp_path)).clients[0].path for settings in variants}
    paths.add(build_federated_data(make_numbered(243), SETTINGS, str(tmp_path)).clients[0].path)
    assert len(paths) == 10


def test_settings_of_archetypes_count_only_for_their_partitions(tmp_path):
    """Client files of other partitions, and runs made with them, keep their digests."""
    arrays = make_random_arrays(DATASETS["digits"])
    small, other = (ArchetypeSettings(1, 20, 5, number_of_tests) for number_of_tests in (4, 5))

    def get_digest(partition, archetypes):
        settings = PartitionSettings(partition, archetypes=archetypes)
        return build_federated_data(arrays, settings, str(tmp_path)).digest

    assert get_digest("iid", small) == get_digest("iid", other)
    assert get_digest("hierarchical", small) != get_digest("hierarchical", other)


def test_the_seed_decides_partition_and_splits():
    arrays = make_numbered()
    first, again, other = (partition_clients(arrays, PartitionSettings("iid", 4, seed=seed)) for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    tests = [split_client(first[0], client, PartitionSettings(seed=seed))["test"] for client, seed in ((0, 0), (0, 1))]
    assert not np.array_equal(*tests)


def test_impossible_partitions_leave_nothing_behind(tmp_path):
    with pytest.raises(DatasetError, match="num_clients=241"):
        build_federated_data(make_numbered(), PartitionSettings(num_clients=241), str(tmp_path))
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".lock-")] == []


def test_default_folder_follows_the_environment(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_client_dir() == "/somewhere/federated_suite/shards"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert default_client_dir() == "/home/ann/.cache/federated_suite/shards"


@pytest.mark.skipif(not os.environ.get("FL_DATA_DIR"), reason="FL_DATA_DIR is not set: no real data here")
def test_mnist_on_40_clients_trains_on_50000(tmp_path):
    arrays = load_arrays("mnist", DatasetOptions(data_dir=os.environ["FL_DATA_DIR"], download=False))
    data = build_federated_data(arrays, PartitionSettings("iid", 40), str(tmp_path))
    assert data.num_train.tolist() == [1250] * 40
