"""Pairs of methods: p-values by hand, Holm's correction, who wins."""

import pytest

from launch.pages.comparison.pairs import AHEAD, BEHIND, find_best, judge_pairs, list_pairs, list_winners
from launch.pages.comparison.seed_statistics import UNDECIDED

FEDAVG = {0: 0.50, 1: 0.52, 2: 0.54}


def add(by_seed, *differences):
    return {seed: by_seed[seed] + each for seed, each in zip(by_seed, differences, strict=True)}


def test_a_pair_by_hand():
    """1, 2 and 3 points: t = 2 / (1 / sqrt(3)) = 3.464 with 2 degrees of freedom, p = 0.0742.

    Two seeds decide nothing, and do not count in the family.
    """
    values = {"fedavg": FEDAVG, "a": add(FEDAVG, 0.01, 0.02, 0.03), "short": {0: 0.9, 1: 0.9}}
    pair, short = judge_pairs([("a", "fedavg"), ("short", "fedavg")], values)
    assert (pair.difference.mean, pair.p_value) == (pytest.approx(0.02), pytest.approx(0.0742, abs=1e-4))
    assert (pair.verdict, short.p_value, short.verdict) == (UNDECIDED, None, UNDECIDED)


def test_a_family_is_corrected_by_holm():
    values = {"fedavg": FEDAVG, "a": add(FEDAVG, 0.10, 0.101, 0.099), "b": add(FEDAVG, -0.02, -0.021, -0.019)}
    # a: t = 0.1 / (0.001 / sqrt(3)) = 173.2, p = 3.33e-5, times 2; b: t = 34.64, p = 8.32e-4, times 1.
    a, b = judge_pairs([("a", "fedavg"), ("b", "fedavg")], values)
    assert a.p_value == pytest.approx(2 * 3.333e-5, rel=1e-3) and b.p_value == pytest.approx(8.322e-4, rel=1e-3)
    assert (a.verdict, b.verdict) == (AHEAD, BEHIND)


def test_the_same_difference_in_all_seeds_decides_and_a_tie_does_not():
    values = {"fedavg": FEDAVG, "same": dict(FEDAVG), "above": add(FEDAVG, 0.25, 0.25, 0.25)}
    tie, above = judge_pairs([("same", "fedavg"), ("above", "fedavg")], values)
    assert (tie.verdict, above.verdict) == (UNDECIDED, AHEAD)


def test_every_candidate_meets_every_other_method_once():
    methods = ["fedavg", "fedsikd", "ditto", "amfl_p"]
    assert list_pairs(methods, ("fedsikd", "fedcd", "amfl_p")) == [
        ("fedsikd", "fedavg"),
        ("fedsikd", "ditto"),
        ("fedsikd", "amfl_p"),
        ("amfl_p", "fedavg"),
        ("amfl_p", "ditto"),
    ]


def test_the_best_has_the_highest_mean():
    assert find_best({"a": {0: 0.5, 1: 0.7}, "b": {0: 0.61, 1: 0.61}, "c": {0: 0.61, 1: 0.61}}) == "b"


def test_a_candidate_wins_by_its_hardest_pair_alone():
    # fedcd - c: 2, 3 and 4 points, t = 3 / (1 / sqrt(3)) = 5.196 with 2 degrees of freedom, p = 0.0351; others less.
    values = {"fedavg": FEDAVG, "c": add(FEDAVG, 0.10, 0.10, 0.10), "fedcd": add(FEDAVG, 0.12, 0.13, 0.14)}
    assert list_winners(values, ("fedsikd", "fedcd")) == ["fedcd"]
    # Of two candidates the smaller p counts twice, 0.0702.
    assert list_winners({**values, "fedsikd": FEDAVG}, ("fedsikd", "fedcd")) == []


@pytest.mark.parametrize(
    ("others", "winners"),
    [
        ({"fedavg": FEDAVG}, ["fedcd"]),
        ({"fedavg": FEDAVG, "ifca": add(FEDAVG, 0.2, 0.2, 0.2)}, []),
        ({"fedavg": FEDAVG, "ifca": add(FEDAVG, 0.1, 0.1, 0.1)}, []),
        ({"fedavg": FEDAVG, "ifca": {0: 0.1, 1: 0.1}}, []),  # with two seeds nothing is decided
        ({}, []),
    ],
)
def test_a_candidate_that_is_behind_once_or_has_no_rival_does_not_win(others, winners):
    assert list_winners({**others, "fedcd": add(FEDAVG, 0.1, 0.1, 0.1)}, ("fedcd",)) == winners
