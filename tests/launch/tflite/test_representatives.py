"""Whose examples set the ranges of int8: every class of every client has its say."""

import numpy as np
import pytest

from launch.settings.flags import FlagError
from launch.tflite.export_plan import ModelExport
from launch.tflite.representatives import (
    choose_evenly,
    choose_examples,
    find_representative_clients,
    read_representative_examples,
)

EXPORT = ModelExport("cluster_1", "cluster_1", False, ("int8",), ("client_1", "client_2"))


def names(clients):
    return [client.name for client in clients]


def test_all_users_of_a_model_or_the_one_asked_for(make_federation):
    data = make_federation([5, 3, 4])
    assert names(find_representative_clients(EXPORT, data, "")) == ["client_1", "client_2"]
    assert names(find_representative_clients(EXPORT, data, "client_0")) == ["client_0"]
    assert names(find_representative_clients(EXPORT._replace(clients=()), data, "")) == names(data.clients)
    personal = EXPORT._replace(name="client_2", clients=("client_2",), is_personal=True)
    assert names(find_representative_clients(personal, data, "")) == ["client_2"]


def test_a_client_without_examples_is_passed_over_or_refused(make_federation):
    data = make_federation([5, 3, 0])
    assert names(find_representative_clients(EXPORT, data, "")) == ["client_1"]
    with pytest.raises(FlagError, match="--representative_client=client_2: no train examples there; choose another"):
        find_representative_clients(EXPORT, data, "client_2")


def count(labels, num_examples):
    """{(client, label): how many} of what is chosen."""
    counts = {}
    for client, rows in choose_examples([np.array(own) for own in labels], num_examples):
        assert rows.tolist() == sorted(set(rows.tolist()))
        for label in np.array(labels[client])[rows].tolist():
            counts[client, label] = counts.get((client, label), 0) + 1
    return counts


def test_every_class_of_every_client_gives_as_many():
    """The client with most examples has one class alone, and gives no more of it than the others."""
    labels = [[0] * 300, [0, 1] * 20, [1, 2] * 20]
    assert count(labels, 50) == {(0, 0): 10, (1, 0): 10, (1, 1): 10, (2, 1): 10, (2, 2): 10}


def test_what_a_group_lacks_the_others_give():
    labels = [[0], [0] * 30, [1] * 30]  # a client with one example
    assert count(labels, 21) == {(0, 0): 1, (1, 0): 10, (2, 1): 10}
    assert count(labels, 1000) == {(0, 0): 1, (1, 0): 30, (2, 1): 30}


def test_a_class_of_one_client_alone_is_there_among_many_clients():
    labels = [[0, 1] * 5 for _ in range(500)]
    labels[377] = [0, 2]
    counts = count(labels, 30)
    assert sum(counts.values()) == 30 and set(counts.values()) == {1}
    assert (377, 2) in counts
    of_classes = [sum(label == each for _, label in counts) for each in range(3)]
    assert of_classes[2] == 1 and abs(of_classes[0] - of_classes[1]) <= 1
    givers = sorted({client for client, _ in counts})
    assert givers[0] < 100 and givers[-1] >= 400  # not the first clients only
    assert counts == count(labels, 30)


def test_examples_are_as_stored_and_the_same_each_time(make_federation):
    data = make_federation([6, 1, 4])
    x = read_representative_examples(data, data.clients, 200)
    pooled, _ = data.read_pooled(data.clients, "train")
    np.testing.assert_array_equal(x, pooled)  # all there are
    few = read_representative_examples(data, data.clients, 3)
    assert len(few) == 3 and few.dtype == pooled.dtype
    np.testing.assert_array_equal(few, read_representative_examples(data, data.clients, 3))


@pytest.mark.parametrize(
    ("length", "wanted", "expected"), [(5, 3, [0, 2, 4]), (3, 5, [0, 1, 2]), (4, 1, [0]), (0, 3, [])]
)
def test_rows_are_chosen_evenly(length, wanted, expected):
    assert choose_evenly(np.arange(length), wanted).tolist() == expected
