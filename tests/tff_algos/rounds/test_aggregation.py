"""Weighted means by group, and the drift of Theorem 1, by hand."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tff_algos.client.local_training import LocalResult, train_locally
from tff_algos.rounds.aggregation import (
    ClientUpdate,
    GroupTotals,
    add_to_group,
    build_zero_totals,
    compute_drift,
    compute_group_means,
    finish_totals,
    summarize_totals,
)
from tff_algos.settings.local_training import LocalTrainingConfig


def make_result(update, is_finite=True):
    """What a client with this update sends; zeros if it is not finite, as `train_locally` gives them."""
    delta = tf.constant(update, tf.float32) if is_finite else tf.zeros_like(update, tf.float32)
    return LocalResult(
        weights_delta=(delta,),
        squared_norm=tf.reduce_sum(tf.square(delta)),
        loss_sum=tf.constant(1.0),
        num_trained=tf.constant(2.0),
        is_finite=tf.constant(is_finite),
    )


def total_of(updates, groups, weights, num_groups, is_finite=None):
    """The totals of clients with these updates, added one after another."""
    is_finite = [True] * len(updates) if is_finite is None else is_finite
    results = [make_result(update, finite) for update, finite in zip(updates, is_finite, strict=True)]
    return add_all(results, groups, weights, num_groups)


def add_all(results, groups, weights, num_groups):
    shapes = [tuple(delta.shape) for delta in results[0].weights_delta]
    totals = build_zero_totals(shapes, num_groups)
    for result, group, weight in zip(results, groups, weights, strict=True):
        totals = add_to_group(totals, ClientUpdate(result, tf.constant(group), tf.constant(float(weight))))
    return finish_totals(totals, shapes)


def test_means_are_weighted_and_stay_in_their_group():
    """Group 0: (1 * 1 + 3 * 5) / 4 = 4; group 1: 7; group 2 has nobody: 0."""
    totals = total_of([[1.0], [5.0], [7.0]], [0, 0, 1], [1, 3, 2], 3)
    (means,) = compute_group_means(totals)
    np.testing.assert_allclose(means, [[4.0], [7.0], [0.0]])
    np.testing.assert_allclose(totals.weight, [4, 2, 0])


def test_rows_become_the_stacked_weights_again():
    """Two groups; a matrix, a scalar and an empty vector."""
    delta = (tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant(5.0), tf.zeros(0))
    result = make_result([0.0])._replace(weights_delta=delta)
    totals = add_all([result, result], [1, 1], [2.0, 1.0], 2)
    assert [array.shape for array in totals.deltas] == [(2, 2, 2), (2,), (2, 0)]
    np.testing.assert_array_equal(totals.deltas[0], [np.zeros((2, 2)), [[3, 6], [9, 12]]])
    np.testing.assert_array_equal(totals.deltas[1], [0, 15])


def test_a_rejected_client_adds_no_weight_and_is_counted():
    totals = total_of([[2.0], [0.0]], [0, 0], [1, 5], 1, is_finite=[True, False])
    (means,) = compute_group_means(totals)
    np.testing.assert_allclose(means, [[2.0]])
    assert int(totals.num_rejected) == 1


def test_loss_and_examples_are_summed_over_all_groups():
    """Each client adds a loss of 1 over 2 examples."""
    totals = total_of([[1.0], [5.0], [7.0]], [0, 0, 1], [1, 3, 2], 2)
    assert (float(totals.loss_sum), float(totals.num_trained), int(totals.num_rejected)) == (3, 6, 0)


def test_a_huge_update_spoils_nothing(linear_spec):
    """Of length about 1e25: finite, but its square is not, so it is left out; groups 0 and 1 are as without it."""
    start = tuple(tf.convert_to_tensor(variable) for variable in linear_spec.build().weights)
    config = LocalTrainingConfig(epochs=1, optimizer="sgd")
    x, y = tf.constant([[1.0, -1.0, 2.0, 0.5]]), tf.constant([1])
    ordinary, huge = (
        train_locally(linear_spec, config, start, x, y, tf.constant([1, 2]), tf.constant(rate)) for rate in (0.1, 1e25)
    )
    assert bool(ordinary.is_finite) and not bool(huge.is_finite)
    totals = add_all([ordinary, huge, ordinary, huge], [0, 0, 1, 2], [1, 2, 3, 4], 3)
    without = add_all([ordinary, ordinary], [0, 1], [1, 3], 3)
    for mean, expected in zip(compute_group_means(totals), compute_group_means(without), strict=True):
        np.testing.assert_array_equal(mean, expected)
        assert np.any(mean[0] != 0)
    np.testing.assert_array_equal(compute_drift(totals), compute_drift(without))
    assert int(totals.num_rejected) == 2


def test_a_large_update_stays_in_its_group():
    """Of length 1e18, which counts; in float32 a row of another group would lose its small values to it."""
    totals = total_of([[1e18, -1e18], [1.0, 3.0], [2.0, 5.0]], [1, 0, 0], [1, 1, 1], 3)
    (means,) = compute_group_means(totals)
    np.testing.assert_allclose(means, [[1.5, 4.0], [1e18, -1e18], [0.0, 0.0]])
    assert np.isfinite(compute_drift(totals)).all()


def test_drift_by_hand():
    """Updates 0 and 2 in group 0 (mean 1), 5 in group 1 (mean 5), equal weights; mean of all 7/3.

    Within: (1 + 1 + 0) / 3 = 2/3. Total: ((7/3)^2 + (1/3)^2 + (8/3)^2) / 3 = (49 + 1 + 64) / 27 = 114 / 27.
    """
    within, total = compute_drift(total_of([[0.0], [2.0], [5.0]], [0, 0, 1], [1, 1, 1], 2))
    np.testing.assert_allclose([within, total], [2 / 3, 114 / 27], rtol=1e-6)


def test_random_groups_lower_the_drift_by_their_number_alone():
    """Of 4 updates, one alone and three together, in all four ways: on average (4 - 2) / (4 - 1) is left."""
    updates, ratios = [[0.0], [2.0], [5.0], [-1.0]], []
    for alone in range(4):
        within, total = compute_drift(total_of(updates, [int(i == alone) for i in range(4)], [1] * 4, 2))
        ratios.append(float(within / total))
    assert np.mean(ratios) == pytest.approx(2 / 3, rel=1e-6) and max(ratios) < 1


def test_without_anybody_everything_is_zero():
    zeros = tf.zeros(2)
    totals = GroupTotals((tf.zeros((2, 3)),), zeros, zeros, tf.constant(0.0), tf.constant(0.0), tf.constant(1))
    summary = summarize_totals(totals)
    assert float(summary.within_group_drift) == float(summary.total_drift) == 0.0
    np.testing.assert_array_equal(compute_group_means(totals)[0], np.zeros((2, 3)))


@settings(max_examples=30, deadline=None)
@given(
    arrays(np.float32, (6, 2), elements=st.floats(-5, 5, width=32)), st.lists(st.integers(0, 2), min_size=6, max_size=6)
)
def test_drift_equals_its_definition_and_within_is_at_most_total(updates, groups):
    groups, weights = np.array(groups), np.arange(1.0, 7.0)
    within, total = compute_drift(total_of(updates, groups.tolist(), weights, 3))
    mean = np.average(updates, axis=0, weights=weights)
    expected_total = np.average(np.sum((updates - mean) ** 2, axis=1), weights=weights)
    own = np.stack([np.average(updates[groups == g], axis=0, weights=weights[groups == g]) for g in groups])
    expected_within = np.average(np.sum((updates - own) ** 2, axis=1), weights=weights)
    np.testing.assert_allclose([within, total], [expected_within, expected_total], atol=1e-4)
    assert within <= total + 1e-4
