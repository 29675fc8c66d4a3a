"""The mean over clusters, by hand."""

import numpy as np
import pytest
import tensorflow as tf
from small_runs import assert_same

from tff_algos.fed_sikd.student_round import ClusterMeanAggregator, average_clusters
from tff_algos.rounds.aggregation import GroupTotals
from tff_algos.rounds.aggregators import SumAggregator


def average(deltas, weights, weighting):
    """The mean over clusters with these sums of weight * update and these sums of weights."""
    nothing = tf.constant(0.0)
    totals = GroupTotals(
        deltas=tuple(tf.constant(delta) for delta in deltas),
        weight=tf.constant(weights),
        squared_norm=tf.zeros(len(weights)),
        loss_sum=nothing,
        num_trained=nothing,
        num_rejected=tf.constant(0),
    )
    sizes = np.ones(len(weights), np.int64)
    by_cluster, joined = (
        aggregator.aggregate([], totals, (), sizes, (), 1)
        for aggregator in (SumAggregator(), ClusterMeanAggregator(weighting))
    )
    mean = average_clusters(by_cluster.update, by_cluster.weight, weighting)
    # Whether the aggregator or the server averages the clusters, which it does with a single row, too.
    assert_same(mean, average_clusters(joined.update, joined.weight, weighting))
    assert joined.has_update.tolist() == [sum(weights) > 0]
    return mean


@pytest.mark.parametrize(("weighting", "expected"), [("equal", 3.0), ("examples", 3.5)])
def test_a_cluster_without_members_has_no_say(weighting, expected):
    """Means 2 / 1 = 2 and 12 / 3 = 4: equally (2 + 4) / 2 = 3, by examples (1 * 2 + 3 * 4) / 4 = 3.5."""
    (update,) = average([[[2.0], [12.0], [0.0]]], [1.0, 3.0, 0.0], weighting)
    np.testing.assert_allclose(update, [expected])


def test_every_weight_keeps_its_shape():
    """Means (1, 2; 3, 4) and (5, 6; 7, 8) of the first weight, 1 and -1 of the second."""
    matrices = np.float32([[[1, 2], [3, 4]], [[10, 12], [14, 16]]])
    kernel, scalar = average([matrices, np.float32([1, -2])], [1.0, 2.0], "equal")
    np.testing.assert_allclose(kernel, [[3, 4], [5, 6]])
    np.testing.assert_allclose(scalar, 0)


@pytest.mark.parametrize("weighting", ["equal", "examples"])
def test_if_nobody_counts_nothing_moves(weighting):
    (update,) = average([[[0.0], [0.0]]], [0.0, 0.0], weighting)
    np.testing.assert_array_equal(update, [0.0])
