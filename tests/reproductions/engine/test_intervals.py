"""Intervals and tests against numbers worked out by hand from the tables of Student's t."""

import math

import pytest

from reproductions.engine.intervals import (
    compute_p_value,
    compute_sign_p_value,
    correct_by_holm,
    estimate_mean,
    is_constant,
    predict_one,
)


def test_the_interval_of_a_mean():
    """1, 2, 3: mean 2, deviation 1; t of 2 degrees of freedom at 97.5 % is 4.3027, over sqrt(3) it is 2.4841."""
    assert estimate_mean([1, 2, 3], 0.95) == pytest.approx((2 - 2.4841, 2 + 2.4841), abs=1e-4)


def test_a_higher_level_is_wider():
    """1, 2, 3, 6: mean 3, deviation sqrt(14 / 3); t of 3 degrees of freedom at 99.5 % is 5.8409."""
    half = 5.8409 * math.sqrt(14 / 3) / 2
    assert estimate_mean([1, 2, 3, 6], 0.99) == pytest.approx((3 - half, 3 + half), abs=1e-3)


def test_the_interval_of_one_more_run():
    """1, 2, 3: 4.3027 sqrt(1 + 1/3) = 4.9683."""
    assert predict_one([1, 2, 3], 0.95) == pytest.approx((2 - 4.9683, 2 + 4.9683), abs=1e-4)


def test_the_sign_test():
    """Six of six: 2 / 2 ** 6; without pairs nothing can be said."""
    assert compute_sign_p_value(6, 6) == pytest.approx(2 / 64)
    assert compute_sign_p_value(5, 5) == pytest.approx(2 / 32)
    assert compute_sign_p_value(1, 6) == pytest.approx(2 * (1 + 6) / 64)
    assert compute_sign_p_value(0, 0) == 1


def test_the_p_value_is_0_05_where_the_interval_ends():
    assert compute_p_value([1, 2, 3], 2 - 2.48414) == pytest.approx(0.05, abs=1e-5)
    assert compute_p_value([1, 2, 3], 2) == pytest.approx(1)


def test_holms_correction():
    """Of 0.01, 0.04, 0.03: 3 * 0.01; 2 * 0.03; then 0.04, which may not lie below the one before."""
    assert correct_by_holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert correct_by_holm([0.5, 0.9]) == pytest.approx([1, 1])
    assert correct_by_holm([]) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((6.0, 6.0, 6.0), True),
        ((0.1 + 0.2, 0.3, 0.3), True),
        ((6.0, 6.0, 6.1), False),
        ((0.0, 1e-12), True),
        ((math.inf, math.inf), True),
        ((math.inf, -math.inf), False),
        ((math.inf, 3.0), False),
    ],
)
def test_constant_but_for_rounding(values, expected):
    assert is_constant(values) is expected
