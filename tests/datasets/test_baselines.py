"""The accuracies of one answer for all examples, worked by hand."""

import dataclasses
import itertools
import math
from collections import Counter

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from datasets import baselines
from datasets.baselines import compute_majority_accuracies, compute_token_baselines
from datasets.example_format import NEXT_TOKEN, LabelFormat


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


def compare(found, own, overall, on_test_set):
    np.testing.assert_array_equal(found.own, own)
    np.testing.assert_array_equal(found.overall, overall)
    assert found.on_test_set == on_test_set


@pytest.mark.parametrize(
    ("labels", "num_new", "own", "overall", "on_test_set"),
    [
        # Own answers are 0, 2 and, of equals the lowest, 1; of all labels 0 0 1, 2 2 2 0, 1 2 it is 2 (4 of 9).
        (
            [([0, 0, 1], [0, 2]), ([2, 2, 2, 0], [2]), ([2, 1], [2, 2, 1, 0])],
            0,
            [0.5, 1.0, 0.25],
            [0.5, 1.0, 0.5],
            0.5,
        ),
        # A client without a test split counts in the overall class alone: class 1, three against two.
        ([([1, 1, 1], []), ([2, 2], [1, 2])], 0, [np.nan, 0.5], [np.nan, 0.5], 0.25),
        # New clients have classes of their own and count in no other: class 0.
        ([([0], [0]), ([1, 1, 1, 1], [1, 0])], 1, [1.0, 0.5], [1.0, 0.5], 0.25),
    ],
)
def test_worked_by_hand(label, labels, num_new, own, overall, on_test_set):
    compare(compute_majority_accuracies(label(labels, num_new)), own, overall, on_test_set)


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


PAD = 0


def make_labels(positions, num_outputs=5):
    return LabelFormat(NEXT_TOKEN, (positions,), num_outputs, padding=PAD, oov=4)


def test_worked_by_hand_of_token_baselines():
    # Labels of train: 2 3 2, 2 3, 1: 2 is the most frequent. After 1: 2 2; after 2: 3 3 1; after 3: 2.
    train = [
        (np.array([[1, 2, 3]]), np.array([[2, 3, 2]])),
        (np.array([[1, 2, 0], [2, 0, 0]]), np.array([[2, 3, PAD], [1, PAD, PAD]])),
    ]
    test = np.array([[1, 2, 3, 4], [2, 2, 0, 0]]), np.array([[2, 3, 1, 2], [1, 3, PAD, PAD]])
    # Of the six test labels 2 3 1 2 1 3, two are 2. The bigrams give 2 3 2, then 2 (4 was never seen), then 3 3.
    found = compute_token_baselines(train, test, make_labels(4))
    assert found == {"unigram_accuracy": pytest.approx(2 / 6), "bigram_accuracy": pytest.approx(4 / 6)}


@pytest.mark.parametrize(
    ("train_x", "train_y", "test_x", "test_y", "accuracy"),
    [
        ([1, 0, 0, 0], [3, PAD, PAD, -1], [1, 0, 0, 0], [3, PAD, -1, PAD], 1.0),  # padding never counts
        ([1, 1], [4, 4], [1, 1], [4, 2], 0.5),  # tokens outside of the vocabulary do
        ([1, 1, 2, 2], [3, 2, 3, 2], [1, 2], [2, 3], 0.5),  # of equal ones the lowest is given
    ],
)
def test_what_counts_and_what_is_given(train_x, train_y, test_x, test_y, accuracy):
    train, test = [(np.array([train_x]), np.array([train_y]))], (np.array([test_x]), np.array([test_y]))
    found = compute_token_baselines(train, test, make_labels(len(train_x)))
    assert found == {"unigram_accuracy": accuracy, "bigram_accuracy": accuracy}


def test_one_label_for_a_sequence_follows_its_last_token():
    train = [(np.array([[3, 3, 1], [3, 3, 2]]), np.array([[2], [3]]))]
    test = np.array([[1, 2, 2], [2, 2, 1]]), np.array([[3], [2]])
    assert compute_token_baselines(train, test, make_labels(1))["bigram_accuracy"] == 1.0


def test_without_tokens_nothing_is_known():
    nothing = np.zeros((0, 3), np.int32), np.zeros((0, 3), np.int32)
    some = np.array([[1, 2, 3]]), np.array([[2, 3, 1]])
    for train, test in (([], some), ([nothing], some), ([some], nothing)):
        found = compute_token_baselines(train, test, make_labels(3))
        assert all(math.isnan(value) for value in found.values())


@hypothesis.given(st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=8), min_size=1, max_size=6))
def test_as_counters_of_python_have_it(rows):
    """In pieces of three pairs, so that counts are merged many times."""
    clients = [(np.array([row[:-1]]), np.array([row[1:]])) for row in rows]
    pairs = [pair for row in rows for pair in itertools.pairwise(row) if pair[1] != PAD]
    hypothesis.assume(pairs)

    def find_most_frequent(tokens):
        return min(Counter(tokens).items(), key=lambda item: (-item[1], item[0]))[0]

    most_frequent = find_most_frequent([label for _, label in pairs])
    after = {last: find_most_frequent([label for before, label in pairs if before == last]) for last, _ in pairs}
    test = np.arange(7)[np.newaxis], np.array([[1, 2, 3, 4, 5, 6, 1]])
    pairs_of_test = zip(*map(np.ravel, test), strict=True)
    expected = np.mean([after.get(last, most_frequent) == label for last, label in pairs_of_test])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "_MOST_WAITING_PAIRS", 3)
        found = compute_token_baselines(iter(clients), test, make_labels(7, 7))
    assert found["bigram_accuracy"] == pytest.approx(expected)
    assert found["unigram_accuracy"] == pytest.approx(np.mean(test[1] == most_frequent))
