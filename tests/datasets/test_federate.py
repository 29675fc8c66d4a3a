"""From arrays to clients: splits, files on disk and their cache as seen from outside."""

import dataclasses
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from refusals import assert_refused
from small_formats import format_of

from datasets.arrays import make_array_dataset
from datasets.catalog import DATASETS, DatasetOptions, load_arrays
from datasets.client_files import clean_client_dir
from datasets.client_source import ClientSource
from datasets.errors import DatasetError
from datasets.example_format import REGRESSION, ExampleFormat, LabelFormat
from datasets.federate import build_federated_data, default_client_dir, partition_clients, select_clients
from datasets.federated_data import SPLITS
from datasets.partition_settings import ArchetypeSettings, PartitionSettings
from datasets.partitioners import count_drawn, split_client
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
    assert_refused(
        "new_clients=4: expected fewer than the 4 clients",
        build_federated_data,
        make_numbered(),
        PartitionSettings("natural"),
        str(tmp_path),
        num_new_clients=4,
    )


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
    assert_refused(
        "a client of the train part for each test example",
        make_array_dataset,
        "toy",
        (x, y),
        (x, y),
        format_of(x, ("a", "b")),
        np.array(["ann"] * 4),
        test_clients=np.array(["bob"] * 4),
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
    assert_refused(
        "num_clients=241", build_federated_data, make_numbered(), PartitionSettings(num_clients=241), str(tmp_path)
    )
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


FORMAT = ExampleFormat((2,), "float32", ("a", "b"))


class Reads:
    """The examples of three clients; client i has values 10 i, 10 i + 1, ... and remembers who was read."""

    def __init__(self, train=(24, 3, 0), test=(2, 0, 4)):
        self.counts = {"train": np.array(train), "test": np.array(test)}
        self.asked = []

    def __call__(self, client, split):
        self.asked.append((client, split))
        count = self.counts[split][client]
        values = 100.0 * client + np.arange(count) + (0.5 if split == "test" else 0)
        return np.stack([values, values], axis=1).astype(np.float32), (np.arange(count) % 2).astype(np.int32)


def make_source(reads, has_tests=True, **further):
    counts = reads.counts if has_tests else {"train": reads.counts["train"]}
    names = tuple(f"ünit/{place}" for place in range(len(counts["train"])))
    return ClientSource("own", FORMAT, names, counts, reads, "d" * 64, **further)


def build(source, folder, **further):
    return build_federated_data(source, PartitionSettings("natural"), str(folder), **further)


def test_only_who_is_asked_is_written(tmp_path):
    reads = Reads()
    data = build(make_source(reads), tmp_path)
    assert [client.name for client in data.clients] == ["ünit/0", "ünit/1"]
    assert data.num_clients_left_out == 1  # the third has nothing to train on
    # The test set is everybody's, of the third too.
    assert sorted(data.test_x[:, 0]) == [0.5, 1.5, 200.5, 201.5, 202.5, 203.5]
    assert not any(name.startswith("client_") for _, _, names in os.walk(tmp_path) for name in names)
    path = data.clients[1].path
    assert np.fromfile(f"{path}.train.x", np.float32).reshape(-1, 2)[:, 0].tolist() == [100, 101, 102]
    assert np.fromfile(f"{path}.test.y", np.int32).size == 0
    assert os.path.basename(path) == "client_1"  # a name never becomes a path
    assert sorted(os.listdir(os.path.dirname(path))) == sorted(
        [
            "index.json",
            "client_1.sums",
            *(f"client_1.{split}.{kind}" for split in ("train", "validation", "test") for kind in "xy"),
        ]
    )


def test_what_is_written_is_what_is_read(tmp_path):
    data = build(make_source(Reads()), tmp_path)
    client = data.clients[0]
    before = {split: data.read_split(client, split) for split in ("train", "validation", "test")}
    for split, (x, y) in before.items():
        assert np.array_equal(np.fromfile(f"{client.path}.{split}.x", np.float32).reshape(-1, 2), x)
        assert np.array_equal(np.fromfile(f"{client.path}.{split}.y", np.int32), y)
    # 24 train examples: a twelfth for validation; the test split is that of the data.
    assert [len(before[split][1]) for split in before] == [22, 2, 2]
    assert client.num_train == 22 and client.num_validation == 2 and client.num_test == 2
    assert data.label_counts.tolist() == [np.bincount(before["train"][1], minlength=2).tolist(), [2, 1]]


def test_written_files_are_found_again(tmp_path):
    build(make_source(Reads()), tmp_path).clients[0].path  # noqa: B018 - asking for it writes it
    reads = Reads()
    data = build(make_source(reads), tmp_path)
    reads.asked.clear()
    path = data.clients[0].path
    assert not reads.asked
    os.truncate(f"{path}.train.x", 8)  # a damaged file is written anew
    again = build(make_source(Reads()), tmp_path).clients[0]
    assert os.path.getsize(f"{again.path}.train.x") == 22 * 8
    assert clean_client_dir(str(tmp_path)) > 0
    assert not os.path.exists(os.path.dirname(path))


def test_without_a_test_part_a_twelfth_of_each_client_is_held_out(tmp_path):
    data = build(make_source(Reads(), has_tests=False), tmp_path)
    assert [(client.num_train, client.num_validation, client.num_test) for client in data.clients] == [
        (20, 2, 2),
        (3, 0, 0),
    ]
    assert np.array_equal(data.test_x, data.read_split(data.clients[0], "test")[0])


def test_clients_in_order_of_time_are_cut_from_the_end(tmp_path):
    data = build(make_source(Reads(), has_tests=False, is_ordered_by_time=True), tmp_path)
    parts = [data.read_split(data.clients[0], split)[0][:, 0].tolist() for split in ("train", "validation", "test")]
    assert parts == [list(range(20)), [20, 21], [22, 23]]


def test_a_large_test_part_is_drawn_by_client(tmp_path):
    reads = Reads(train=(1,) * 50, test=(2,) * 50)
    data = build(make_source(reads), tmp_path, most_test_examples=7)
    assert len(data.test_y) == 7
    assert "7 of 100 test examples are used" in data.reading
    assert np.array_equal(data.test_x, build(make_source(reads), tmp_path, most_test_examples=7).test_x)


def test_new_clients_are_the_last(tmp_path):
    data = build(make_source(Reads()), tmp_path, num_new_clients=1)
    assert [client.name for client in data.new_clients] == ["ünit/1"]
    assert_refused(
        "new_clients=2: expected fewer than the 2 clients", build, make_source(Reads()), tmp_path, num_new_clients=2
    )


def test_other_partitions_take_all_into_memory(tmp_path):
    settings_ = PartitionSettings("iid", num_clients=3)
    data = build_federated_data(make_source(Reads()), settings_, str(tmp_path))
    assert data.num_train.sum() + sum(client.num_validation + client.num_test for client in data.clients) == 27
    assert len(data.test_y) == 6


def test_who_holds_what_must_be_known(tmp_path):
    source = make_source(Reads(train=(24,), test=(0,)), has_clients=False)
    assert_refused("own does not say who holds which example", build, source, tmp_path)


def test_somebody_must_have_a_test_example(tmp_path):
    assert_refused("no test examples", build, make_source(Reads(train=(5, 11, 1)), has_tests=False), tmp_path)


def test_a_source_that_counts_wrongly_is_named(tmp_path):
    reads = Reads()
    source = make_source(reads)
    data = build(source, tmp_path)
    reads.counts = {"train": np.array([23, 3, 0]), "test": np.array([2, 0, 4])}
    with pytest.raises(DatasetError, match="client ünit/0 has 21 examples for train, but 22 were counted"):
        data.clients[0].path  # noqa: B018


def test_a_regression_is_standardised_over_the_clients(tmp_path):
    labels = LabelFormat(REGRESSION, (), 1)
    values = [np.array([1.0, 3.0], np.float32), np.array([5.0], np.float32)]

    def read(client, split):
        y = values[client] if split == "train" else np.array([2.0], np.float32)
        return np.zeros((len(y), 2), np.float32), y

    counts = {"train": np.array([2, 1]), "test": np.array([1, 1])}
    source = ClientSource("own", ExampleFormat((2,), "float32", (), labels=labels), ("a", "b"), counts, read, "e" * 64)
    data = build(source, tmp_path)
    assert data.format.labels.offset == (3.0,)
    assert data.format.labels.scale == pytest.approx((np.sqrt(8 / 3),))
    assert data.label_counts.shape == (2, 0)


def test_labels_that_are_held_out_do_not_standardise(tmp_path):
    labels = LabelFormat(REGRESSION, (), 1)
    y = np.arange(24, dtype=np.float32)  # in order of time: 20 to train on, 2 to validate on, 2 for the test
    example_format = ExampleFormat((2,), "float32", (), labels=labels)
    counts = {"train": np.array([24])}
    source = ClientSource(
        "own", example_format, ("a",), counts, lambda *_: (np.zeros((24, 2), np.float32), y), "f" * 64,
        is_ordered_by_time=True,
    )  # fmt: skip
    assert build(source, tmp_path).format.labels.offset == (9.5,)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 200),
    st.floats(0, 0.45),
    st.floats(0, 0.45),
    st.integers(0, 50),
    st.booleans(),
)
def test_counts_are_those_of_the_split(count, validation, test, most, is_ordered):
    settings_ = PartitionSettings(
        "natural", validation_fraction=validation, test_fraction=test, most_train_examples=most
    )
    parts = split_client(np.arange(count), 3, settings_, is_ordered)
    counted = count_drawn(np.array([count]), settings_)
    assert {split: len(rows) for split, rows in parts.items()} == {split: int(n[0]) for split, n in counted.items()}


NAMES = tuple("abcdefgh")
TRAIN, TEST = np.array([3, 0, 1, 4, 2, 5, 1, 2]), np.array([1, 2, 0, 1, 3, 1, 1, 2])


def make_source_of_eight():
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
    return select_clients(source, PartitionSettings("natural", most_clients=most, seed=seed))


@given(most=st.integers(1, 9), seed=st.integers(0, 99))
def test_a_source_keeps_whole_clients_in_order_that_have_something_to_train_on(most, seed):
    source, kept = make_source_of_eight(), keep_drawn_clients(make_source_of_eight(), most, seed)
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
    assert kept.digest == keep_drawn_clients(make_source_of_eight(), most, seed).digest != source.digest


def test_clients_are_drawn_by_the_seed():
    drawn = {keep_drawn_clients(make_source_of_eight(), 3, seed).client_names for seed in range(20)}
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
    data = build_federated_data(make_source_of_eight(), PartitionSettings("natural", most_clients=2), str(tmp_path))
    owners = {NAMES.index(client.name) for client in data.clients}
    assert set((data.test_x[:, 0] // 100).astype(int).tolist()) == {owner for owner in owners if TEST[owner]}


@pytest.mark.parametrize("data", [make_source_of_eight(), make_arrays(with_tests=True)])
def test_clients_with_fewer_examples_are_left_out_before_any_is_drawn(data):
    kept = select_clients(data, PartitionSettings("natural", fewest_examples=3))
    assert kept.client_names == ("a", "d", "f")
    drawn = {
        select_clients(data, PartitionSettings("natural", fewest_examples=3, most_clients=2, seed=seed)).client_names
        for seed in range(20)
    }
    assert drawn == {("a", "d"), ("a", "f"), ("d", "f")}
    assert_refused(
        r"^fewest_examples=6: expected at most 5, which the largest client has$",
        select_clients,
        data,
        PartitionSettings("natural", fewest_examples=6),
    )


def test_another_partition_says_its_number_otherwise():
    assert_refused(
        r"^most_clients=3: expected 0, or more if partition=natural$", PartitionSettings, "iid", most_clients=3
    )


ROOT = pathlib.Path(__file__).parents[3]
NUM_CLIENTS, NUM_HELD_OUT, NUM_TESTED = 342_477, 38_758, 204_088  # of the real file
MEGABYTES = 2000
OPEN = """
import json, resource, sys, time
start = time.monotonic()
from datasets.dataset import DatasetOptions
from datasets.federate import PartitionSettings, build_federated_data
from datasets.file_formats import open_data
source = open_data(DatasetOptions(data=sys.argv[1]))
data = build_federated_data(source, PartitionSettings("natural"), sys.argv[2], most_test_examples=1000)
opened = time.monotonic()
cohort = [data.clients[place] for place in range(0, len(data.clients), len(data.clients) // 50)]
sizes = [len(data.read_split(client, "train")[1]) for client in cohort]
told = [client.num_train for client in cohort]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"open_s": opened - start, "cohort_s": time.monotonic() - opened, "peak_mb": peak,
                  "clients": len(data.clients), "tested": len(data.test_y), "agree": sizes == told}))
"""


def write_large_file(path, encode_record):
    """Small examples of Stack Overflow's form; a client in seven has more than one."""
    texts = [f"word_{number} is a word of user {number} .".encode() for number in range(100)]
    features = {"title": b"a title", "tags": b"c|c++", "type": b"answer", "creation_date": b"2010", "score": 1}
    records = [encode_record({**features, "tokens": text}) for text in texts]
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE examples (split_name TEXT, client_id TEXT, serialized_example_proto BLOB)")
    connection.execute("CREATE TABLE client_metadata (client_id TEXT, split_name TEXT, num_examples INTEGER)")
    splits = {"train": range(NUM_CLIENTS), "heldout": range(10**6, 10**6 + NUM_HELD_OUT), "test": range(NUM_TESTED)}
    with connection:
        for split, clients in splits.items():
            sizes = [(client, 3 if client % 7 == 0 else 1) for client in clients]
            connection.executemany(
                "INSERT INTO client_metadata VALUES (?, ?, ?)",
                ((f"{client:08}", split, size) for client, size in sizes),
            )
            connection.executemany(
                "INSERT INTO examples VALUES (?, ?, ?)",
                (
                    (split, f"{client:08}", records[(client + row) % 100])
                    for client, size in sizes
                    for row in range(size)
                ),
            )
        connection.execute("CREATE INDEX by_client ON examples (client_id, split_name)")
    connection.close()


@pytest.mark.slow
def test_as_many_clients_as_stack_overflow_has_open_within_two_gigabytes(tmp_path, encode_record):
    """The seconds are printed, since a test that depends on them would fail on a busy machine."""
    write_large_file(tmp_path / "stackoverflow.sqlite", encode_record)
    command = [sys.executable, "-c", OPEN, str(tmp_path / "stackoverflow.sqlite"), str(tmp_path / "shards")]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr
    measured = json.loads(run.stdout.splitlines()[-1])
    print(measured)
    assert measured["clients"] == NUM_CLIENTS
    assert measured["agree"]
    assert measured["tested"] == 1000
    assert measured["peak_mb"] < MEGABYTES
