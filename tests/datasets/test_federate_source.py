"""Federations that read a client when somebody asks for it."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets.client_files import clean_client_dir
from datasets.client_source import ClientSource
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.federate import build_federated_data
from datasets.label_format import REGRESSION, LabelFormat
from datasets.partition_settings import PartitionSettings
from datasets.splits import count_drawn, split_client

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
    with pytest.raises(DatasetError, match="new_clients=2: expected fewer than the 2 clients"):
        build(make_source(Reads()), tmp_path, num_new_clients=2)


def test_other_partitions_take_all_into_memory(tmp_path):
    settings_ = PartitionSettings("iid", num_clients=3)
    data = build_federated_data(make_source(Reads()), settings_, str(tmp_path))
    assert data.num_train.sum() + sum(client.num_validation + client.num_test for client in data.clients) == 27
    assert len(data.test_y) == 6


def test_who_holds_what_must_be_known(tmp_path):
    source = make_source(Reads(train=(24,), test=(0,)), has_clients=False)
    with pytest.raises(DatasetError, match="own does not say who holds which example"):
        build(source, tmp_path)


def test_somebody_must_have_a_test_example(tmp_path):
    with pytest.raises(DatasetError, match="no test examples"):
        build(make_source(Reads(train=(5, 11, 1)), has_tests=False), tmp_path)


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


@settings(max_examples=50, deadline=None)
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
