"""CFL's cut of a cluster and its parameter tree by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tff_algos.cfl.parameter_tree import bipartition, compute_norms, normalize, plant


def at_angles(*degrees):
    """Updates of lengths 1, 2, 3, ... in these directions."""
    angles, lengths = np.radians(degrees), np.arange(1, len(degrees) + 1)
    return (lengths[:, np.newaxis] * np.stack([np.cos(angles), np.sin(angles)], axis=1)).astype(np.float32)


@pytest.mark.parametrize(
    ("degrees", "expected", "across"),
    [
        ((0, 180), [False, True], 180),
        ((0, 10, 120, 100), [False, False, True, True], 90),  # from 10 to 100
        ((0, 40, 80, 130), [False, False, False, True], 50),  # a chain holds together, whatever its length
        ((130, 0, 40, 80), [False, True, True, True], 50),  # the first client is never in the second part
        ((0, 0, 0), None, 0),  # all alike: any cut, and no gap
    ],
)
def test_the_cut_by_hand(degrees, expected, across):
    """The gap is sin(angle / 2): sqrt((1 - cos a) / 2)."""
    found = bipartition(at_angles(*degrees))
    assert found.cross_similarity == pytest.approx(np.cos(np.radians(across)), abs=1e-6)
    assert found.gap == pytest.approx(np.sin(np.radians(across) / 2), abs=1e-3)
    assert expected is None or found.is_second.tolist() == expected


def test_complete_linkage_makes_parts_of_like_sizes():
    found = bipartition(at_angles(0, 40, 81, 130), "complete")
    assert found.is_second.tolist() == [False, False, True, True]
    assert found.cross_similarity == pytest.approx(np.cos(np.radians(41)), abs=1e-6)


@given(st.integers(2, 6).flatmap(lambda n: arrays(np.float32, (n, 3), elements=st.integers(-3, 3).map(float))))
def test_no_other_cut_has_a_smaller_largest_cosine(updates):
    """An update of zeros has the cosine 0 with all others."""
    found, units = bipartition(updates), normalize(updates)
    cosines, places = units @ units.T, range(len(updates))
    parts = [set(part) for size in range(1, len(updates)) for part in itertools.combinations(places, size)]
    least = min(max(cosines[a, b] for a in part for b in set(places) - part) for part in parts)
    assert found.cross_similarity == pytest.approx(float(least), abs=1e-5)
    assert not found.is_second[0] and found.is_second.any()


def test_norms_are_of_all_arrays_of_an_update():
    """(3, 4) and (12): 13; zeros: 0."""
    stacked = np.array([[[3.0, 4.0]], [[0, 0]]], np.float32), np.array([12.0, 0.0], np.float32)
    np.testing.assert_allclose(compute_norms(stacked), [13, 0])
    np.testing.assert_array_equal(normalize(np.array([[3, 4], [0, 0]], np.float32)), np.float32([[0.6, 0.8], [0, 0]]))


MODEL = (np.zeros(2, np.float32), np.array(5, np.int64))  # a weight that is trained, and one that is not
EAST, NORTH, WEST, SOUTH = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], np.float32)
FIRST_TWO = np.array([False, False, True])


def test_clients_go_down_cut_by_cut_with_the_part_that_they_are_like():
    """Cluster 0 loses the western clients, as cluster 1, then the northern ones, as 2; 1 loses southern ones, as 3."""
    tree = plant(MODEL)
    assert tree.descend(3, None).tolist() == [0, 0, 0]
    tree = tree.grow(0, 4, MODEL, np.stack([2 * EAST, EAST, 9 * WEST]), FIRST_TWO)
    tree = tree.grow(0, 6, MODEL, np.stack([EAST, SOUTH, NORTH]), FIRST_TWO)
    tree = tree.grow(1, 6, (MODEL[0] + 1, MODEL[1]), np.stack([WEST, WEST, SOUTH]), FIRST_TWO)
    assert (tree.clusters.tolist(), tree.rounds.tolist()) == ([0, 0, 1], [4, 6, 6])
    assert [array.tolist() for array in tree.models] == [[[0, 0], [0, 0], [1, 1]], [5, 5, 5]]
    np.testing.assert_allclose(tree.directions[1], [np.sqrt([0.5, 0.5]) * [1, -1], [0, 1]], atol=1e-6)

    updates = np.stack([3 * EAST, WEST, SOUTH + 0.1 * WEST, NORTH, 0 * EAST])
    asked = []

    def train(cut, places):
        asked.append((cut, places.tolist()))
        return updates[places]

    # North is like neither east nor west, and zeros are like nothing: both stay in the first part.
    assert tree.descend(5, train).tolist() == [0, 1, 3, 2, 0]
    assert asked == [(0, [0, 1, 2, 3, 4]), (1, [0, 3, 4]), (2, [1, 2])]
