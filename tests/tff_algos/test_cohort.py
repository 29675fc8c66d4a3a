"""Padded cohorts and what clients are told."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tff_algos.cohort import build_client_inputs, compute_padded_size, pad_cohort


@given(st.integers(1, 10_000))
def test_padding_is_small_and_sizes_are_few(size):
    padded = compute_padded_size(size)
    assert size <= padded <= 1.25 * size
    assert compute_padded_size(padded) == padded


def test_sizes_are_those_of_the_docstring():
    sizes = sorted({compute_padded_size(size) for size in range(1, 41)})
    assert sizes == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40]


def test_an_empty_cohort_still_has_one_place():
    (padding,) = pad_cohort([])
    assert padding.path == "" and padding.weight == 0


def test_inputs_carry_weight_group_and_rate(make_federation):
    data = make_federation([5, 7, 9])
    seeds = [np.array([1, 2], np.int32), np.array([3, 4], np.int32)]
    inputs = build_client_inputs(data, np.array([0, 2]), np.array([1, 0]), "examples", 0.5, seeds)
    assert [(i.path, int(i.group), float(i.weight)) for i in inputs] == [
        (data.clients[0].path, 1, 5.0),
        (data.clients[2].path, 0, 9.0),
    ]
    assert all(i.learning_rate == 0.5 for i in inputs)
    equal = build_client_inputs(data, np.array([0, 2]), np.array([1, 0]), "equal", 0.5, seeds)
    assert [float(i.weight) for i in equal] == [1.0, 1.0]
