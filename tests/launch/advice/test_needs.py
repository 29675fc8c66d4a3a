"""How much more would decide, checked against the power that it promises."""

import math

import pytest
from made_contests import make_results

from launch.advice.contrasts import CLIENTS, EXAMPLES, SEEDS, Sample, contrast, find_quantile
from launch.advice.needs import Need, count_needed, list_needs, round_up, say_need
from launch.advice.questions import Comparison


def test_the_least_number_of_clients():
    """A spread of 0.1 over clients and a gain of 0.05, half of it: 33.4 by (1.96 + 0.84)^2 / 0.25, 34 with t."""
    sample = Sample(CLIENTS, 0.05, 0.1 / math.sqrt(9), 8, 9)
    needed = count_needed(sample, 0.05, 0.05)
    assert needed == 34
    for number, is_enough in ((33, False), (34, True)):
        wanted = find_quantile(number - 1, 0.975) + find_quantile(number - 1, 0.8)
        assert (0.05 * math.sqrt(number) / 0.1 >= wanted) == is_enough


def test_test_examples_by_the_normal_distribution():
    """(1.95996 + 0.84162)^2 = 7.8489: of a deviation of 0.5 and a gain of 0.1, 196.2."""
    sample = Sample(EXAMPLES, 0.1, 0.5 / math.sqrt(100), math.inf, 100)
    assert count_needed(sample, 0.1, 0.05) == 197


def test_what_is_open_is_listed_and_a_gain_that_hardly_matters_is_not_sought():
    """A gain of 0.001 is counted as the margin of 0.01 is."""
    offsets = (-0.02, -0.01, 0.0, 0.01, 0.025)
    found = contrast(make_results((0.5, 0.52, 0.48), offsets), make_results((0.5, 0.5, 0.5), (0.0,) * 5), 1)
    needs = list(list_needs(Comparison("a", "b", found), 0.01))
    assert [(need.unit, need.now) for need in needs] == [(SEEDS, 3), (CLIENTS, 5)]
    assert [need.needed for need in needs] == [count_needed(sample, 0.01, 0.05) for sample in found.samples]
    small = Comparison("a", "b", found._replace(gain=0.0))
    assert next(list_needs(small, 1e-9)).needed is None


def test_what_is_decided_needs_nothing():
    found = contrast(make_results((0.9, 0.91, 0.92), (0.0, 0.01) * 3), make_results((0.1,) * 3, (0.0,) * 6), 1)
    assert list(list_needs(Comparison("a", "b", found), 0.01)) == []


def test_needs_in_words():
    clients, seeds = Need(CLIENTS, 20, 58), Need(SEEDS, 3, 7)
    assert say_need([seeds, clients], 15.0) == (
        "take 4 more repeats and about 58 clients like yours in place of 20, or at best 2.9 times the examples of each"
    )
    assert say_need([clients], None) == "take about 58 clients like yours in place of 20"
    assert say_need([Need(EXAMPLES, 60, 1234)], 20.0) == "take about 1,300 test examples in place of 60"
    assert say_need([Need(CLIENTS, 20, None)], 15.0) == "take far more data than yours"
    assert say_need([Need(SEEDS, 3, 4)], 15.0) == "take 1 more repeat"
    assert say_need([], 15.0) == ""


@pytest.mark.parametrize(("number", "rounded"), [(7, 7), (34, 34), (101, 110), (1234, 1300), (1300, 1300)])
def test_two_digits(number, rounded):
    assert round_up(number) == rounded
