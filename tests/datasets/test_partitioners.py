"""Invariants of every partitioner on arbitrary labels, and hand-worked cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from refusals import assert_refused

from datasets import partitioners
from datasets.cifar import CIFAR100_CLASS_NAMES, KIND_OF_CLASS
from datasets.partition_settings import PartitionSettings
from datasets.partitioners import (
    PARTITIONS,
    _fill_empty_clients,
    draw_shares,
    find_kinds,
    partition_dirichlet,
    partition_iid,
    partition_natural,
    partition_pachinko,
    partition_shards,
)


@st.composite
def labels_and_settings(draw):
    labels = np.array(draw(st.lists(st.integers(0, 6), min_size=1, max_size=120)))
    return labels, PartitionSettings(
        partition=draw(st.sampled_from(["iid", "dirichlet", "shards", "natural"])),
        num_clients=draw(st.integers(1, len(labels))),
        dirichlet_alpha=draw(st.sampled_from([1e-3, 0.1, 1.0, 1e4])),
        labels_per_client=draw(st.integers(1, 4)),
        seed=draw(st.integers(0, 5)),
    )


def run(labels, settings):
    clients = np.arange(len(labels)) % settings.num_clients
    return PARTITIONS[settings.partition](labels, clients, settings, np.random.default_rng(settings.seed), ())


@hypothesis_settings(deadline=None)
@given(labels_and_settings())
def test_every_example_is_used_once_by_clients_that_all_have_some(case):
    labels, settings = case
    if settings.partition == "shards" and settings.labels_per_client > len(np.unique(labels)):
        assert_refused("the classes there are", run, labels, settings)
        return
    if settings.partition == "shards" and settings.num_clients * settings.labels_per_client < len(np.unique(labels)):
        assert_refused("cannot hold", run, labels, settings)
        return
    parts = run(labels, settings)
    assert len(parts) == settings.num_clients and min(len(part) for part in parts) >= 1
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))
    assert all(np.all(np.diff(part) > 0) for part in parts)
    for part, again in zip(parts, run(labels, settings), strict=True):
        np.testing.assert_array_equal(part, again)
    if settings.partition == "shards":
        assert max(len(np.unique(labels[part])) for part in parts) <= settings.labels_per_client


@pytest.mark.parametrize("name", ["iid", "dirichlet", "shards"])
def test_another_seed_gives_another_split_and_each_client_needs_an_example(name):
    first, second = (
        run(np.arange(100) % 5, PartitionSettings(partition=name, num_clients=5, seed=seed)) for seed in (0, 1)
    )
    assert not all(map(np.array_equal, first, second))
    settings = PartitionSettings(partition=name, num_clients=4)
    assert_refused("num_clients=4: expected 1 to 3", run, np.array([0, 1, 1]), settings)


def test_iid_sizes_differ_by_at_most_one():
    sizes = sorted(len(part) for part in partition_iid(np.zeros(11, int), 4, np.random.default_rng(0)))
    assert sizes == [2, 3, 3, 3]


def test_dirichlet_is_skewed_for_small_alpha_and_even_for_large():
    labels = np.repeat(np.arange(10), 500)

    def largest_label_share(alpha):
        parts = partition_dirichlet(labels, 10, alpha, np.random.default_rng(0))
        return np.mean([np.bincount(labels[part]).max() / len(part) for part in parts])

    assert largest_label_share(1e6) == pytest.approx(0.1, abs=0.005)
    assert largest_label_share(0.1) > 0.5


def test_dirichlet_gives_an_empty_client_one_example_of_the_largest():
    # One class at vanishing alpha goes to one client as a whole; the other four get one example each.
    parts = partition_dirichlet(np.zeros(20, int), 5, 1e-6, np.random.default_rng(0))
    assert sorted(len(part) for part in parts) == [1, 1, 1, 1, 16]


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_is_asked_for_each_empty_client_in_turn(seed):
    """Against the same rule, spelled out: the first of the largest gives a random one of its examples."""
    owners = np.random.default_rng(seed).choice([0, 3, 3, 7], 40)
    expected, rng = owners.copy(), np.random.default_rng(9)
    for client in range(12):
        if client not in owners:
            counts = np.bincount(expected, minlength=12)
            expected[rng.choice(np.flatnonzero(expected == counts.argmax()))] = client
    _fill_empty_clients(owners, 12, np.random.default_rng(9))
    assert np.array_equal(owners, expected) and np.bincount(owners, minlength=12).min() > 0


def test_shards_of_equal_classes_are_mcmahans():
    # 100 clients x 2 shards of 600 examples in 10 classes: 200 shards of 3, 20 a class, 6 examples a client.
    labels = np.repeat(np.arange(10), 60)
    parts = partition_shards(labels, 100, 2, np.random.default_rng(0))
    assert {len(part) for part in parts} == {6}
    assert all(set(np.bincount(labels[part])) <= {0, 3, 6} for part in parts)


def test_shards_follow_the_sizes_of_uneven_classes():
    # Sizes 90, 9, 1 and 10 shards: one each, then the next always to the class of 90: 8, 1, 1 (90/8 > 9).
    labels = np.repeat([0, 1, 2], [90, 9, 1])
    parts = partition_shards(labels, 10, 1, np.random.default_rng(0))
    assert sorted(len(part) for part in parts) == [1, 9, 11, 11, 11, 11, 11, 11, 12, 12]


def test_natural_keeps_examples_with_their_maker():
    parts = partition_natural(np.array([1, 0, 1, 2]), 3)
    assert [part.tolist() for part in parts] == [[1], [0, 2], [3]]
    settings = PartitionSettings(partition="natural")
    assert_refused("does not say who", PARTITIONS["natural"], np.zeros(4, int), None, settings, None, ())


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("partition", ["sorted"]),
        ("num_clients", [0]),
        ("dirichlet_alpha", [0.0, float("nan")]),
        ("labels_per_client", [0]),
        ("validation_fraction", [0.6]),
        ("test_fraction", [-0.1]),
        ("seed", [-1]),
        ("most_clients", [3]),  # of another partition, which has its number otherwise
        *((name, [0.0, -1.0, float("inf"), float("nan")]) for name in ("pachinko_alpha", "pachinko_beta")),
        *((name, [-1]) for name in ("clients_per_archetype", "validation_per_client", "test_per_client")),
        *((name, [0]) for name in ("train_per_client", "hypergeometric_draws")),
        ("bias_min", [-0.1]),
        ("bias_max", [1.1, 0.5, float("nan")]),
    ],
)
def test_settings_out_of_range(name, values):
    for value in values:
        assert_refused(f"^{name}={value}: expected ", PartitionSettings, **{name: value})


@pytest.mark.parametrize("alpha", [5e-324, 1e-300, 1e-20, 1e-12, 9e-7])
def test_a_tiny_alpha_gives_all_to_one_client_at_once(alpha):
    draws = np.stack([draw_shares(4, alpha, np.random.default_rng(seed)) for seed in range(400)])
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    assert np.all(draws.max(axis=1) > 0.999)
    # Each of the four is as likely: 400 draws have 100 +- 8.7, within 5 deviations.
    assert np.all(np.abs(np.bincount(draws.argmax(axis=1), minlength=4) - 100) < 44)


@pytest.mark.parametrize("alpha", [1e90, 1e100, 1e300, 1.7e308])
def test_a_giant_alpha_gives_equal_shares(alpha):
    np.testing.assert_allclose(draw_shares(10, alpha, np.random.default_rng(0)), 0.1)


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.1, 0.5, 1.0, 1000.0])
def test_the_shares_of_alphas_in_use_are_numpys(alpha):
    expected = np.random.default_rng(3).dirichlet(np.full(7, alpha))
    np.testing.assert_array_equal(draw_shares(7, alpha, np.random.default_rng(3)), expected)


def test_the_draw_in_logarithms_is_the_same_distribution(monkeypatch):
    """The share of the first of two clients is a Beta variate: its mean is 1/2, its variance 1 / (8 alpha + 4)."""
    monkeypatch.setattr(partitioners, "LEAST_DRAWN_ALPHA", 10.0)
    rng = np.random.default_rng(0)
    for alpha in (0.3, 2.0):
        first = np.array([draw_shares(2, alpha, rng)[0] for _ in range(4000)])
        assert abs(first.mean() - 0.5) < 0.03 and abs(first.var() * (8 * alpha + 4) - 1) < 0.1


KINDS = np.array([0, 0, 1, 1])


def deal(labels, num_clients, alpha=0.1, beta=10.0, kinds=KINDS, seed=0):
    settings = PartitionSettings(pachinko_alpha=alpha, pachinko_beta=beta)
    return partition_pachinko(np.array(labels), kinds, num_clients, settings, draw_shares, np.random.default_rng(seed))


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 12), st.sampled_from([1e-9, 0.1, 10.0, 1e6])
)
def test_every_example_has_one_owner_and_sizes_differ_by_at_most_one(labels, num_clients, alpha):
    if num_clients > len(labels):
        assert_refused(f"num_clients={num_clients}: expected 1 to {len(labels)}", deal, labels, num_clients)
        return
    parts, again = (deal(labels, num_clients, alpha, alpha, seed=3) for _ in range(2))
    assert all(map(np.array_equal, parts, again))
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert all((np.diff(part) > 0).all() for part in parts)


def test_small_concentrations_give_a_client_one_kind_and_one_class_of_a_kind():
    labels = np.repeat(np.arange(4), 500)
    one_kind, one_class = (
        np.bincount(labels[deal(labels, 10, alpha, beta)[0]], minlength=4).reshape(2, 2)
        for alpha, beta in ((1e-6, 1e6), (1e6, 1e-6))
    )
    assert np.count_nonzero(one_kind.sum(axis=1)) == 1
    assert one_kind.max() == pytest.approx(100, abs=30)  # of 200: three deviations of a fair coin are 21
    assert (np.count_nonzero(one_class, axis=1) == 1).all()


def test_the_last_clients_take_what_is_left():
    labels = [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    parts = deal(labels, 2, alpha=1e-9, beta=1e-9)
    assert [len(part) for part in parts] == [6, 6]


def test_kinds_are_those_of_cifar100():
    assert find_kinds(CIFAR100_CLASS_NAMES).tolist() == list(KIND_OF_CLASS)
    assert_refused("partition=pachinko: it needs classes that are of kinds", find_kinds, ("cat", "dog"))
