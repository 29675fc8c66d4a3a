"""What is reached without a model, client by client, by hand."""

import math

import numpy as np
import pytest
from made_contests import CLASSES, ERRORS

from datasets.example_format import MULTI_LABEL, NEXT_TOKEN, REGRESSION, ExampleFormat, LabelFormat
from datasets.federated_data import ClientFiles, FederatedData
from launch.advice.trivial import AFTER, ALL, ANY, OWN, collect_trivial, measure_trivial, title_row
from launch.runs.task_columns import find_task_columns

SPLITS = ("train", "validation", "test")


def make_data(format, clients, new=()):
    """A federation of clients that are {split: (x, y)} each, which are read from memory."""
    everyone = [*clients, *new]
    files = [
        ClientFiles(i, f"c{i}", "", *(len(splits[split][1]) for split in SPLITS)) for i, splits in enumerate(everyone)
    ]
    return FederatedData(
        *("made", format, tuple(files[: len(clients)]), np.zeros((len(clients), 0), np.int64)),
        *(np.zeros((0,)), np.zeros((0,)), None),
        new_clients=tuple(files[len(clients) :]),
        reader=lambda client, split: everyone[client.index][split],
    )


def give_labels(train, validation, test, dtype=np.int32):
    return {
        split: (np.zeros((len(y), 1), np.float32), np.array(y, dtype))
        for split, y in zip(SPLITS, (train, validation, test), strict=True)
    }


def test_the_most_frequent_class_of_each_client_and_of_all():
    """Of all train labels 0 is the most frequent, 5 of 9, though the second client has two 1 of three."""
    clients = [give_labels([0, 0, 0, 1], [0, 1], [0, 0, 1, 1]), give_labels([1, 1, 0], [1], [1, 1, 1, 0])]
    new = [give_labels([1, 1], [], [1, 0])]
    rows = measure_trivial(make_data(ExampleFormat((1,), "float32", ("no", "yes")), clients, new), CLASSES)
    assert rows[OWN].tests == {"c0": 0.5, "c1": 0.75} and rows[ALL].tests == {"c0": 0.5, "c1": 0.25}
    assert (rows[OWN].validation, rows[ALL].validation) == (0.75, 0.25)
    assert rows[OWN].new == {"c2": 0.5} and rows[ALL].new == {"c2": 0.5}


def test_the_mean_of_each_client_and_of_all():
    """Means 2 and 5, of all (1 + 3 + 5) / 3 = 3; on 2 and 6 the first has sqrt((0 + 16) / 2)."""
    clients = [give_labels([1, 3], [2], [2, 6], np.float32), give_labels([5], [], [7], np.float32)]
    format = ExampleFormat((1,), "float32", (), labels=LabelFormat(REGRESSION, (), 1))
    rows = measure_trivial(make_data(format, clients), ERRORS)
    assert rows[OWN].tests == {"c0": pytest.approx(math.sqrt(8)), "c1": 2.0}
    assert rows[ALL].tests == {"c0": pytest.approx(math.sqrt((1 + 9) / 2)), "c1": 4.0}
    assert (rows[OWN].validation, rows[ALL].validation) == (0.0, 1.0)


def test_the_most_frequent_token_and_the_one_after_the_last():
    """The first client says 1 2 1 2, the second 3 3 3. After 1 comes 2, after 3 comes 3; of all, 3 is the most frequent
    of 2 1 2 3 3 3 3."""
    first, second = (np.array([[1, 2, 1]]), np.array([[2, 1, 2]])), (np.array([[3, 3, 3, 3]]), np.array([[3, 3, 3, 3]]))
    clients = [dict.fromkeys(SPLITS, first), dict.fromkeys(SPLITS, second)]
    format = ExampleFormat((3,), "int32", (), labels=LabelFormat(NEXT_TOKEN, (3,), 5), takes_tokens=True)
    rows = measure_trivial(make_data(format, clients), find_task_columns(NEXT_TOKEN))
    assert rows[OWN].tests == {"c0": pytest.approx(2 / 3), "c1": 1.0}
    assert rows[ALL].tests == {"c0": 0.0, "c1": 1.0}
    assert rows[AFTER].tests == {"c0": 1.0, "c1": 1.0}


def test_of_auc_any_order_is_a_half():
    y = np.array([[0, 1], [1, 0]], np.uint8)
    clients = [dict.fromkeys(SPLITS, (np.zeros((2, 1), np.float32), y))]
    format = ExampleFormat((1,), "float32", ("a", "b"), labels=LabelFormat(MULTI_LABEL, (2,), 2))
    task = find_task_columns(MULTI_LABEL)
    assert measure_trivial(make_data(format, clients), task)[ANY].tests == {"c0": 0.5}


def test_rows_are_measured_as_methods_are():
    clients = [give_labels([0, 0], [], [0, 1]), give_labels([0], [], [])]
    rows = measure_trivial(make_data(ExampleFormat((1,), "float32", ("no", "yes")), clients), CLASSES)
    assert math.isnan(rows[OWN].validation), "no client has validation examples"
    own, every = collect_trivial({0: rows, 7: rows}, CLASSES)
    assert (own.name, own.role, own.tests) == (OWN, "trivial", {0: {"c0": 0.5}, 7: {"c0": 0.5}})
    assert own.validations == {} and own.title == "always each client's own most frequent class"
    assert every.title == "always the most frequent class" and title_row(ALL, ERRORS) == "always the mean of all"
