"""CFL's cut by hand and against all cuts that there are."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tff_algos.cfl.bipartition import bipartition, compute_norms, normalize


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
