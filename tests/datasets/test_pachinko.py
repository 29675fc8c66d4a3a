"""Pachinko Allocation: its invariants, its two extremes, and what happens when classes run out."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from datasets.cifar100 import CLASS_NAMES, KIND_OF_CLASS
from datasets.errors import DatasetError
from datasets.partition_settings import PachinkoSettings
from datasets.partitioners import draw_shares, find_kinds, partition_pachinko

KINDS = np.array([0, 0, 1, 1])


def deal(labels, num_clients, alpha=0.1, beta=10.0, kinds=KINDS, seed=0):
    settings = PachinkoSettings(alpha, beta)
    return partition_pachinko(np.array(labels), kinds, num_clients, settings, draw_shares, np.random.default_rng(seed))


@hypothesis.given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 12), st.sampled_from([1e-9, 0.1, 10.0, 1e6])
)
def test_every_example_has_one_owner_and_sizes_differ_by_at_most_one(labels, num_clients, alpha):
    hypothesis.assume(num_clients <= len(labels))
    parts = deal(labels, num_clients, alpha, alpha)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert all((np.diff(part) > 0).all() for part in parts)


def test_a_small_alpha_gives_a_client_one_kind_and_a_large_beta_its_classes_alike():
    labels = np.repeat(np.arange(4), 500)
    first = deal(labels, 10, alpha=1e-6, beta=1e6)[0]
    counts = np.bincount(labels[first], minlength=4)
    assert np.count_nonzero(counts.reshape(2, 2).sum(axis=1)) == 1
    assert counts.max() == pytest.approx(100, abs=30)  # of 200: three deviations of a fair coin are 21


def test_a_small_beta_gives_a_client_one_class_of_a_kind():
    labels = np.repeat(np.arange(4), 500)
    counts = np.bincount(labels[deal(labels, 10, alpha=1e6, beta=1e-6)[0]], minlength=4).reshape(2, 2)
    assert (np.count_nonzero(counts, axis=1) == 1).all()


def test_the_last_clients_take_what_is_left():
    labels = [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    parts = deal(labels, 2, alpha=1e-9, beta=1e-9)
    assert [len(part) for part in parts] == [6, 6]


def test_the_same_seed_gives_the_same_parts():
    labels = np.arange(200) % 4
    for one, other in zip(deal(labels, 5, seed=3), deal(labels, 5, seed=3), strict=True):
        np.testing.assert_array_equal(one, other)


def test_kinds_are_those_of_cifar100():
    assert find_kinds(CLASS_NAMES).tolist() == list(KIND_OF_CLASS)
    with pytest.raises(DatasetError, match="partition=pachinko: it needs classes that are of kinds"):
        find_kinds(("cat", "dog"))


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("field", ["pachinko_alpha", "pachinko_beta"])
def test_concentrations_are_above_zero(field, value):
    with pytest.raises(DatasetError, match=f"{field}="):
        PachinkoSettings(**{field: value})


def test_more_clients_than_examples_are_refused():
    with pytest.raises(DatasetError, match="num_clients=5: expected 1 to 4"):
        deal([0, 1, 2, 3], 5)
