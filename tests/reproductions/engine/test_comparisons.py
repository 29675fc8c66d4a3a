"""Comparisons as Python writes them: terms, bounds and margins by hand, and what is wrong with others."""

import math

import pytest

from reproductions.engine.collection import Cell
from reproductions.engine.comparisons import SLACK, Condition, Results, Sum, format_value, mean

AT = {"dataset": "mnist", "setting": "0.1", "round": 5, "metric": "test_accuracy"}
OURS = Cell("mnist", "0.1", "ours", 5, "test_accuracy")
OTHER, BEST = OURS._replace(algo="other"), OURS._replace(algo="best")
FIRST, OTHER_FIRST = OURS._replace(round_num=1), OTHER._replace(round_num=1)
INF = math.inf

runs = Results(AT, {"algo": dict.fromkeys(("ours", "other", "best"), "")})
ours, other, best = (runs(name) for name in ("ours", "other", "best"))


@pytest.mark.parametrize(
    ("condition", "terms", "above", "below"),
    [
        (ours > other, [(1, OURS), (-1, OTHER)], 0, INF),
        (ours > other + 0.18, [(1, OURS), (-1, OTHER)], 0.18, INF),
        (ours - 0.25 > other, [(1, OURS), (-1, OTHER)], 0.25, INF),
        (ours < other, [(-1, OURS), (1, OTHER)], 0, INF),
        (ours - other < 0, [(1, OURS), (-1, OTHER)], -INF, 0),
        (ours < 2, [(1, OURS)], -INF, 2),
        (ours >= 2, [(1, OURS)], 2 - SLACK, INF),
        (ours <= 2, [(1, OURS)], -INF, 2 + SLACK),
        (ours >= other - 1, [(1, OURS), (-1, OTHER)], -1 - SLACK, INF),
        (ours.between(0.7, 0.8), [(1, OURS)], 0.7, 0.8),
        (other.between(ours - 1, ours + 3), [(-1, OURS), (1, OTHER)], -1, 3),
        (mean([ours, other]) > best, [(0.5, OURS), (0.5, OTHER), (-1, BEST)], 0, INF),
        (ours > mean([other, best]), [(1, OURS), (-0.5, OTHER), (-0.5, BEST)], 0, INF),
        (
            ours - runs("ours", round=1) > other - runs("other", round=1),
            [(1, OURS), (-1, FIRST), (-1, OTHER), (1, OTHER_FIRST)],
            0,
            INF,
        ),
    ],
)
def test_terms_come_as_they_are_written(condition, terms, above, below):
    assert condition == Condition(tuple(terms), "", above, below)


def test_a_printed_number_has_a_margin():
    assert ours.near(0.5, 0.25) == Condition(((1, OURS),), "", 0.25, 0.75, is_near=True)


def test_a_result_says_what_the_row_does_not():
    [cell] = runs("ours", "loss", setting="1", dataset="har").weights
    assert cell == Cell("har", "1", "ours", 5, "loss")


@pytest.mark.parametrize(
    ("compare", "words"),
    [
        (lambda: runs("outs"), "'outs' is no algo; expected one of ours, other, best"),
        (lambda: runs("ours", colour="red"), "expected dataset, setting, algo, round, metric"),
        (lambda: runs(), "a result with dataset, setting, round, metric; expected"),
        (lambda: other.between(ours - 1, best + 3), "the same ones, or none, in both bounds"),
        (lambda: Sum({}, 1.0).between(ours - 1, ours + 3), "expected a result"),
        (lambda: Sum({}, 1.0) < 2, "two numbers; expected a result on one side"),
    ],
)
def test_what_is_no_comparison_is_refused(compare, words):
    with pytest.raises(ValueError) as error:
        compare()
    assert words in str(error.value)


def test_two_bounds_in_a_row_are_refused_since_python_would_drop_one():
    with pytest.raises(TypeError, match=r"between\(low, high\)"):
        ours - 1 < other < ours + 3  # noqa: B015


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


@pytest.mark.parametrize(
    ("condition", "text", "shown"),
    [
        ((a > b), "a {0}, b {1}", "a 0.50, b 0.20"),
        ((a < b), "a {0}, b {1}", "a 0.50, b 0.20"),
        ((mean([a, b]) > c), "{0}, {1} against c {2}", "0.50, 0.20 against c 0.40"),
        ((a - b > c - d), "{1} to {0}, {3} to {2}", "0.20 to 0.50, 0.30 to 0.40"),
    ],
)
def test_texts_name_the_results_in_the_order_in_which_they_are_written(condition, text, shown):
    assert condition.told(text).describe(VALUES.get) == shown


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
