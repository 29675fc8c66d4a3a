"""Means, intervals and curves of groups, by hand-worked numbers."""

import pathlib

import numpy as np
import pytest

from launch.comparison.compared_run import ComparedRun
from launch.comparison.estimates import (
    compute_curve,
    estimate_difference,
    estimate_mean,
    read_result,
    read_seed_results,
)


def make_run(seed, **columns):
    arrays = {name: np.array(values, np.float64) for name, values in columns.items()}
    return ComparedRun("run", pathlib.Path("run"), {"seed": seed}, "FedAvg", arrays, {})


def test_the_interval_of_1_2_3():
    """Mean 2, deviation 1, half width 4.3027 / sqrt(3), from a printed table of Student's t."""
    found = estimate_mean([1, 2, 3])
    assert found[:3] == pytest.approx((2, 2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5), abs=1e-4)
    assert found.count == 3


def test_an_interval_ends_where_values_end():
    found = estimate_mean([0.9, 0.99], (0.0, 1.0))
    assert found.high == 1 and 0 <= found.low < 0.9
    assert estimate_mean([0.1, 0.9], (0.0, 1.0))[1:3] == (0, 1)


@pytest.mark.parametrize("values", [[4], [0.5, 0.5 + 1e-12]])
def test_one_value_or_equal_ones_have_no_interval(values):
    assert estimate_mean(values)[1:3] == (None, None)


def test_a_result_is_the_last_the_best_or_that_up_to_a_round():
    run = make_run(0, round=[1, 2, 3, 4], loss=[3, 1, 2, np.nan])
    assert [read_result(run, "loss", at, True) for at in ("last", "best", 1)] == [2, 1, 3]
    assert read_result(run, "loss", "best", False) == 3
    assert read_result(run, "drift", "last", True) is None


def test_two_runs_of_a_seed_count_as_one_their_mean():
    runs = [make_run(seed, round=[1], a=[value]) for seed, value in ((1, 0.5), (0, 0.2), (0, 0.4))]
    assert read_seed_results(runs, "a", "last", False) == {0: pytest.approx(0.3), 1: 0.5}


def test_differences_are_by_the_seeds_that_both_have():
    found = estimate_difference({0: 1.0, 1: 2.0, 2: 3.5}, {1: 1.0, 2: 2.0, 3: 9.0})
    assert (found.mean, found.count) == (1.25, 2)
    assert estimate_difference({0: 1.0}, {1: 1.0}) is None


def test_a_curve_is_the_mean_at_the_rounds_that_all_runs_have():
    runs = [
        make_run(0, round=[1, 2, 3], a=[1, 2, 3], seconds=[10, 20, 30]),
        make_run(1, round=[1, 2], a=[3, 6], seconds=[20, 40]),
    ]
    curve = compute_curve(runs, "a", "seconds")
    assert [(point.round, point.x, point.mean, point.lowest, point.highest) for point in curve] == [
        (1, 15, 2, 1, 3),
        (2, 30, 4, 2, 6),
    ]
    assert curve[0].find_ends() == (1, 3), "the interval of two seeds is wider than the seeds"
