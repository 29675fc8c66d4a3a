"""The accuracies of one answer for all examples, worked by hand."""

import dataclasses

import numpy as np
import pytest

from datasets.baselines import compute_majority_accuracies


@pytest.fixture
def label(make_federation):
    """A function ((train labels, test labels) of each client, number of new clients) -> FederatedData."""

    def make(labels, num_new=0):
        data = make_federation([len(train) for train, _ in labels])
        clients = []
        for client, (train, test) in zip(data.clients, labels, strict=True):
            np.array(train, np.int32).tofile(f"{client.path}.train.y")
            np.array(test, np.int32).tofile(f"{client.path}.test.y")
            clients.append(dataclasses.replace(client, num_test=len(test)))
        members = clients[: len(clients) - num_new]
        counts = [np.bincount(train, minlength=3) for train, _ in labels[: len(members)]]
        return dataclasses.replace(
            data,
            clients=tuple(members),
            new_clients=tuple(clients[len(members) :]),
            label_counts=np.stack(counts),
            test_y=np.array([2, 2, 1, 0], np.int32),
        )

    return make


def test_worked_by_hand(label):
    # The own answers are 0, 2 and, of equals the lowest, 1; of all train labels 0 0 1, 2 2 2 0, 1 2 it is 2 (4 of 9).
    found = compute_majority_accuracies(label([([0, 0, 1], [0, 2]), ([2, 2, 2, 0], [2]), ([2, 1], [2, 2, 1, 0])]))
    assert found.own.tolist() == [0.5, 1.0, 0.25]
    assert found.overall.tolist() == [0.5, 1.0, 0.5]
    assert found.on_test_set == 0.5


def test_a_client_without_a_test_split_counts_in_the_overall_class_alone(label):
    found = compute_majority_accuracies(label([([1, 1, 1], []), ([2, 2], [1, 2])]))
    np.testing.assert_array_equal(found.own, [np.nan, 0.5])
    np.testing.assert_array_equal(found.overall, [np.nan, 0.5])
    assert found.on_test_set == 0.25  # class 1: three against two


def test_new_clients_have_classes_of_their_own_and_count_in_no_other(label):
    found = compute_majority_accuracies(label([([0], [0]), ([1, 1, 1, 1], [1, 0])], num_new=1))
    assert found.own.tolist() == [1.0, 0.5]
    assert found.overall.tolist() == [1.0, 0.5]  # class 0
    assert found.on_test_set == 0.25


@pytest.mark.parametrize(("are_counted", "on_test_set"), [(True, 0.5), (False, 0.25)])
def test_of_some_clients_the_overall_class_is_still_that_of_all_if_labels_are_counted(label, are_counted, on_test_set):
    """Client 0 has class 1, a fourth of the test set, and both together class 2, half of it."""
    data = label([([1], [1]), ([2, 2], [2])])
    data = data if are_counted else dataclasses.replace(data, label_counts=np.zeros((2, 0), np.int64))
    found = compute_majority_accuracies(data, data.clients[:1])
    np.testing.assert_array_equal(found.own, [1.0, np.nan])
    assert found.on_test_set == on_test_set


def test_an_empty_test_set_has_no_accuracy(label):
    data = dataclasses.replace(label([([1], [1])]), test_y=np.zeros(0, np.int32))
    assert np.isnan(compute_majority_accuracies(data).on_test_set)
