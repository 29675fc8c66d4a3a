"""Numbers of clusters by first appearance."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tff_algos.rounds.clustered import count_clusters, number_by_first_appearance


def test_hand_worked():
    numbers = number_by_first_appearance(np.array([7, 2, 7, 9, 2, -1]))
    np.testing.assert_array_equal(numbers, [0, 1, 0, 2, 1, 3])
    assert numbers.dtype == np.int32 and count_clusters(numbers) == 4


def test_one_client():
    assert number_by_first_appearance(np.array([5])).tolist() == [0]
    assert count_clusters(np.array([0])) == 1


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
def test_who_is_with_whom_stays_and_numbers_ascend_without_gaps(labels):
    numbers = number_by_first_appearance(np.array(labels)).tolist()
    assert len(set(zip(labels, numbers, strict=True))) == len(set(labels)) == len(set(numbers))
    assert list(dict.fromkeys(numbers)) == list(range(len(set(labels))))
    assert count_clusters(np.array(numbers)) == len(set(labels))
