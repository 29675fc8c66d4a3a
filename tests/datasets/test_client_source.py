"""A data set by its clients: what is refused, and what pooling makes of it."""

import numpy as np
import pytest
from refusals import assert_refused

from datasets import client_source
from datasets.client_source import ClientSource
from datasets.example_format import ExampleFormat, LabelFormat

COUNTS = {"train": [3, 0, 5], "validation": [1, 0, 0], "test": [0, 2, 1]}
BASE = {"train": 0, "validation": 100, "test": 200}


def read(client, split):
    """Examples that tell their client and split."""
    count = COUNTS[split][client]
    x = np.full((count, 2), BASE[split] + 10 * client, np.float32) + np.arange(count, dtype=np.float32)[:, np.newaxis]
    return x, (np.arange(count) % 2).astype(np.int32)


def make(splits=("train", "validation", "test"), read=read, example_format=None, **changes):
    values = {
        "name": "mine",
        "format": example_format or ExampleFormat((2,), "float32", ("no", "yes")),
        "client_names": ("a", "Zoë", "c"),
        "num_examples": {split: np.array(COUNTS[split]) for split in splits},
        "read": read,
        "digest": "00",
    }
    return ClientSource(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"client_names": ("a", "b", "a")}, "two clients are called 'a'"),
        ({"client_names": ("a", "b")}, "3 counts of train for 2 clients"),
        ({"client_names": ("a", "b\n", "c")}, "holds the control character"),
        ({"num_examples": {"test": np.ones(3, int)}}, "parts test, expected train"),
        ({"num_examples": {"train": np.ones(3, int), "dev": np.ones(3, int)}}, "parts train, dev"),
        ({"num_examples": {"train": np.zeros(3, int)}}, "nobody has an example to train on"),
        ({"overlap": 1}, "overlap=1, expected 0 of examples that are in no order"),
    ],
)
def test_what_does_not_fit_is_refused(changes, expected):
    assert_refused(expected, make, **changes)


def test_tests_of_the_data_are_known():
    assert make().has_tests and not make(("train",)).has_tests
    assert not make(num_examples={"train": np.ones(3, int), "test": np.zeros(3, int)}).has_tests


def test_all_of_a_split_in_the_order_of_the_clients():
    x, y, clients = make().read_all("train")
    assert x[:, 0].tolist() == [0, 1, 2, 20, 21, 22, 23, 24]
    assert y.tolist() == [0, 1, 0, 0, 1, 0, 1, 0] and clients.tolist() == [0, 0, 0, 2, 2, 2, 2, 2]


def test_too_much_for_memory_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(client_source, "MOST_POOLED_BYTES", 60)
    assert_refused("--partition=natural", make(read=lambda *_: pytest.fail("read")).read_all, "train")


def test_pooled_data_keep_the_test_part_and_train_on_validation():
    arrays = make().pool()
    assert sorted(arrays.train_x[:, 0]) == [0, 1, 2, 20, 21, 22, 23, 24, 100]
    assert sorted(arrays.test_x[:, 0]) == [210, 211, 220]
    assert arrays.client_names == ("a", "c") and np.count_nonzero(arrays.train_clients == 0) == 4
    assert arrays.format.class_names == ("no", "yes") and arrays.name == "mine"


def test_without_a_test_part_a_fifth_is_held_out():
    arrays = make(("train",)).pool(seed=1)
    assert len(arrays.test_x) == 2 and len(arrays.train_x) == 6
    assert len({*arrays.train_x[:, 0], *arrays.test_x[:, 0]}) == 8
    np.testing.assert_array_equal(arrays.test_x, make(("train",)).pool(seed=1).test_x)


def test_too_few_to_hold_out_is_one_line():
    def read_two(client, split):
        x, y = read(client, split)
        return x[:1], y[:1]

    counts = {"train": np.array([1, 0, 1])}
    assert_refused("2 examples are too few .* a class with 3 or more", make(num_examples=counts, read=read_two).pool)


def test_data_without_clients_are_pooled_without_them():
    assert make(has_clients=False).pool().client_names is None


def test_a_regression_is_standardised_by_its_train_part():
    def read_numbers(client, split):
        x, _ = read(client, split)
        return x, x[:, 0] + 0.5

    example_format = ExampleFormat((2,), "float32", (), labels=LabelFormat("regression", (), 1))
    labels = make(("train", "test"), read_numbers, example_format).pool().format.labels
    # 0.5, 1.5, 2.5, 20.5 .. 24.5: the squares of what they differ from their mean have the sum 838.875.
    assert labels.offset == pytest.approx((14.625,)) and labels.scale == pytest.approx(((838.875 / 8) ** 0.5,))
    given = ExampleFormat((2,), "float32", (), labels=LabelFormat("regression", (), 1, (3.0,), (2.0,)))
    assert make(("train", "test"), read_numbers, given).pool().format.labels.offset == (3.0,)
