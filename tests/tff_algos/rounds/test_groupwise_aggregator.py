"""An aggregator of single updates at work on every group: states, columns, and groups without clients."""

import warnings

import numpy as np

from tff_algos.client.local_training import LocalResult
from tff_algos.rounds.aggregation import ClientUpdate, sum_on_host
from tff_algos.rounds.aggregators import GroupwiseAggregator
from tff_algos.rounds.list_aggregator import ListAggregator
from tff_algos.rounds.robust_aggregation import CentredClippingAggregator

SHAPES = ((1, 2), (), (1,))


class Summing(ListAggregator):
    """The weighted sum, plus what the group's state holds: the number of its calls, and the sum of all its updates."""

    def initialize(self, shapes, num_groups):
        assert list(shapes) == list(SHAPES)
        return tuple({"calls": np.int32(0), "sum": np.full(4, 10.0 * g, np.float32)} for g in range(num_groups))

    def combine(self, updates, weights, state):
        total = weights @ updates
        following = {"calls": np.int32(state["calls"] + 1), "sum": (state["sum"] + total).astype(np.float32)}
        return total, following, {"aggregator_clients": len(updates), "aggregator_calls": int(following["calls"])}


class Stateless(ListAggregator):
    def combine(self, updates, weights, state):
        assert state == ()
        return updates[-1], (), {}


def make_update(values, group=0, weight=1.0, is_finite=True):
    values = np.float32(values)
    deltas = (values[:2].reshape(1, 2), values[2], values[3:])
    result = LocalResult(deltas, np.float32(0), np.float32(0), np.float32(1), np.bool_(is_finite))
    return ClientUpdate(result, np.int32(group), np.float32(weight))


def aggregate(aggregator, updates, state, num_groups=3):
    sizes = np.bincount([int(each.group) for each in updates], minlength=num_groups)
    totals = sum_on_host(updates, SHAPES, num_groups)
    return aggregator.aggregate(updates, totals, (), sizes, state, 1)


AGGREGATOR = GroupwiseAggregator(Summing(), SHAPES, "a note")


def test_each_group_has_its_own_updates_and_state():
    """Group 1 has nobody, and of group 2's clients one is rejected."""
    state = AGGREGATOR.initialize(3)
    assert state["calls"].tolist() == [0, 0, 0] and state["sum"].shape == (3, 4)
    updates = [
        make_update([1, 2, 3, 4], 0, 2.0),
        make_update([5, 5, 5, 5], 2, 1.0),
        make_update([1, 1, 1, 1], 0, 3.0),
        make_update([0, 0, 0, 0], 2, 9.0, is_finite=False),
    ]
    outcome = aggregate(AGGREGATOR, updates, state)
    assert [array.shape for array in outcome.update] == [(3, 1, 2), (3,), (3, 1)]
    rows = np.concatenate([array.reshape(3, -1) for array in outcome.update], axis=1)
    assert rows.tolist() == [[5, 7, 9, 11], [0] * 4, [5] * 4] and rows.dtype == np.float32
    assert outcome.has_update.tolist() == [True, False, True] and outcome.divisor == 1
    assert outcome.weight.tolist() == [5, 0, 1]
    # The state of who had no update is untouched, and that from before the round is as it was.
    assert outcome.state["calls"].tolist() == [1, 0, 1] and state["calls"].tolist() == [0, 0, 0]
    assert outcome.state["sum"].tolist() == [[5, 7, 9, 11], [10] * 4, [25] * 4]
    assert outcome.state["calls"].dtype == np.int32
    assert outcome.metrics == {"aggregator_clients": 1.5, "aggregator_calls": 1.0}
    second = aggregate(AGGREGATOR, [make_update([1, 0, 0, 0], 1)], outcome.state)
    assert second.state["calls"].tolist() == [1, 1, 1]
    assert second.metrics == {"aggregator_clients": 1.0, "aggregator_calls": 1.0}


def test_a_round_without_an_update_has_the_same_columns_and_no_number():
    """Nothing of it is kept, and nothing is warned of."""
    state = AGGREGATOR.initialize(2)
    nobody = [make_update([1, 1, 1, 1], 1, is_finite=False)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for updates in ([], nobody):
            outcome = aggregate(AGGREGATOR, updates, state, 2)
            assert list(outcome.metrics) == ["aggregator_clients", "aggregator_calls"]
            assert np.isnan(list(outcome.metrics.values())).all()
            assert not outcome.has_update.any() and not any(np.any(array) for array in outcome.update)
            assert outcome.state["calls"].tolist() == [0, 0]
            assert outcome.state["sum"].tobytes() == state["sum"].tobytes()


def test_groups_go_on_from_others():
    state = AGGREGATOR.initialize(2)
    copied = AGGREGATOR.copy_groups(state, np.array([1, 1, 0]))
    assert copied["sum"][:, 0].tolist() == [10, 10, 0] and copied["calls"].shape == (3,)
    outcome = aggregate(AGGREGATOR, [make_update([1, 1, 1, 1], 2)], copied)
    assert outcome.state["sum"][:, 0].tolist() == [10, 10, 1]
    assert copied["sum"][:, 0].tolist() == [10, 10, 0]


def test_a_state_that_is_one_array():
    """Centred clipping's: a vector a group. Of (3, 4, 0, 0) is left (0.6, 0.8, 0, 0) at a radius of 1."""
    aggregator = GroupwiseAggregator(CentredClippingAggregator(1.0, 1), SHAPES, "")
    outcome = aggregate(aggregator, [make_update([3, 4, 0, 0], 1)], aggregator.initialize(2), 2)
    np.testing.assert_allclose(outcome.state, [[0] * 4, [0.6, 0.8, 0, 0]], rtol=1e-6)
    np.testing.assert_allclose(outcome.update[0], [[[0, 0]], [[0.6, 0.8]]], rtol=1e-6)


def test_without_a_state():
    aggregator = GroupwiseAggregator(Stateless(), SHAPES, "a note")
    assert aggregator.initialize(2) == () and aggregator.copy_groups((), np.array([0, 0, 1])) == ()
    outcome = aggregate(aggregator, [make_update([1, 2, 3, 4]), make_update([5, 6, 7, 8])], ())
    assert outcome.state == () and outcome.metrics == {} and outcome.update[1].tolist() == [7, 0, 0]
    assert aggregate(aggregator, [], ()).metrics == {}
