"""An aim is decided by the mean or by every seed, and its bounds may be met."""

import pytest

from launch.reports.aims import NOT_REACHED, NOT_RUN, REACHED, Aim


def aim_at(**bounds):
    return Aim("enough", lambda runs: runs["a"] - runs["b"], **bounds)


def test_seeds_without_a_run_are_left_out():
    assert aim_at().compute_numbers({0: {"a": 3, "b": 1}, 1: {"a": 3}}) == {0: 2}


@pytest.mark.parametrize(
    ("bounds", "numbers", "verdict"),
    [
        ({"least": 1}, [1, 2], REACHED),
        ({"least": 1}, [0.9, 2], NOT_REACHED),
        ({"least": 1, "of_mean": True}, [0.9, 2], REACHED),
        ({"most": 1, "of_mean": True}, [0.9, 2], NOT_REACHED),
        ({"least": -1, "most": 1}, [-1, 1], REACHED),
        ({"least": -1, "most": 1}, [-1.1, 1], NOT_REACHED),
        ({"least": 1}, [], NOT_RUN),
    ],
)
def test_verdicts(bounds, numbers, verdict):
    assert aim_at(**bounds).decide(numbers) == verdict


def test_the_worst_number_is_the_one_nearest_to_the_bound():
    assert aim_at(least=0).find_worst([1, 3, 2]) == 1
    assert aim_at(most=5).find_worst([1, 3, 2]) == 3
