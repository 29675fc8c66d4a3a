"""Robust aggregators: numbers worked by hand, limit cases, ties, and clients that send anything."""

import numpy as np
import pytest

from tff_algos.rounds import robust_aggregation
from tff_algos.rounds.robust_aggregation import (
    CentredClippingAggregator,
    GeometricMedianAggregator,
    KrumAggregator,
    MedianAggregator,
    TrimmedMeanAggregator,
    compute_krum_scores,
    compute_squared_distances,
)


def combine(aggregator, rows, weights=None, state=()):
    """The update, the next state and the columns for these updates."""
    updates = np.array(rows, np.float32)
    updates.flags.writeable = False
    weights = np.ones(len(updates), np.float32) if weights is None else np.float32(weights)
    update, state, columns = aggregator.combine(updates, weights, state)
    assert update.dtype == np.float32 and update.shape == updates.shape[1:]
    return update, state, columns


AGGREGATORS = (
    MedianAggregator(),
    TrimmedMeanAggregator(0.2),
    KrumAggregator(1),
    KrumAggregator(1, 0),
    GeometricMedianAggregator(20, 1e-6),
    CentredClippingAggregator(3.0, 20),
)


def begin(aggregator, num_weights):
    return (*aggregator.initialize(((num_weights,),), 1), ())[0]


@pytest.fixture(params=AGGREGATORS)
def aggregator(request):
    return request.param


LINE = [[0.0], [1.0], [3.0], [10.0], [4.0]]
ENDS = [[10, 0], [1, 1], [2, 2], [3, 3], [-50, 9]]
SQUARE = [[1, 9], [5, 7], [3, 8], [100, 0]]


@pytest.mark.parametrize(
    ("aggregator", "rows", "update", "columns"),
    [
        (MedianAggregator(), SQUARE[:3], [3, 8], {}),  # of each weight
        (MedianAggregator(), SQUARE, [4, 7.5], {}),
        (TrimmedMeanAggregator(0.2), ENDS, [2, 2], {"num_trimmed": 2}),
        (TrimmedMeanAggregator(0.4), ENDS, [2, 2], {"num_trimmed": 4}),
        (TrimmedMeanAggregator(0.0), SQUARE, [27.25, 6], {"num_trimmed": 0}),  # the equal mean
        # 0.29 * 100 is a little less than 29 in floating point.
        (TrimmedMeanAggregator(0.29), [[0]] * 100, [0], {"num_trimmed": 58}),
        # Of clients 1 and 2 with the same score, the first.
        (KrumAggregator(1), LINE, [1], {"krum_chosen": 1, "krum_num_byzantine": 1}),
        (KrumAggregator(1, 2), LINE, [2], {"krum_num_byzantine": 1}),
        (KrumAggregator(1, 0), LINE, [2], {"krum_num_byzantine": 1}),  # all but one: 0, 1, 3 and 4
        (KrumAggregator(0, 9), [[1], [2], [6]], [3], {"krum_num_byzantine": 0}),  # the clients that there are
        (KrumAggregator(2), [[5, 6]] * 7, [5, 6], {"krum_chosen": 0, "krum_num_byzantine": 2}),
        # From the mean 2 of 0, 0 and 6 the distances are 2, 2 and 4.
        (GeometricMedianAggregator(1, 1e-6), [[0], [0], [6]], [6 / 4 / (1 + 1 / 4)], {"geometric_median_steps": 1}),
        # Not far longer than the others: from the mean 200 the distances are 199, 199, 199 and 597.
        (
            GeometricMedianAggregator(1, 1e-6),
            [[1], [1], [1], [797]],
            [(3 / 199 + 797 / 597) / (3 / 199 + 1 / 597)],
            {"geometric_median_steps": 1},
        ),
        (CentredClippingAggregator(1e9, 1), SQUARE, [27.25, 6], {"clipped_share": 0.0}),  # the equal mean
    ],
)
def test_aggregates_by_hand(aggregator, rows, update, columns):
    weights = [1.0] * len(rows) if isinstance(aggregator, GeometricMedianAggregator) else range(len(rows))
    found, _, measured = combine(aggregator, rows, weights, begin(aggregator, len(rows[0])))
    np.testing.assert_allclose(found, update, rtol=1e-6)
    assert measured.items() >= columns.items()


def test_the_scores_of_krum_by_hand():
    """Of 5 clients with f = 1: the squared distances of the two nearest others."""
    squared = compute_squared_distances(np.float32(LINE))
    assert squared[0].tolist() == [0, 1, 9, 100, 16] and squared[3].tolist() == [100, 81, 49, 0, 36]
    assert compute_krum_scores(squared, 1).tolist() == [1 + 9, 1 + 4, 1 + 4, 36 + 49, 1 + 9]


@pytest.mark.parametrize(("num_clients", "f"), [(7, 2), (6, 1), (5, 1), (4, 0), (3, 0), (2, 0), (1, 0)])
def test_krum_with_fewer_clients_than_it_needs_takes_the_f_that_they_allow(num_clients, f):
    update, _, columns = combine(KrumAggregator(2), [[float(client)] for client in range(num_clients)])
    assert columns["krum_num_byzantine"] == f
    assert update[0] == columns["krum_chosen"]


def test_the_geometric_median_on_a_line_is_the_weighted_median():
    aggregator = GeometricMedianAggregator(500, 1e-6)
    update, _, columns = combine(aggregator, [[0.0], [1.0], [100.0]])
    np.testing.assert_allclose(update, [1.0], atol=0.05)
    assert 1 <= columns["geometric_median_steps"] <= 500
    np.testing.assert_allclose(combine(aggregator, [[0.0], [1.0], [100.0]], [5, 1, 1])[0], [0.0], atol=0.05)


def test_clients_without_any_weight_count_alike_in_the_geometric_median():
    aggregator, rows = GeometricMedianAggregator(3, 1e-6), [[0.0, 1.0], [2.0, 5.0], [3.0, -1.0]]
    assert (combine(aggregator, rows, [0, 0, 0])[0] == combine(aggregator, rows, [1, 1, 1])[0]).all()


def test_centred_clipping_by_hand_and_from_round_to_round():
    """At radius 1 from 0: (3, 4) counts as (0.6, 0.8), (0, 0.5) as it is. From there the state goes on."""
    aggregator = CentredClippingAggregator(1.0, 1)
    state = begin(aggregator, 2)
    update, state, columns = combine(aggregator, [[3, 4], [0, 0.5]], state=state)
    np.testing.assert_allclose(update, [0.3, 0.65], rtol=1e-6)
    assert columns == {"clipped_share": 0.5} and (state == update).all() and state.dtype == np.float32
    update, _, columns = combine(aggregator, [[0.3, 5.65], [0.3, 1.65]], state=state)
    np.testing.assert_allclose(update, [0.3, 1.65], rtol=1e-6)
    assert columns["clipped_share"] == 0.5


def test_one_client_is_its_own_aggregate_and_columns_have_the_same_names_every_round(aggregator):
    update, _, _ = combine(aggregator, [[1.5, -2.0]], state=begin(aggregator, 2))
    np.testing.assert_allclose(update, [1.5, -2.0], rtol=1e-6)
    rng, state, names = np.random.default_rng(7), begin(aggregator, 4), set()
    for num_clients in (5, 1, 2, 6):
        _, state, columns = combine(aggregator, rng.normal(size=(num_clients, 4)), state=state)
        names.add(tuple(columns))
    assert len(names) == 1


def test_a_client_that_sends_anything_moves_nothing_far(aggregator):
    honest = np.random.default_rng(6).normal(1.0, 0.1, size=(6, 20)).astype(np.float32)
    wrong = np.full((1, 20), 1e6, np.float32)
    update, _, _ = combine(aggregator, np.concatenate([honest[:3], wrong, honest[3:]]), state=begin(aggregator, 20))
    # Clipped to radius 3, the wrong one moves the centre by at most half of that.
    assert np.linalg.norm(update - honest.mean(axis=0)) < (1.6 if "Centred" in type(aggregator).__name__ else 1.0)


@pytest.mark.parametrize("size", [1e6, 1e12, -1e18])
def test_the_geometric_median_stays_with_the_majority_however_far_another_is(size):
    """The weighted median of 1, 2, 3, 4 and one far out is 3, or 2; five steps come within 1 of it.

    From the mean of all, size / 5, the fifth step was at about size / 5,000, and further steps ended at a gain of less
    than a millionth of the sum, at size / 1,000,000.
    """
    rows = [[1.0], [2.0], [size], [3.0], [4.0]]
    exact = 3 if size > 0 else 2
    assert combine(GeometricMedianAggregator(500, 1e-6), rows)[0][0] == pytest.approx(exact, abs=1e-3)
    assert combine(GeometricMedianAggregator(5, 1e-6), rows)[0][0] == pytest.approx(exact, abs=1)
    # With 2 of 5 of the weight, too: half of it is reached at 4, or 1.
    heavy = combine(GeometricMedianAggregator(500, 1e-6), rows, [1, 1, 8 / 3, 1, 1])[0][0]
    assert heavy == pytest.approx(4 if size > 0 else 1, abs=0.02)
    idle = combine(GeometricMedianAggregator(20, 1e-6), [[0.0], [0.0], [size]])[0][0]
    assert idle == pytest.approx(0, abs=1e-2)


def test_blocks_change_nothing(aggregator, monkeypatch):
    rows = np.random.default_rng(8).normal(size=(5, 33)).astype(np.float32)
    whole = combine(aggregator, rows, state=begin(aggregator, 33))[0]
    monkeypatch.setattr(robust_aggregation, "BLOCK_NUMBERS", 20)
    np.testing.assert_allclose(combine(aggregator, rows, state=begin(aggregator, 33))[0], whole, rtol=1e-6)
