"""Wins and ties, against intervals worked by hand."""

import pytest

from reproductions.engine.equivalence import compare_by_seed


def differ(*values):
    return compare_by_seed(dict(enumerate(values)), dict.fromkeys(range(len(values)), 0.0))


def test_the_interval_by_hand():
    """1, 2, 3 points: mean 2, standard error 1/sqrt(3) = 0.577, t(2) at 95 % 4.303: 2 +- 2.484."""
    difference = differ(0.01, 0.02, 0.03)
    assert difference.format() == "+2.00 [-0.48, +4.48]"
    assert (difference.count, difference.verdict) == (3, "undecided")
    assert difference.describe() == "+2.00 [-0.48, +4.48] undecided"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        # Five seeds, mean 0.5 points, deviation 0.1: standard error 0.0447; 95 %: +- 0.124, 90 %: +- 0.095.
        ((0.004, 0.005, 0.006, 0.005 - 0.001, 0.005 + 0.001), "win, tie"),
        ((-0.004, -0.005, -0.006, -0.004, -0.006), "loss, tie"),
        # The same around 1 point: there, and not within a point.
        ((0.009, 0.010, 0.011, 0.009, 0.011), "win"),
        ((-0.009, -0.010, -0.011, -0.009, -0.011), "loss"),
        # Around 0, deviation 0.5 points: 90 % +- 0.477 points.
        ((-0.005, 0.0, 0.005, -0.005, 0.005), "tie"),
        # The same with ten times the deviation decides nothing.
        ((-0.05, 0.0, 0.05, -0.05, 0.05), "undecided"),
    ],
)
def test_wins_and_ties(values, verdict):
    assert differ(*values).verdict == verdict


def test_the_tie_is_decided_at_90_percent():
    """Mean 0, four seeds of +-a: deviation 2a/sqrt(3), error a/sqrt(3); t(3) is 2.353 at 90 %, 3.182 at 95 %.

    So the 90 % interval is +-1.359 a, the 95 % one +-1.837 a: with a = 0.6 points, 0.815 and 1.102.
    """
    assert differ(0.006, -0.006, 0.006, -0.006).verdict == "tie"
    assert differ(0.0074, -0.0074, 0.0074, -0.0074).verdict == "undecided"  # 1.0055 points


def test_twenty_seeds_with_a_deviation_of_1_45_points():
    """+-0.97 deviations of the sample: the error is 1.45/sqrt(20) = 0.324, t(19) = 1.729 at 90 %: +- 0.56 points."""
    a = 0.0145 * (19 / 20) ** 0.5
    assert differ(*[a, -a] * 10).verdict == "tie"
    assert differ(*[a + 0.005, -a + 0.005] * 10).verdict == "undecided"  # up to 1.06 points


@pytest.mark.parametrize(
    ("values", "verdict"),
    [((0.02,) * 3, "win"), ((-0.005,) * 3, "loss, tie"), ((0.0,) * 3, "tie"), ((0.02,) * 2, "undecided")],
)
def test_the_same_in_every_seed_decides_by_itself(values, verdict):
    difference = differ(*values)
    assert difference.verdict == verdict and difference.interval is None


def test_two_seeds_decide_nothing():
    assert differ(0.2, 0.21).verdict == "undecided"


def test_only_seeds_that_both_have_are_paired():
    difference = compare_by_seed({0: 0.5, 1: 0.6, 7: 0.1}, {0: 0.4, 1: 0.4, 8: 0.9})
    assert difference.count == 2 and difference.mean == pytest.approx(0.15)
    nothing = compare_by_seed({0: 0.5}, {1: 0.5})
    assert (nothing.format(), nothing.describe(), nothing.verdict) == ("not run", "not run", "undecided")
