"""Each way of comparing results, by its margin on numbers worked out by hand."""

import pytest

from launch.reports.collection import Cell
from launch.reports.conditions import (
    at_least,
    at_most,
    bounded,
    differs,
    exceeds,
    format_value,
    gains_more,
    mean_exceeds,
    near,
)

A, B, C, D = (Cell("mnist", "0.1", name, 5, "test_loss") for name in "abcd")
VALUES = {A: 0.5, B: 0.2, C: 0.4, D: 0.3}


@pytest.mark.parametrize(
    ("condition", "margin"),
    [
        (bounded(A, "", above=0.1, below=0.75), 0.25),
        (at_most(A, "", 0.5), 1e-6),
        (at_most(A, "", 0.4), -0.1 + 1e-6),
        (at_least(A, "", 0.5), 1e-6),
        (at_least(A, "", 0.75), -0.25 + 1e-6),
        (near(A, "", 0.45, 0.1), 0.05),
        (differs(A, B, "", above=0.1, below=0.5), 0.2),
        (exceeds(A, B, ""), 0.3),
        (exceeds(A, B, "", by=0.4), -0.1),
        (mean_exceeds([A, B], [C], ("", "")), -0.05),  # 0.35 against 0.4
        (gains_more((B, A), (D, C), ""), 0.2),  # 0.3 against 0.1
        (gains_more((A, B), (C, D), ""), -0.2),  # a fall of 0.3 against one of 0.1
    ],
)
def test_the_margin_by_hand(condition, margin):
    assert condition.compute_margin(VALUES.get) == pytest.approx(margin, abs=1e-12)


def test_texts_name_the_results_in_the_order_in_which_they_are_given():
    assert exceeds(A, B, "a {0}, b {1}").describe(VALUES.get) == "a 0.50, b 0.20"
    assert mean_exceeds([A, B], [C], ("a and b", "c")).describe(VALUES.get) == "a and b 0.50, 0.20 against c 0.40"
    assert gains_more((B, A), (D, C), "{0} to {1}, {2} to {3}").describe(VALUES.get) == "0.20 to 0.50, 0.30 to 0.40"


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("test_accuracy", 0.7483, "74.83 %"),
        ("test_loss", 1.452, "1.45"),
        ("total_drift", 0.00123, "0.00123"),
        ("test_loss", None, "not run"),
    ],
)
def test_values_are_shown_in_their_unit(metric, value, text):
    assert format_value(metric, value) == text
