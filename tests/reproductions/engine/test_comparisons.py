"""Comparisons as Python writes them: terms and bounds by hand, and what is wrong with others."""

import math

import pytest

from reproductions.engine.collection import Cell
from reproductions.engine.comparisons import SLACK, Results, Sum, mean
from reproductions.engine.conditions import Condition

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
