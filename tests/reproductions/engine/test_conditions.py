"""Each way of comparing results, by its margin on numbers worked out by hand."""

import math

import pytest

from reproductions.engine.collection import Cell
from reproductions.engine.comparisons import SLACK, Sum, mean
from reproductions.engine.conditions import Condition, format_value

A, B, C, D = (Cell("mnist", "0.1", name, 5, "test_loss") for name in "abcd")
VALUES = {A: 0.5, B: 0.2, C: 0.4, D: 0.3}
a, b, c, d = (Sum({cell: 1.0}) for cell in VALUES)


@pytest.mark.parametrize(
    ("condition", "margin"),
    [
        (a.between(0.1, 0.75), 0.25),
        (a <= 0.5, SLACK),
        (a <= 0.4, -0.1 + SLACK),
        (a >= 0.5, SLACK),
        (a >= 0.75, -0.25 + SLACK),
        (a.near(0.45, 0.1), 0.05),
        (a.between(b + 0.1, b + 0.5), 0.2),
        (a > b, 0.3),
        (a > b + 0.4, -0.1),
        (mean([a, b]) > c, -0.05),  # 0.35 against 0.4
        (a - b > c - d, 0.2),  # 0.3 against 0.1
        (b - a > d - c, -0.2),  # a fall of 0.3 against one of 0.1
    ],
)
def test_the_margin_by_hand(condition, margin):
    assert condition.compute_margin(VALUES.get) == pytest.approx(margin, abs=1e-12)


def test_texts_name_the_results_in_the_order_in_which_they_are_written():
    assert (a > b).told("a {0}, b {1}").describe(VALUES.get) == "a 0.50, b 0.20"
    assert (a < b).told("a {0}, b {1}").describe(VALUES.get) == "a 0.50, b 0.20"
    assert (mean([a, b]) > c).told("{0}, {1} against c {2}").describe(VALUES.get) == "0.50, 0.20 against c 0.40"
    assert (a - b > c - d).told("{1} to {0}, {3} to {2}").describe(VALUES.get) == "0.20 to 0.50, 0.30 to 0.40"


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("test_accuracy", 0.7483, "74.83 %"),
        ("test_loss", 1.452, "1.45"),
        ("total_drift", 0.00123, "0.00123"),
        ("test_loss", None, "not run"),
        ("rounds", math.inf, "never"),
        ("rounds_to_accuracy", 4.0, "4"),
        ("convergence_150", 40.5, "40.5"),
    ],
)
def test_values_are_shown_in_their_unit(metric, value, text):
    assert format_value(metric, value) == text


def test_a_sum_of_each_seed_that_has_all_results():
    by_seed = {A: {0: 0.5, 1: 0.75, 2: 0.1}, B: {2: 0.1, 0: 0.25, 1: 0.25, 7: 0.9}}
    assert (a > b).compute_by_seed(by_seed.get) == {0: 0.25, 1: 0.5, 2: 0.0}
    assert (a > b).compute_by_seed({A: {0: 0.5}, B: {1: 0.5}}.get) == {}
    middle = mean([a, b]) > c
    assert middle.compute_by_seed({A: {3: 1.0}, B: {3: 0.5}, C: {3: 0.5}}.get) == {3: 0.25}


@pytest.mark.parametrize(
    ("ours", "other", "total"), [(9, math.inf, math.inf), (math.inf, 9, -math.inf), (math.inf, math.inf, math.nan)]
)
def test_rounds_that_are_never_reached_count_as_infinite(ours, other, total):
    later = b > a
    assert later.compute_by_seed({A: {0: ours}, B: {0: other}}.get)[0] == pytest.approx(total, nan_ok=True)
    assert later.admits(total) == (total == math.inf)


@pytest.mark.parametrize(
    ("condition", "admitted"),
    [
        ((a > 1), [False, False, True, True]),
        ((a < 2), [True, True, False, False]),
        (a.between(1, 2.5), [False, False, True, False]),
    ],
)
def test_bounds_are_not_met_by_their_own_number(condition, admitted):
    assert [condition.admits(total) for total in (-math.inf, 1, 2, math.inf)] == admitted
    assert not condition.admits(math.nan)


def test_a_printed_number_has_a_margin_and_a_pair_has_two_results():
    assert a.near(0.45, 0.1).is_near and not a.between(0.35, 0.55).is_near
    assert (a > b).is_pair and not a.near(0.45, 0.1).is_pair


def test_shares_are_compared_in_points():
    share = A._replace(metric="test_accuracy")
    pairs = ((share, B._replace(metric="test_accuracy")), (share, A))
    assert [Condition(((1, first), (-1, second))).factor for first, second in pairs] == [100, 1]
