"""Means by group, their drift, and the scalars and labels of a round, by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tff_algos.client.local_training import LocalResult, train_locally
from tff_algos.protocol import COMMON_METRICS, ClientWork
from tff_algos.rounds.aggregation import (
    ClientUpdate,
    GroupTotals,
    RoundTotals,
    add_to_group,
    build_common_metrics,
    build_zero_totals,
    compute_drift,
    compute_group_means,
    finish_totals,
    sum_bytes,
    sum_on_host,
    summarize_totals,
)
from tff_algos.rounds.clustered import count_clusters, number_by_first_appearance
from tff_algos.rounds.versioned_round import average_updates, compute_update_norms
from tff_algos.settings.local_training import LocalTrainingConfig


def make_result(update, is_finite=True, loss_sum=1.0, num_trained=2.0):
    """What a client with this update sends; zeros if it is not finite, as `train_locally` gives them."""
    values = [tf.constant(value, tf.float32) for value in (update, loss_sum, num_trained)]
    delta, loss_sum, num_trained = values if is_finite else map(tf.zeros_like, values)
    return LocalResult((delta,), tf.reduce_sum(tf.square(delta)), loss_sum, num_trained, tf.constant(is_finite))


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


def test_means_are_weighted_and_stay_in_their_group_and_scalars_are_summed():
    """Group 0: (1 * 1 + 3 * 5) / 4 = 4; group 1: 7; group 2 has nobody: 0.

    Each client adds a loss of 1 over 2 examples; one that is rejected only that it was.
    """
    totals = total_of([[1.0], [5.0], [7.0], [0.0]], [0, 0, 1, 0], [1, 3, 2, 5], 3, [True, True, True, False])
    (means,) = compute_group_means(totals)
    np.testing.assert_allclose(means, [[4.0], [7.0], [0.0]])
    np.testing.assert_allclose(totals.weight, [4, 2, 0])
    assert (float(totals.loss_sum), float(totals.num_trained), int(totals.num_rejected)) == (3, 6, 1)


def test_rows_become_the_stacked_weights_again():
    """Two groups; a matrix, a scalar and an empty vector."""
    delta = (tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant(5.0), tf.zeros(0))
    result = make_result([0.0])._replace(weights_delta=delta)
    totals = add_all([result, result], [1, 1], [2.0, 1.0], 2)
    assert [array.shape for array in totals.deltas] == [(2, 2, 2), (2,), (2, 0)]
    np.testing.assert_array_equal(totals.deltas[0], [np.zeros((2, 2)), [[3, 6], [9, 12]]])
    np.testing.assert_array_equal(totals.deltas[1], [0, 15])


def get_bits(totals):
    return [np.asarray(each).tobytes() for each in tf.nest.flatten(totals)]


# Such as round otherwise when they are added in another order, together or with a product; below 1e-38, TensorFlow's
# kernels take them for 0.
ODD = [0.0, -0.0, 1.0, 1 / 3, 1e-3, 16777216.0, 3e38, -3e38, 1e-38, 1e-40, 2e-45, np.inf, -np.inf, np.nan]
NUMBERS = st.sampled_from(list(map(np.float32, ODD))) | st.floats(-2, 2, width=32)


@settings(max_examples=40, deadline=None)
@given(st.data())
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_updates_that_came_back_are_summed_as_one_after_another_to_the_bit(data):
    """Of all weights and groups, with updates that are rejected, of a model of one weight, too; in stacks of 3."""
    number = data.draw(st.integers(0, 7))
    shapes = data.draw(st.sampled_from([((),), ((2, 2), (), (0,)), ((3,), (5,))]))
    updates = [
        ClientUpdate(
            LocalResult(
                tuple(data.draw(arrays(np.float32, shape, elements=NUMBERS)) for shape in shapes),
                *map(np.float32, data.draw(st.tuples(NUMBERS, NUMBERS, NUMBERS))),
                np.bool_(data.draw(st.integers(0, 3)) > 0),
            ),
            np.int32(data.draw(st.integers(0, 2))),
            np.float32(data.draw(NUMBERS)),
        )
        for _ in range(number)
    ]
    expected = build_zero_totals(shapes, 3)
    for update in updates:
        expected = add_to_group(expected, tf.nest.map_structure(tf.convert_to_tensor, update))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tff_algos.rounds.aggregation._STACKED_WEIGHTS", 3 * sum(map(math.prod, shapes)))
        assert get_bits(sum_on_host(updates, shapes, 3)) == get_bits(finish_totals(expected, shapes))


def test_many_updates_are_summed_as_one_after_another_to_the_bit():
    """Of 17,000 weights, so in several stacks, and multiplied by several threads."""
    generator, shapes = np.random.default_rng(0), ((100, 160), (1000,))
    updates = [
        ClientUpdate(
            LocalResult(
                tuple(generator.normal(size=shape).astype(np.float32) for shape in shapes),
                *generator.random(3).astype(np.float32),
                np.bool_(True),
            ),
            np.int32(index % 5 == 0),
            np.float32(generator.integers(1, 100)),
        )
        for index in range(400)
    ]
    expected = build_zero_totals(shapes, 2)
    for update in updates:
        expected = add_to_group(expected, update)
    assert get_bits(sum_on_host(updates, shapes, 2)) == get_bits(finish_totals(expected, shapes))


def test_a_huge_update_spoils_nothing(linear_spec):
    """Of length about 1e25: finite, but its square is not, so it is left out; groups 0 and 1 are as without it."""
    # By the loop itself, which makes zeros of what is not finite.
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
    # The mean of each client's group, a row a client.
    own = np.stack([np.average(updates[groups == g], axis=0, weights=weights[groups == g]) for g in groups])
    expected_within = np.average(np.sum((updates - own) ** 2, axis=1), weights=weights)
    np.testing.assert_allclose([within, total], [expected_within, expected_total], atol=1e-4)
    assert within <= total + 1e-4


def test_the_mean_is_over_the_finite_updates():
    """(1 * [3, 4] + 3 * [7, 0]) / 4 = [6, 1]; the second diverged."""
    results = [make_result([3, 4]), make_result([1, 1], is_finite=False), make_result([7, 0], True, 5.0, 4.0)]
    averaged = average_updates(results, np.array([1.0, 9.0, 3.0]))
    assert [mean.numpy().tolist() for mean in averaged.mean_update] == [[6.0, 1.0]]
    assert averaged.is_finite.numpy().tolist() == [1.0, 0.0, 1.0]
    assert [float(value) for value in averaged.totals[:3]] == [6.0, 6.0, 1]
    np.testing.assert_array_equal(compute_update_norms(results), [5, np.nan, 7])
    nobody = average_updates(results[1:2], np.array([1.0]))
    assert nobody.mean_update[0].numpy().tolist() == [0.0, 0.0] and nobody.is_finite.numpy().tolist() == [0.0]


def build_metrics(loss_sum, num_trained):
    totals = RoundTotals(np.float32(loss_sum), np.float32(num_trained), np.int32(2), np.float32(1), np.float32(3))
    return build_common_metrics(totals, np.float64(1.5), num_clients=4, bytes_down=np.int64(60), bytes_up=30)


def test_the_loss_is_the_mean_over_trained_examples():
    """A loss of 6 over 8 examples; without an example it is NaN."""
    metrics = build_metrics(6, 8)
    assert tuple(metrics) == COMMON_METRICS
    assert list(metrics.values()) == [1.5, 4, 2, 60, 30, 0.75]
    assert {type(value) for value in metrics.values()} == {int, float}, "NumPy's numbers would not go into JSON"
    assert math.isnan(build_metrics(0, 0)["train_loss"])


def test_the_bytes_of_all_parts_are_summed_each_over_its_own_clients():
    """Two clients get 10 each and send 1 and 2; three get 100, 200 and 300; one sends 7."""
    works = [
        ClientWork(np.array([0, 3]), bytes_down=10, bytes_up=np.array([1, 2])),
        ClientWork(np.arange(3), bytes_down=np.array([100, 200, 300])),
        ClientWork(np.array([2]), bytes_up=7),
        ClientWork(np.zeros(0, int), bytes_down=50, bytes_up=np.zeros(0)),
    ]
    assert sum_bytes(works) == (620, 10)


def test_clusters_are_numbered_by_hand():
    numbers = number_by_first_appearance(np.array([7, 2, 7, 9, 2, -1]))
    np.testing.assert_array_equal(numbers, [0, 1, 0, 2, 1, 3])
    assert numbers.dtype == np.int32 and count_clusters(numbers) == 4


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
def test_who_is_with_whom_stays_and_numbers_ascend_without_gaps(labels):
    numbers = number_by_first_appearance(np.array(labels)).tolist()
    assert len(set(zip(labels, numbers, strict=True))) == len(set(labels)) == len(set(numbers))
    assert list(dict.fromkeys(numbers)) == list(range(len(set(labels))))
    assert count_clusters(np.array(numbers)) == len(set(labels))
