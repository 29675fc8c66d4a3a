"""Intervals, tests and paired differences against numbers worked out by hand from the tables of Student's t."""

import math

import pytest

from launch.pages.comparison.seed_statistics import (
    NO_DIFFERENCE,
    compare_by_seed,
    compute_deviation,
    compute_mean,
    compute_p_value,
    compute_sign_p_value,
    correct_by_holm,
    estimate_mean,
    is_constant,
    predict_one,
    subtract_by_seed,
)


@pytest.mark.parametrize(
    ("values", "mean", "deviation"),
    [
        ([0.7, 0.8, 0.9], 0.8, 0.1),  # (0.7 + 0.8 + 0.9) / 3; squared distances 0.01 + 0 + 0.01 over 2, its root
        ([0.7], 0.7, None),
        ([5, 15, math.inf], math.inf, None),  # what one seed never reaches
    ],
)
def test_mean_and_sample_deviation(values, mean, deviation):
    assert (compute_mean(values), compute_deviation(values)) == pytest.approx((mean, deviation))


@pytest.mark.parametrize("values", [[4], [0.5, 0.5 + 1e-12], [5, 15, math.inf]])
def test_one_value_or_equal_or_infinite_ones_have_no_interval(values):
    found = estimate_mean(values)
    assert (found.low, found.high, found.ends, found.count) == (None, None, (found.mean,) * 2, len(values))


def test_the_interval_of_a_mean():
    """1, 2, 3: mean 2, deviation 1; t of 2 degrees of freedom at 97.5 % is 4.3027, over sqrt(3) it is 2.4841."""
    found = estimate_mean([1, 2, 3])
    assert found == pytest.approx((2, 2 - 2.4841, 2 + 2.4841, 3), abs=1e-4)
    assert found.ends == found[1:3] and found.half_width == pytest.approx(2.4841, abs=1e-4)


def test_an_interval_ends_where_values_end():
    found = estimate_mean([0.9, 0.99], bounds=(0.0, 1.0))
    assert found.high == 1 and 0 <= found.low < 0.9
    assert estimate_mean([0.1, 0.9], bounds=(0.0, 1.0)).ends == (0, 1)
    assert estimate_mean([0.1, 0.9], bounds=(0.0, None)).high > 1


def test_a_higher_level_is_wider():
    """1, 2, 3, 6: mean 3, deviation sqrt(14 / 3); t of 3 degrees of freedom at 99.5 % is 5.8409."""
    half = 5.8409 * math.sqrt(14 / 3) / 2
    assert estimate_mean([1, 2, 3, 6], 0.99).ends == pytest.approx((3 - half, 3 + half), abs=1e-3)


def test_the_interval_of_one_more_run():
    """1, 2, 3: 4.3027 sqrt(1 + 1/3) = 4.9683."""
    assert predict_one([1, 2, 3]).ends == pytest.approx((2 - 4.9683, 2 + 4.9683), abs=1e-4)


def test_the_sign_test():
    """Six of six: 2 / 2 ** 6; without pairs nothing can be said."""
    assert compute_sign_p_value(6, 6) == pytest.approx(2 / 64)
    assert compute_sign_p_value(5, 5) == pytest.approx(2 / 32)
    assert compute_sign_p_value(1, 6) == pytest.approx(2 * (1 + 6) / 64)
    assert compute_sign_p_value(0, 0) == 1


def test_the_p_value_is_0_05_where_the_interval_ends():
    assert compute_p_value([1, 2, 3], 2 - 2.48414) == pytest.approx(0.05, abs=1e-5)
    assert compute_p_value([1, 2, 3], 2) == pytest.approx(1)
    assert (compute_p_value([0.1 + 0.2, 0.3], 0.3), compute_p_value([0.25, 0.25])) == (1, 0)


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


def differ(*values):
    return compare_by_seed(dict(enumerate(values)), dict.fromkeys(range(len(values)), 0.0))


def test_the_interval_by_hand():
    """1, 2, 3 points: mean 2, standard error 1/sqrt(3) = 0.577, t(2) at 95 % 4.303: 2 +- 2.484."""
    difference = differ(0.01, 0.02, 0.03)
    assert (difference.count, difference.describe()) == (3, "+2.00 [-0.48, +4.48] undecided")


# Twenty seeds of +-0.97 deviations of 1.45 points: the error is 1.45/sqrt(20) = 0.324, t(19) at 90 % 1.729: +- 0.56.
TWENTY = [sign * 0.0145 * (19 / 20) ** 0.5 for sign in (1, -1)] * 10


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        # Five seeds, mean 0.5 points, deviation 0.1: standard error 0.0447; 95 %: +- 0.124, 90 %: +- 0.095.
        ((0.004, 0.005, 0.006, 0.005 - 0.001, 0.005 + 0.001), "win, tie"),
        ((-0.004, -0.005, -0.006, -0.004, -0.006), "loss, tie"),
        # The same around 1 point: there, and not within a point.
        ((0.009, 0.010, 0.011, 0.009, 0.011), "win"),
        ((-0.009, -0.010, -0.011, -0.009, -0.011), "loss"),
        # Around 0, deviation 0.5 points: 90 % +- 0.477 points. The same with ten times the deviation decides nothing.
        ((-0.005, 0.0, 0.005, -0.005, 0.005), "tie"),
        ((-0.05, 0.0, 0.05, -0.05, 0.05), "undecided"),
        # Four seeds of +-a: deviation 2a/sqrt(3), error a/sqrt(3); t(3) is 2.353 at 90 %, at which a tie is decided,
        # and 3.182 at 95 %. With a = 0.6 points that is 0.815 and 1.102; with 0.74 it is 1.0055 at 90 %.
        ((0.006, -0.006, 0.006, -0.006), "tie"),
        ((0.0074, -0.0074, 0.0074, -0.0074), "undecided"),
        (TWENTY, "tie"),
        ([0.005 + each for each in TWENTY], "undecided"),  # up to 1.06 points
        # The same in every seed decides by itself; two seeds decide nothing.
        ((0.02,) * 3, "win"),
        ((-0.005,) * 3, "loss, tie"),
        ((0.0,) * 3, "tie"),
        ((0.02,) * 2, "undecided"),
        ((0.2, 0.21), "undecided"),
    ],
)
def test_wins_and_ties(values, verdict):
    assert differ(*values).verdict == verdict


def test_only_seeds_that_both_have_are_paired():
    first, second = {1: 0.6, 0: 0.5, 7: 0.1}, {0: 0.4, 1: 0.4, 8: 0.9}
    assert subtract_by_seed(first, second) == pytest.approx({0: 0.1, 1: 0.2})
    difference = compare_by_seed(first, second)
    assert difference.count == 2 and difference.mean == pytest.approx(0.15)
    nothing = compare_by_seed({0: 0.5}, {1: 0.5})
    assert nothing is NO_DIFFERENCE and (nothing.format(), nothing.describe()) == ("not run", "not run")
