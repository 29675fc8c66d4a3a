"""Results and curves of groups, by hand-worked numbers."""

import pathlib

import numpy as np
import pytest

from launch.pages.comparison.compared_run import ComparedRun
from launch.pages.comparison.results import compute_curve, read_result, read_seed_results


def make_run(seed, **columns):
    arrays = {name: np.array(values, np.float64) for name, values in columns.items()}
    return ComparedRun("run", pathlib.Path("run"), {"seed": seed}, "FedAvg", arrays, {})


def test_a_result_is_the_last_the_best_or_that_up_to_a_round():
    run = make_run(0, round=[1, 2, 3, 4], loss=[3, 1, 2, np.nan])
    assert [read_result(run, "loss", at, True) for at in ("last", "best", 1)] == [2, 1, 3]
    assert read_result(run, "loss", "best", False) == 3
    assert read_result(run, "drift", "last", True) is None


def test_two_runs_of_a_seed_count_as_one_their_mean():
    runs = [make_run(seed, round=[1], a=[value]) for seed, value in ((1, 0.5), (0, 0.2), (0, 0.4))]
    assert read_seed_results(runs, "a", "last", False) == {0: pytest.approx(0.3), 1: 0.5}


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
