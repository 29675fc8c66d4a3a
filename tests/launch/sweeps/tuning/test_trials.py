"""Which trials are the best, and what the table says of them."""

import pathlib

import pytest

from launch.sweeps.tuning.request import Request
from launch.sweeps.tuning.search_space import parse_search
from launch.sweeps.tuning.trials import Outcome, State, find_best, rank, read_curve, tabulate

OUTCOMES = [
    Outcome(1, {"a": "1"}, State.COMPLETE, {"100": 0.5, "101": 0.7}),
    Outcome(2, {"a": "2"}, State.PRUNED, {}, {"100": {1: 0.25}}, (1, 0.25)),
    Outcome(3, {"a": "3"}, State.COMPLETE, {"100": 0.875, "101": 0.625}),
    Outcome(4, {"a": "3"}, State.COMPLETE, {"100": 0.875, "101": 0.625}),
    Outcome(5, {"a": "4"}, State.OPEN, {"100": 0.9}),
    Outcome(6, {"a": "5"}, State.REFUSED),
    Outcome(7, {"a": "6"}, State.COMPLETE, {"100": 0.75, "101": 0.75}),
]


@pytest.fixture
def request_of():
    """(sampler, further seeds) -> a request."""

    def build(sampler, confirm_seeds=()):
        return Request(pathlib.Path("a.flags"), parse_search("a=1|2"), sampler, 7, ("100", "101"), None,
                       "validation_accuracy", pathlib.Path("runs"), pathlib.Path("t.csv"),
                       confirm_seeds=confirm_seeds)  # fmt: skip

    return build


def test_complete_trials_are_ranked_by_their_means_equal_ones_by_number_equal_settings_once(request_of):
    assert [each.number for each in rank(OUTCOMES)] == [3, 7, 1]
    best, mean = find_best(request_of("grid"), OUTCOMES, {})
    assert (best.number, mean) == (3, 0.75)


def test_further_seeds_decide_among_the_trials_that_have_them_all(request_of):
    request = request_of("grid", ("200", "201"))
    confirmed = {3: {"200": 0.5, "201": 0.5}, 7: {"200": 0.5, "201": 0.625}, 1: {"200": 1.0}}
    best, mean = find_best(request, OUTCOMES, confirmed)
    assert (best.number, mean) == (7, 0.5625)
    assert find_best(request, OUTCOMES, {}) is None


def test_a_search_with_optuna_has_columns_for_what_became_of_a_trial(request_of):
    columns, rows = tabulate(request_of("tpe", ("200",)), OUTCOMES[:3], {3: {"200": 0.5}})
    scores = ["validation_accuracy_seed_100", "validation_accuracy_seed_101", "mean"]
    told = ["state", "pruned_after_round", "value_then"]
    assert columns == ["trial", "a", *scores, *told, "validation_accuracy_seed_200", "confirmed_mean"]
    assert rows == [
        ["1", "1", "0.5", "0.7", "0.6", "complete", "", "", "", ""],
        ["2", "2", "", "", "", "pruned", "1", "0.25", "", ""],
        ["3", "3", "0.875", "0.625", "0.75", "complete", "", "", "0.5", "0.5"],
    ]
    columns, _ = tabulate(request_of("grid"), OUTCOMES[:1], {})
    assert columns == ["trial", "a", *scores]


def test_a_curve_has_the_rounds_that_were_evaluated(tmp_path):
    assert read_curve(tmp_path, "validation_accuracy") == {}
    (tmp_path / "metrics.csv").write_text("round,validation_accuracy\n1,\n2,0.5\n3,\n4,0.25\n")
    assert read_curve(tmp_path, "validation_accuracy") == {2: 0.5, 4: 0.25}
    assert read_curve(tmp_path, "client_validation_accuracy") == {}


def test_of_an_error_the_lowest_mean_is_the_best(request_of):
    request = request_of("grid", ("200",))._replace(objective="validation_rmse")
    assert [each.number for each in rank(OUTCOMES, request.sign)] == [1, 3, 7]
    assert find_best(request._replace(confirm_seeds=()), OUTCOMES, {})[0].number == 1
    assert find_best(request, OUTCOMES, {3: {"200": 0.5}, 1: {"200": 0.75}})[0].number == 3
