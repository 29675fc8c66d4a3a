"""From arrays to clients: splits, files on disk and their cache as seen from outside."""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import assert_refused
from small_formats import format_of

from datasets.arrays import TrainBlocks, make_array_dataset
from datasets.catalog import DATASETS
from datasets.client_files import clean_client_dir
from datasets.client_source import ClientSource
from datasets.example_format import REGRESSION, ExampleFormat, LabelFormat
from datasets.federate import (
    build_federated_data,
    default_client_dir,
    identify_federated_data,
    partition_clients,
    select_clients,
)
from datasets.federated_data import SPLITS
from datasets.partition_settings import PartitionSettings
from datasets.partitioners import count_drawn, split_client
from datasets.smoke import make_random_arrays

SETTINGS = PartitionSettings(partition="dirichlet", num_clients=8)
NATURAL = PartitionSettings(partition="natural")
SHARES = st.integers(0, 45).map(lambda percent: percent / 100)
OWNERS = np.array(["ann", "bob", "cleo", "dan"])


def build(data, folder, partition=NATURAL, **further):
    return build_federated_data(data, partition, str(folder), **further)


def read_values(data, client, split):
    """The first number of each example."""
    return data.read_split(client, split)[0].reshape(-1, *data.format.input_shape)[:, 0].ravel().tolist()


def make_numbered(num_examples=240):
    """Examples that carry their own number, so that each can be followed to its client."""
    x = np.arange(num_examples, dtype=np.float32).reshape(-1, 1, 1)
    y = np.arange(num_examples) % 3
    clients = OWNERS[np.arange(num_examples) % 4]
    return make_array_dataset("toy", (x, y), (x[:3], y[:3]), format_of(x, ("a", "b", "c")), clients)


@pytest.mark.parametrize("partition", ["iid", "dirichlet", "shards", "natural"])
def test_every_example_lands_in_one_split_of_one_client_with_its_label(tmp_path, partition):
    data = build(make_numbered(), tmp_path, PartitionSettings(partition=partition, num_clients=8))
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


def test_natural_clients_can_have_the_test_part_as_their_own_test_splits(tmp_path):
    plain = make_numbered()
    test_x, owners = 1000 + np.arange(6, dtype=np.float32).reshape(-1, 1, 1), OWNERS[[0, 0, 1, 3, 3, 3]]
    train, test = (plain.train_x, plain.train_y), (test_x, np.arange(6) % 3)
    arrays = make_array_dataset("toy", train, test, plain.format, OWNERS[plain.train_clients], test_clients=owners)
    data = build(arrays, tmp_path)
    own = [read_values(data, client, "test") for client in data.clients]
    assert own == [[1000, 1001], [1002], [], [1003, 1004, 1005]]
    # Nothing of the train part is held out for tests.
    assert [(client.num_train, client.num_validation) for client in data.clients] == [(55, 5)] * 4
    mixed = build(arrays, tmp_path, PartitionSettings(partition="iid", num_clients=8))
    assert all(client.num_test == 3 for client in mixed.clients)


@pytest.mark.parametrize("is_ordered", [True, False])
def test_few_train_examples_leave_the_other_splits_whole(is_ordered):
    """Of 60 examples 5 validate and 10 test; of the 45 for training the first 8 in time, or any 8, are kept."""
    whole = PartitionSettings(partition="natural", test_fraction=1 / 6)
    few = dataclasses.replace(whole, most_train_examples=8)
    indices = np.arange(0, 120, 2)
    first, second = (split_client(indices, 3, settings, is_ordered) for settings in (whole, few))
    for split in ("validation", "test"):
        np.testing.assert_array_equal(first[split], second[split])
    assert len(first["train"]) == 45 and len(second["train"]) == 8
    assert set(second["train"]) < set(first["train"]) and list(second["train"]) == sorted(second["train"])
    assert (second["train"].tolist() == indices[:8].tolist()) == is_ordered
    assert len(split_client(indices[:20], 0, dataclasses.replace(few, most_train_examples=99))["train"]) == 15


def test_natural_clients_keep_their_names_and_the_new_ones_come_last_and_count_nowhere(tmp_path):
    whole, data = (build(make_numbered(), tmp_path, num_new_clients=number) for number in (0, 1))
    assert [client.name for client in whole.clients] == OWNERS.tolist()
    assert set(np.mod(read_values(whole, whole.clients[2], "train"), 4)) == {2}
    assert data.clients == whole.clients[:3] and data.everyone == whole.clients and data.digest == whole.digest
    assert data.label_counts.tolist() == whole.label_counts[:3].tolist() and len(data.num_train) == 3
    np.testing.assert_array_equal(data.profiles.examples_per_s, whole.profiles.examples_per_s)
    for source, most in ((make_numbered(), 4), (make_source(Reads()), 2)):
        message = f"new_clients={most}: expected fewer than the {most} clients"
        assert_refused(message, build, source, tmp_path, num_new_clients=most)


def make_blocks():
    """`make_numbered` with blocks of 10 examples of a client one after another."""
    plain = make_numbered()
    places = np.zeros(len(plain.train_y), int)
    for client in range(4):
        own = plain.train_clients == client
        places[own] = 100 * client + np.arange(own.sum()) // 10
    parts = (plain.train_x, plain.train_y), (plain.test_x, plain.test_y)
    owners = np.array(plain.client_names)[plain.train_clients]
    return make_array_dataset("toy", *parts, plain.format, owners, blocks=TrainBlocks(places, 1))


def test_blocks_of_clients_stay_on_one_side(tmp_path):
    arrays = make_blocks()
    blocks = dict(zip(arrays.train_x[:, 0, 0].tolist(), arrays.blocks.values.tolist(), strict=True))
    assert arrays.source_digest != make_numbered().source_digest
    for narrowed in (NATURAL, dataclasses.replace(NATURAL, most_clients=2)):
        data = build(arrays, tmp_path, narrowed)
        for client in data.clients:
            train, validation, test = (read_values(data, client, split) for split in SPLITS)
            sides = [{blocks[value] for value in values} for values in (train, validation, test)]
            assert len(train) and not sides[0] & (sides[1] | sides[2])
            # A client's numbers are 4 apart: of what is cut, no neighbours stand on both sides.
            pairs = [(one, other) for one in validation for other in test if blocks[one] == blocks[other]]
            assert all(sides) and all(abs(one - other) > 4 for one, other in pairs)
    message = "partition=iid: it would deal what belongs together to several clients; expected natural"
    assert_refused(message, build, arrays, tmp_path, PartitionSettings(partition="iid", num_clients=2))


def test_splits_of_clients_in_time_are_cut_from_the_end(tmp_path):
    plain = make_numbered()
    parts = (plain.train_x, plain.train_y), (plain.test_x, plain.test_y)
    arrays = make_array_dataset("toy", *parts, plain.format, plain.train_clients, is_ordered_by_time=True)
    data = build(arrays, tmp_path)
    for client in data.clients:
        train, validation, test = (read_values(data, client, split) for split in SPLITS)
        assert (len(train), len(validation), len(test)) == (50, 5, 5)
        assert max(train) < min(validation) <= max(validation) < min(test)
    assert arrays.source_digest != plain.source_digest  # the cache must not mix them up
    mixed = build(arrays, tmp_path, PartitionSettings(partition="iid", num_clients=2))
    train, validation, _ = (read_values(mixed, mixed.clients[0], split) for split in SPLITS)
    assert max(train) > min(validation)  # of other partitions, where time says nothing


@settings(deadline=None)
@given(st.integers(1, 300), SHARES, SHARES, st.integers(0, 50), st.booleans())
def test_splits_leave_something_to_train_on_and_are_counted_beforehand(number, validation, test, most, is_ordered):
    whole = PartitionSettings(partition="natural", validation_fraction=validation, test_fraction=test)
    parts = split_client(np.arange(number), 3, whole, is_ordered)
    assert sorted(np.concatenate(list(parts.values()))) == list(range(number))
    assert len(parts["train"]) >= (1 if number >= 12 else number)
    few = dataclasses.replace(whole, most_train_examples=most)
    counted = {split: int(count[0]) for split, count in count_drawn(np.array([number]), few).items()}
    parts = split_client(np.arange(number), 3, few, is_ordered)
    assert {split: len(rows) for split, rows in parts.items()} == counted


def test_what_overlaps_is_left_out_before_each_cut():
    """Of 40 examples 10 are tested and 10 validate; 2 before each are left out. Of 11 left out twice, too many."""
    shares = PartitionSettings(validation_fraction=0.25, test_fraction=0.25)
    train, validation, test = split_client(np.arange(40), 0, shares, True, 2).values()
    assert [train.tolist(), validation.tolist(), test.tolist()] == [[*range(16)], [*range(18, 28)], [*range(30, 40)]]
    only_test = dataclasses.replace(shares, validation_fraction=0)
    train, validation, test = split_client(np.arange(40), 0, only_test, True, 15).values()
    assert (len(train), len(validation), test.tolist()) == (15, 0, [*range(30, 40)])
    assert [len(rows) for rows in split_client(np.arange(40), 0, shares, True, 5).values()] == [10, 10, 10]
    assert [len(rows) for rows in split_client(np.arange(40), 0, shares, True, 6).values()] == [40, 0, 0]


@settings(deadline=None)
@given(st.integers(1, 300), SHARES, SHARES, st.integers(0, 50), st.integers(0, 60))
def test_parts_in_time_stay_so_far_apart_and_are_counted(number, validation, test, most, overlap):
    drawn = PartitionSettings(validation_fraction=validation, test_fraction=test, most_train_examples=most)
    parts = split_client(np.arange(number), 3, drawn, True, overlap)
    counted = {split: int(count[0]) for split, count in count_drawn(np.array([number]), drawn, overlap).items()}
    assert {split: len(rows) for split, rows in parts.items()} == counted and len(parts["train"])
    given = [rows for rows in parts.values() if len(rows)]
    assert all(after[0] - before[-1] > overlap for before, after in itertools.pairwise(given))
    plain = split_client(np.arange(number), 3, drawn, True)
    # What is tested is the same, whatever is left out before it.
    assert not len(parts["test"]) or np.array_equal(parts["test"], plain["test"])


@pytest.mark.parametrize(("num_examples", "num_held_out"), [(11, 0), (12, 1), (17, 1), (18, 2), (1500, 125)])
def test_a_twelfth_is_held_out_twice(num_examples, num_held_out):
    parts = split_client(np.arange(num_examples), 0, PartitionSettings())
    assert len(parts["validation"]) == len(parts["test"]) == num_held_out


def test_the_second_run_finds_the_files_which_are_raw_bytes_of_the_stored_dtype(tmp_path, monkeypatch):
    arrays = make_random_arrays(DATASETS["digits"])
    first = build(arrays, tmp_path, SETTINGS)
    monkeypatch.setattr("datasets.federate.partition_clients", lambda *_: pytest.fail("partitioned again"))
    second = build(arrays, tmp_path, SETTINGS)
    assert first.clients == second.clients
    np.testing.assert_array_equal(first.label_counts, second.label_counts)
    client = second.clients[3]
    assert os.path.getsize(f"{client.path}.train.x") == client.num_train * 64  # uint8
    assert os.path.getsize(f"{client.path}.train.y") == client.num_train * 4


def identify(arrays, **changes):
    return identify_federated_data(arrays, dataclasses.replace(SETTINGS, **changes))


def test_data_and_each_setting_have_their_own_files():
    changes = [{"partition": "iid"}, {"num_clients": 7}, {"dirichlet_alpha": 0.6}, {"labels_per_client": 3}]
    changes += [{"validation_fraction": 0.1}, {"test_fraction": 0.1}, {"most_train_examples": 9}, {"seed": 1}]
    digests = {identify(make_numbered(), **change) for change in ({}, *changes)} | {identify(make_numbered(243))}
    assert len(digests) == 10
    idle = {"train_per_client": 9, "pachinko_alpha": 2.0, "variant_groups": 2}  # which do nothing here
    assert identify(make_numbered(), **idle) in digests


@pytest.mark.parametrize(
    ("settings", "digest"),
    [
        ({}, "16cfca9782e7188a"),
        ({"partition": "natural", "most_train_examples": 9}, "9f1e7f308a05fda3"),
        ({"partition": "hierarchical"}, "9ee5d2553f75d0f7"),
        (
            {
                "partition": "hypergeometric",
                "hypergeometric_draws": 10,
                "hypergeometric_last_outcome": "drop",
                "validation_pool": 0.1,
            },
            "62b5eb032f0890b5",
        ),
        ({"partition": "pachinko", "pachinko_alpha": 0.2}, "4d787e1d74916b3b"),
        ({"partition": "iid", "variant": "rotated", "variant_groups": 2}, "bc8f9c99aa262337"),
    ],
)
def test_a_run_of_an_earlier_version_still_finds_its_client_files(settings, digest):
    """Settings that came later are told apart only where they have another value than then."""
    data = types.SimpleNamespace(source_digest="0" * 64, format=ExampleFormat((1,), "float32", ("a", "b")))
    assert identify_federated_data(data, PartitionSettings(**settings)).startswith(digest)


def test_the_seed_decides_partition_and_splits():
    iid = PartitionSettings(partition="iid", num_clients=4)
    first, again, other = (
        partition_clients(make_numbered(), dataclasses.replace(iid, seed=seed)) for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    tests = [split_client(first[0], 0, PartitionSettings(seed=seed))["test"] for seed in (0, 1)]
    assert not np.array_equal(*tests)


def test_impossible_partitions_leave_nothing_behind(tmp_path):
    settings = PartitionSettings(num_clients=241)
    assert_refused("num_clients=241", build, make_numbered(), tmp_path, settings)
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".lock-")] == []


def test_default_folder_follows_the_environment(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_client_dir() == "/somewhere/federated_suite/shards"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert default_client_dir() == "/home/ann/.cache/federated_suite/shards"


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
    names = {f"client_1.{split}.{kind}" for split in SPLITS for kind in "xy"}
    assert set(os.listdir(os.path.dirname(path))) == {"index.json", "client_1.sums", *names}


def test_what_is_written_is_what_is_read_and_found_again(tmp_path):
    data = build(make_source(Reads()), tmp_path)
    client = data.clients[0]
    before = {split: data.read_split(client, split) for split in SPLITS}
    for split, (x, y) in before.items():
        assert np.array_equal(np.fromfile(f"{client.path}.{split}.x", np.float32).reshape(-1, 2), x)
        assert np.array_equal(np.fromfile(f"{client.path}.{split}.y", np.int32), y)
    # 24 train examples: a twelfth for validation; the test split is that of the data.
    assert [len(y) for _, y in before.values()] == [22, 2, 2]
    assert (client.num_train, client.num_validation, client.num_test) == (22, 2, 2)
    assert data.label_counts.tolist() == [np.bincount(before["train"][1], minlength=2).tolist(), [2, 1]]
    reads = Reads()
    again = build(make_source(reads), tmp_path)
    reads.asked.clear()
    path = again.clients[0].path
    assert not reads.asked
    os.truncate(f"{path}.train.x", 8)  # a damaged file is written anew
    assert os.path.getsize(f"{build(make_source(Reads()), tmp_path).clients[0].path}.train.x") == 22 * 8
    assert clean_client_dir(str(tmp_path)) > 0
    assert not os.path.exists(os.path.dirname(path))


@pytest.mark.parametrize("is_ordered", [False, True])
def test_without_a_test_part_a_twelfth_of_each_client_is_held_out(tmp_path, is_ordered):
    data = build(make_source(Reads(), has_tests=False, is_ordered_by_time=is_ordered), tmp_path)
    sizes = [(client.num_train, client.num_validation, client.num_test) for client in data.clients]
    assert sizes == [(20, 2, 2), (3, 0, 0)]
    parts = [read_values(data, data.clients[0], split) for split in SPLITS]
    assert data.test_x[:, 0].tolist() == parts[2] and sorted(np.concatenate(parts)) == list(range(24))
    assert (parts == [list(range(20)), [20, 21], [22, 23]]) == is_ordered  # cut from the end


def test_a_large_test_part_is_drawn_by_client(tmp_path):
    reads = Reads(train=(1,) * 50, test=(2,) * 50)
    data = build(make_source(reads), tmp_path, most_test_examples=7)
    assert len(data.test_y) == 7
    assert "7 of 100 test examples are used" in data.reading
    assert np.array_equal(data.test_x, build(make_source(reads), tmp_path, most_test_examples=7).test_x)


def test_other_partitions_take_all_into_memory(tmp_path):
    data = build(make_source(Reads()), tmp_path, PartitionSettings(partition="iid", num_clients=3))
    assert sum(client.num_train + client.num_validation + client.num_test for client in data.clients) == 27
    assert len(data.test_y) == 6


def test_who_holds_what_must_be_known_and_somebody_have_a_test_example(tmp_path):
    source = make_source(Reads(train=(24,), test=(0,)), has_clients=False)
    assert_refused("own does not say who holds which example", build, source, tmp_path)
    assert_refused("no test examples", build, make_source(Reads(train=(5, 11, 1)), has_tests=False), tmp_path)


def test_a_source_that_counts_wrongly_is_named(tmp_path):
    reads = Reads()
    data = build(make_source(reads), tmp_path)
    reads.counts = {"train": np.array([23, 3, 0]), "test": np.array([2, 0, 4])}
    message = "client ünit/0 has 21 examples for train, but 22 were counted"
    assert_refused(message, getattr, data.clients[0], "path")


def make_regression(y, num_clients=1, **fields):
    """A source of clients with these train labels each, one after the other; without tests of their own."""
    labels = LabelFormat(REGRESSION, (), 1)
    parts = np.array_split(np.array(y, np.float32), num_clients)
    read = lambda client, split: (np.zeros((len(parts[client]), 2), np.float32), parts[client])
    counts = {"train": np.array(list(map(len, parts)))}
    example_format = ExampleFormat((2,), "float32", (), labels=labels)
    return ClientSource("own", example_format, tuple("abc"[:num_clients]), counts, read, "e" * 64, **fields)


def test_a_regression_is_standardised_over_the_train_splits_of_the_clients(tmp_path):
    source = make_regression([1, 3, 5], 2)
    own_tests = {**source.num_examples, "test": np.array([2, 1])}
    data = build(dataclasses.replace(source, num_examples=own_tests), tmp_path)
    assert data.format.labels.offset == (3.0,) and data.label_counts.shape == (2, 0)
    assert data.format.labels.scale == pytest.approx((np.sqrt(8 / 3),))
    # In order of time: 20 to train on, 2 to validate on, 2 for the test.
    data = build(make_regression(range(24), is_ordered_by_time=True), tmp_path)
    assert data.format.labels.offset == (9.5,)


NAMES = tuple("abcdefgh")
TRAIN, TEST = np.array([3, 0, 1, 4, 2, 5, 1, 2]), np.array([1, 2, 0, 1, 3, 1, 1, 2])


def make_source_of_eight():
    def read(client, split):
        count = {"train": TRAIN, "test": TEST}[split][client]
        values = 100.0 * client + np.arange(count) + (0.5 if split == "test" else 0)
        return values[:, None].astype(np.float32), np.full(count, client, np.int32)

    counts, example_format = {"train": TRAIN, "test": TEST}, ExampleFormat((1,), "float32", NAMES)
    return ClientSource("own", example_format, NAMES, counts, read, "d" * 64, count_labels=lambda: np.diag(TRAIN))


def make_arrays(with_tests: bool):
    """The same, but for the client that has tests alone, which such data may not have."""
    source, members = make_source_of_eight(), np.flatnonzero(TRAIN)
    parts = [[source.read(client, split) for client in members] for split in ("train", "test")]
    train, test = (tuple(map(np.concatenate, zip(*part, strict=True))) for part in parts)
    names = np.array(NAMES)
    own = {"test_clients": names[test[1]]} if with_tests else {}
    return make_array_dataset("own", train, test, source.format, names[train[1]], **own)


def select(data, most=0, seed=0, fewest=0):
    changes = {"most_clients": most, "seed": seed, "fewest_examples": fewest}
    return select_clients(data, dataclasses.replace(NATURAL, **changes))


def find_owners(x):
    return set((x[:, 0] // 100).astype(int).tolist())


@settings(max_examples=30)
@given(most=st.integers(1, 9), seed=st.integers(0, 99))
def test_a_source_keeps_whole_clients_in_order_that_have_something_to_train_on(most, seed):
    source, selected = make_source_of_eight(), select(make_source_of_eight(), most, seed)
    if most >= 7:  # seven of the eight have a train example: nothing to draw, nothing changes
        assert selected.client_names == NAMES and selected.digest == source.digest
        return
    rows = [NAMES.index(name) for name in selected.client_names]
    assert len(rows) == most and rows == sorted(rows) and 1 not in rows
    np.testing.assert_array_equal(selected.count_labels(), np.diag(TRAIN)[rows])
    for split in ("train", "test"):
        np.testing.assert_array_equal(selected.num_examples[split], source.num_examples[split][rows])
        for client, row in enumerate(rows):
            np.testing.assert_array_equal(selected.read(client, split)[0], source.read(row, split)[0])
    assert selected.digest == select(make_source_of_eight(), most, seed).digest != source.digest


@pytest.mark.parametrize("data", [make_source_of_eight(), make_arrays(True), make_arrays(False)])
def test_selected_clients_keep_their_examples_and_the_tests_that_are_theirs(tmp_path, data):
    found = build(data, tmp_path, dataclasses.replace(NATURAL, most_clients=3))
    owners = {NAMES.index(client.name) for client in found.clients}
    assert len(owners) == 3
    for client in found.clients:
        row = NAMES.index(client.name)
        assert np.floor_divide(read_values(found, client, "train"), 100).tolist() == [row] * TRAIN[row]
    has_own_tests = isinstance(data, ClientSource) or data.test_clients is not None
    expected = owners if has_own_tests else set(np.flatnonzero(TRAIN).tolist())
    assert find_owners(found.test_x) == {owner for owner in expected if TEST[owner]}
    assert len(build(data, tmp_path).clients) > 3  # the cache of client files tells them from all clients


@pytest.mark.parametrize("data", [make_source_of_eight(), make_arrays(with_tests=True)])
def test_clients_with_fewer_examples_are_left_out_before_any_is_drawn_by_the_seed(data):
    assert select(data, fewest=3).client_names == ("a", "d", "f")
    drawn = {select(data, 2, seed, 3).client_names for seed in range(20)}
    assert drawn == {("a", "d"), ("a", "f"), ("d", "f")}
    message = r"^fewest_examples=6: expected at most 5, which the largest client has$"
    assert_refused(message, select, data, fewest=6)


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
data = build_federated_data(source, PartitionSettings(partition="natural"), sys.argv[2], most_test_examples=1000)
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
    splits = {"train": range(NUM_CLIENTS), "heldout": range(10**6, 10**6 + NUM_HELD_OUT), "test": range(NUM_TESTED)}
    sizes = [(split, client, 3 if client % 7 == 0 else 1) for split, clients in splits.items() for client in clients]
    examples = (
        (split, f"{client:08}", records[(client + row) % 100]) for split, client, size in sizes for row in range(size)
    )
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE examples (split_name TEXT, client_id TEXT, serialized_example_proto BLOB)")
        connection.execute("CREATE TABLE client_metadata (client_id TEXT, split_name TEXT, num_examples INTEGER)")
        metadata = ((f"{client:08}", split, size) for split, client, size in sizes)
        connection.executemany("INSERT INTO client_metadata VALUES (?, ?, ?)", metadata)
        connection.executemany("INSERT INTO examples VALUES (?, ?, ?)", examples)
        connection.execute("CREATE INDEX by_client ON examples (client_id, split_name)")


@pytest.mark.slow
def test_as_many_clients_as_stack_overflow_has_open_within_two_gigabytes(tmp_path, encode_record):
    """The seconds are printed, since a test that depends on them would fail on a busy machine."""
    write_large_file(tmp_path / "stackoverflow.sqlite", encode_record)
    command = [sys.executable, "-c", OPEN, str(tmp_path / "stackoverflow.sqlite"), str(tmp_path / "shards")]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr
    measured = json.loads(run.stdout.splitlines()[-1])
    print(measured)
    assert (measured["clients"], measured["agree"], measured["tested"]) == (NUM_CLIENTS, True, 1000)
    assert measured["peak_mb"] < MEGABYTES
