"""Label counts by hand, the hypergeometric law beside SciPy's, and what always holds of clients of archetypes."""

import dataclasses

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from refusals import assert_refused
from small_formats import format_of

from datasets.archetypes import (
    SUCCESSES,
    apportion,
    compute_client_shares,
    compute_hierarchical_shares,
    compute_hypergeometric_shares,
    describe_archetypes,
    draw_clients,
)
from datasets.arrays import make_array_dataset
from datasets.catalog import load_arrays
from datasets.federate import PartitionSettings, build_federated_data
from datasets.federated_data import SPLITS
from datasets.partition_settings import ARCHETYPE_PARTITIONS, ArchetypeSettings

NAMES = tuple("abcdefghij")
SMALL = ArchetypeSettings(train_per_client=40, validation_per_client=10, test_per_client=10)


def make_arrays(train_per_label=100, test_per_label=20, names=NAMES):
    """Examples that carry their own number: train 0, 1, ..., test 100,000, 100,001, ..., labels in turns."""

    def make_part(num_examples, first):
        x = np.arange(first, first + num_examples, dtype=np.float32).reshape(-1, 1)
        return x, np.arange(num_examples) % len(names)

    parts = (make_part(len(names) * train_per_label, 0), make_part(len(names) * test_per_label, 100_000))
    return make_array_dataset("toy", *parts, format_of(parts[0][0], names))


def count_labels(arrays, clients, split):
    y = arrays.test_y if split == "test" else arrays.train_y
    return np.array([np.bincount(y[client[split]], minlength=len(arrays.format.class_names)) for client in clients])


@pytest.mark.parametrize(
    ("size", "archetype", "bias", "counts"),
    [
        # The paper's device: 0.66 * 5,000 of label 3 and 0.34 / 4 * 5,000 of 0, 1, 2 and 4 each.
        (5000, 3, 0.66, [425, 425, 425, 3300, 425, 0, 0, 0, 0, 0]),
        # The upper meta-archetype: 65, and 35 / 4 = 8.75 each, of which the first three are rounded up.
        (100, 7, 0.65, [0, 0, 0, 0, 0, 9, 9, 65, 9, 8]),
        # A bias of a fifth is even, and one of 1 is a single label.
        (100, 1, 0.2, [20, 20, 20, 20, 20, 0, 0, 0, 0, 0]),
        (100, 1, 1.0, [0, 100, 0, 0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_hierarchical_counts_by_hand(size, archetype, bias, counts):
    assert apportion(size, compute_hierarchical_shares(archetype, bias, 10)).tolist() == counts


def test_hypergeometric_shares_by_hand():
    """N = 110, K = 5, n = 9: C(105, 9) / C(110, 9) = (101 * 100 * 99 * 98 * 97) / (110 * 109 * 108 * 107 * 106)."""
    shares = compute_hypergeometric_shares(5, 9, 10)
    none = (101 * 100 * 99 * 98 * 97) / (110 * 109 * 108 * 107 * 106)
    np.testing.assert_allclose(shares[0], none)
    np.testing.assert_allclose(shares[1], none * 5 * 9 / 97)  # C(5,1) C(105,8) / C(105,9) = 5 * 9 / 97
    np.testing.assert_array_equal(shares[6:], 0)  # there are only five successes


@pytest.mark.parametrize("successes", SUCCESSES)
def test_hypergeometric_shares_are_scipys_and_mirror_each_other(successes):
    """With ten draws the last two outcomes are merged, or, as in the authors' code, the last one is dropped."""
    nine, ten = (scipy.stats.hypergeom(110, successes, draws).pmf(np.arange(draws + 1)) for draws in (9, 10))
    shares = compute_hypergeometric_shares(successes, 9, 10)
    np.testing.assert_allclose(shares, nine, atol=1e-12)
    np.testing.assert_allclose(shares[::-1], compute_hypergeometric_shares(110 - successes, 9, 10))
    merged, dropped = (compute_hypergeometric_shares(successes, 10, 10, last) for last in ("merge", "drop"))
    np.testing.assert_allclose(merged, [*ten[:9], ten[9] + ten[10]], atol=1e-12)
    np.testing.assert_allclose(dropped, ten[:10] / ten[:10].sum(), atol=1e-12)


def test_the_most_images_of_a_label_that_the_papers_devices_need():
    """5,000 images of archetype K = 105, of which 93.6 % have nine or ten successes in ten draws."""
    merged, dropped, nine = (
        apportion(5000, compute_hypergeometric_shares(105, draws, 10, last_outcome)).max()
        for draws, last_outcome in ((10, "merge"), (10, "drop"), (9, "merge"))
    )
    assert (merged, dropped) == (4678, 4162)
    assert nine < 4000 < dropped, "a fifth of CIFAR-10's 5,000 images of a label for validation leaves 4,000"


def test_validation_splits_come_from_their_pool_alone():
    """Of 100 examples of a label, a pool of 5 % is 5; the other 95 can be trained on."""
    settings = ArchetypeSettings(0, 95, 5, 0, 1.0, 1.0, validation_pool=0.05)
    clients = draw_clients(make_arrays(), "hierarchical", settings, 0)
    assert [len(client["train"]) for client in clients] == [95] * 30
    assert not {*clients[0]["train"]} & {*clients[0]["validation"]}


def test_apportioning_by_hand():
    """7 by (0.5, 0.3, 0.2): 3.5, 2.1, 1.4, so the first is rounded up; 5 by thirds: 1.67 each, the first two."""
    assert apportion(7, np.array([0.5, 0.3, 0.2])).tolist() == [4, 2, 1]
    assert apportion(5, np.full(3, 1 / 3)).tolist() == [2, 2, 1]
    assert apportion(5000, np.full(10, 0.1)).tolist() == [500] * 10  # though ten tenths are not 1 in binary


@given(
    st.integers(0, 6000), st.lists(st.floats(0, 1), min_size=1, max_size=10).filter(lambda values: sum(values) > 0.1)
)
def test_apportioned_counts_sum_and_are_within_one(num_examples, values):
    shares = np.array(values) / np.sum(values)
    counts = apportion(num_examples, shares)
    assert counts.sum() == num_examples and counts.min() >= 0
    assert np.all(np.abs(counts - num_examples * shares) < 1 + 1e-6)
    assert np.all(counts[shares == 0] == 0)


@st.composite
def drawn_cases(draw):
    bias_min = draw(st.floats(0, 1))
    settings = ArchetypeSettings(
        clients_per_archetype=draw(st.integers(0, 4)),
        train_per_client=draw(st.integers(1, 80)),
        validation_per_client=draw(st.integers(0, 20)),
        test_per_client=draw(st.integers(0, 20)),
        bias_min=bias_min,
        bias_max=draw(st.floats(bias_min, 1)),
        hypergeometric_draws=draw(st.sampled_from([9, 10])),
    )
    return draw(st.sampled_from(ARCHETYPE_PARTITIONS)), settings, draw(st.integers(0, 5))


@hypothesis_settings(deadline=None, max_examples=12)
@given(drawn_cases())
def test_what_always_holds_of_the_clients(case):
    """Sizes as asked, no example twice in a client, none of one pool in another, labels by the shares, repeatable."""
    partition, settings, seed = case
    arrays = make_arrays()
    archetypes = describe_archetypes(partition, NAMES, settings)
    clients = draw_clients(arrays, partition, settings, seed)
    shares = compute_client_shares(partition, archetypes, 10, settings, seed)
    per_archetype = settings.clients_per_archetype or {"hierarchical": 3, "hypergeometric": 5}[partition]
    number = per_archetype * {"hierarchical": 10, "hypergeometric": 6}[partition]
    assert len(clients) == len(archetypes.of_clients) == number
    sizes = {split: getattr(settings, f"{split}_per_client") for split in SPLITS}
    for client in clients:
        for split, indices in client.items():
            assert len(indices) == sizes[split] and np.all(np.diff(indices) > 0)
    held = {split: set(np.concatenate([client[split] for client in clients]).tolist()) for split in SPLITS}
    assert not held["train"] & held["validation"]
    for split in SPLITS:
        expected = [apportion(sizes[split], row) for row in shares]
        np.testing.assert_array_equal(count_labels(arrays, clients, split), expected)
    again = draw_clients(arrays, partition, settings, seed)
    assert all(np.array_equal(a[split], b[split]) for a, b in zip(clients, again, strict=True) for split in SPLITS)


def test_hierarchical_clients_keep_to_their_meta_archetype_and_bias():
    counts = count_labels(make_arrays(), draw_clients(make_arrays(), "hierarchical", SMALL, 0), "train")
    own = counts[np.arange(30), np.arange(30) // 3]
    assert np.all((own >= 24) & (own <= 28)) and len(set(own.tolist())) > 1  # 0.6 to 0.7 of 40, for each client anew
    assert counts[:15, 5:].sum() == counts[15:, :5].sum() == 0


def test_clients_of_an_archetype_draw_independently():
    first, second = draw_clients(make_arrays(), "hypergeometric", SMALL, 0)[:2]
    shared = np.intersect1d(first["train"], second["train"])
    assert 0 < len(shared) < 40
    other = draw_clients(make_arrays(), "hypergeometric", SMALL, 1)[0]
    assert not np.array_equal(first["train"], other["train"])


def test_the_validation_pool_is_a_fifth_of_each_label():
    """100 a label: a client of one label alone can have 80 for training and 20 for validation, not one more."""
    settings = ArchetypeSettings(1, 80, 20, 20, bias_min=1.0, bias_max=1.0)
    clients = draw_clients(make_arrays(), "hierarchical", settings, 0)
    for label, client in enumerate(clients):
        both = np.concatenate([client["train"], client["validation"]])
        np.testing.assert_array_equal(np.sort(both), np.arange(label, 1000, 10))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_per_client": 81}, r"needs 81 train examples of label 0 \(a\), there are 80; lower --train_p"),
        ({"validation_per_client": 30}, "needs 30 validation examples of label 0 .*there are 20; lower --validation_"),
        ({"test_per_client": 1000}, "needs 1,000 test examples of label 0 .*there are 20; lower --test_per_client"),
    ],
)
def test_too_few_examples_of_a_label_are_named(change, message):
    settings = dataclasses.replace(ArchetypeSettings(1, 80, 20, 20, 1.0, 1.0), **change)
    assert_refused(
        f"^toy, partition=hierarchical: client_0 {message}", draw_clients, make_arrays(), "hierarchical", settings, 0
    )


def test_the_size_check_is_by_client_and_not_by_the_sum():
    """30 clients of 80 examples are 2,400, and the pool has 800."""
    clients = draw_clients(make_arrays(), "hierarchical", ArchetypeSettings(0, 80, 1, 1, 0.9, 1.0), 0)
    assert sum(len(client["train"]) for client in clients) == 2400


def test_archetypes_are_named_and_grouped():
    described = describe_archetypes("hierarchical", NAMES, ArchetypeSettings())
    assert described.names == NAMES and described.meta_archetypes == (0,) * 5 + (1,) * 5
    assert described.of_clients[:4] == (0, 0, 0, 1) and len(described.of_clients) == 30
    described = describe_archetypes("hypergeometric", NAMES, ArchetypeSettings())
    assert described.names == ("K=5", "K=25", "K=45", "K=65", "K=85", "K=105")
    assert set(described.meta_archetypes) == {0} and len(described.of_clients) == 30


@pytest.mark.parametrize(
    ("partition", "names", "settings", "message"),
    [
        ("hierarchical", "abc", {}, "partition=hierarchical: 3 labels, expected an even number of at least 4"),
        ("hierarchical", "ab", {}, "partition=hierarchical: 2 labels"),
        ("hypergeometric", "abcdef", {}, "hypergeometric_draws=9: expected 5 for 6 labels, or 6 with the last two"),
        ("hypergeometric", NAMES, {"hypergeometric_draws": 8}, "hypergeometric_draws=8: expected 9 for 10 labels"),
        ("hypergeometric", NAMES, {"hypergeometric_draws": 11}, "hypergeometric_draws=11: expected 9 for 10 labels"),
        ("hypergeometric", NAMES, {"hypergeometric_last_outcome": "drop"}, "or --hypergeometric_draws=10"),
    ],
)
def test_a_partition_that_does_not_fit_the_labels(partition, names, settings, message):
    assert_refused(message, draw_clients, make_arrays(names=tuple(names)), partition, ArchetypeSettings(**settings), 0)


@pytest.mark.parametrize("partition", ARCHETYPE_PARTITIONS)
@pytest.mark.parametrize("bias", [0.2, 0.65, 1.0])
def test_digits_have_enough_for_the_defaults(tmp_path, partition, bias):
    settings = PartitionSettings(partition=partition, bias_min=bias, bias_max=bias)
    data = build_federated_data(load_arrays("digits"), settings, str(tmp_path))
    assert {(client.num_train, client.num_validation, client.num_test) for client in data.clients} == {(100, 25, 30)}
    assert len(data.clients) == len(data.archetypes.of_clients) == 30 and len(data.test_y) == 359


def test_each_split_comes_from_its_pool(tmp_path):
    """The toy's examples carry their numbers: those of the test part begin at 100,000."""
    data = build_federated_data(
        make_arrays(), PartitionSettings(partition="hierarchical", **dataclasses.asdict(SMALL)), str(tmp_path)
    )
    held = {split: data.read_pooled(data.clients, split) for split in SPLITS}
    for split, (x, y) in held.items():
        numbers = x.ravel().astype(int)
        assert np.all((numbers >= 100_000) == (split == "test"))
        np.testing.assert_array_equal(y, numbers % 10)
    assert not set(held["train"][0].ravel()) & set(held["validation"][0].ravel())
    np.testing.assert_array_equal(data.test_x, make_arrays().test_x)
