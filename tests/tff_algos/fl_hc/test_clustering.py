"""Agglomerative clustering of updates, average linkage."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tff_algos.fl_hc.process import BLOCK_PARAMETERS, cluster_updates, pairwise_distances


def place_on_line(*positions):
    return np.array(positions, np.float32)[:, np.newaxis]


LINE = (10, 0, 3, 1)


@pytest.mark.parametrize(
    ("positions", "threshold", "number", "multiple", "expected"),
    [
        # 0 and 1 join at 1; 3 joins at (3 + 2)/2 = 2.5; 10 at (10 + 9 + 7)/3 = 8.67. Single linkage would join 3 at 2,
        # complete linkage at 3.
        (LINE, 0.9, 1, 0.0, [0, 1, 2, 3]),
        (LINE, 2.4, 1, 0.0, [0, 1, 2, 1]),
        (LINE, 2.5, 1, 0.0, [0, 1, 1, 1]),
        (LINE, 8.6, 1, 0.0, [0, 1, 1, 1]),
        (LINE, 8.7, 1, 0.0, [0, 0, 0, 0]),
        # Without a threshold the tree is cut by the number.
        (LINE, 0.0, 1, 0.0, [0, 0, 0, 0]),
        (LINE, 0.0, 2, 0.0, [0, 1, 1, 1]),
        (LINE, 0.0, 3, 0.0, [0, 1, 2, 1]),
        (LINE, 0.0, 9, 0.0, [0, 1, 2, 3]),
        # By a multiple of the median distance: the six are 1, 2, 3, 7, 9, 10, their median 5: cuts at 0.5 to 9.
        (LINE, 99.0, 1, 0.1, [0, 1, 2, 3]),
        (LINE, 99.0, 1, 0.2, [0, 1, 2, 1]),
        (LINE, 99.0, 1, 0.5, [0, 1, 1, 1]),
        (LINE, 99.0, 1, 1.7, [0, 1, 1, 1]),
        (LINE, 99.0, 1, 1.8, [0, 0, 0, 0]),
        # Four of five are alike: six of the ten distances are 0, and so is their median.
        ((5, 7, 5, 5, 5), 0.0, 1, 3.0, [0, 1, 0, 0, 0]),
        ((7,), 0.5, 4, 0.0, [0]),
    ],
)
def test_average_linkage_by_hand(positions, threshold, number, multiple, expected):
    assignments = cluster_updates(place_on_line(*positions), threshold, number, multiple)
    assert assignments.tolist() == expected and assignments.dtype == np.int32


@given(
    st.integers(2, 7).flatmap(lambda n: arrays(np.float32, (n, 3), elements=st.integers(-9, 9).map(float))),
    st.sampled_from([0.25, 1.0, 1.5]),
    st.integers(-8, 8),
)
def test_a_multiple_means_the_same_at_any_scale(updates, multiple, power):
    """Powers of two, which round nothing: updates of a larger model or rate are cut into the same clusters."""
    scaled = cluster_updates(updates * np.float32(2.0**power), 0.0, 1, multiple)
    np.testing.assert_array_equal(scaled, cluster_updates(updates, 0.0, 1, multiple))


def test_identical_clients_join_at_any_threshold_and_are_split_by_number():
    updates = np.full((4, 3), 0.1, np.float32)
    np.testing.assert_array_equal(cluster_updates(updates, 1e-12, 4), np.zeros(4))
    assert len(set(cluster_updates(updates, 0.0, 3).tolist())) == 3


@settings(deadline=None)
@given(
    st.integers(1, 8).flatmap(lambda n: arrays(np.float32, (n, 2), elements=st.integers(-3, 3).map(float))),
    st.sampled_from([0.0, 1.0, 2.5]),
    st.integers(1, 5),
)
def test_clusters_are_numbered_by_first_appearance(updates, distance_threshold, num_clusters):
    assignments = cluster_updates(updates, distance_threshold, num_clusters).tolist()
    assert list(dict.fromkeys(assignments)) == list(range(max(assignments) + 1))
    if distance_threshold == 0:
        assert max(assignments) + 1 == min(num_clusters, len(updates))


def test_distances_by_hand():
    """(0, 0), (3, 4), (0, 4): 5, 4, 3."""
    np.testing.assert_array_equal(pairwise_distances(np.array([[0, 0], [3, 4], [0, 4]], np.float32)), [5, 4, 3])


def test_distances_over_several_blocks_are_exact_and_cost_no_copy():
    """A large common part, which a float32 Gram matrix would lose the differences in; the last block is not full."""
    generator = np.random.default_rng(0)
    num_parameters = 20 * BLOCK_PARAMETERS + 17
    shared = 100 * generator.standard_normal(num_parameters, np.float32)
    updates = shared + 0.01 * generator.standard_normal((5, num_parameters), np.float32)
    differences = updates[:, np.newaxis].astype(np.float64) - updates
    expected = np.linalg.norm(differences, axis=2)[np.triu_indices(5, 1)]
    tracemalloc.start()
    distances = pairwise_distances(updates)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(distances, expected, rtol=1e-12)
    assert peak_bytes < updates.nbytes / 3
