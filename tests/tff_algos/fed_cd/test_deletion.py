"""Which models a device deletes, with 1, 2, 3 and 5 of them, worked by hand."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.fed_cd.deletion import delete_on_devices, find_low_second, find_underperforming, rank_models
from tff_algos.fed_cd.scores import normalize


def find(function, scores, argument, is_active=None):
    """The deleted slots of one device."""
    scores = np.array([scores], np.float64)
    is_active = np.ones(scores.shape, bool) if is_active is None else np.array([is_active])
    return np.flatnonzero(function(scores, is_active, argument)[0]).tolist()


@pytest.mark.parametrize(
    ("scores", "deleted_if_two_stay", "deleted_as_printed"),
    [
        ([1.0], [], []),
        ([0.9, 0.1], [], [1]),  # deviation 0.4, distance 0.8: as printed, one of two always goes
        ([0.1, 0.9], [], [0]),
        ([0.5, 0.5], [], []),  # deviation 0: nothing, although 0 >= 0
        ([0.5, 0.3, 0.2], [2], [1, 2]),  # deviation 0.125; distances 0.2 and 0.3
        ([0.4, 0.35, 0.25], [2], [2]),  # deviation 0.062: only 0.15 is as far
        ([0.2, 0.4, 0.4], [0], [0]),
        ([0.3, 0.4, 0.3], [2], [0, 2]),  # of the two second best, the lower slot stays
        ([0.35, 0.25, 0.2, 0.12, 0.08], [2, 3, 4], [1, 2, 3, 4]),  # deviation 0.096; distances 0.1, 0.15, 0.23, 0.27
        ([0.24, 0.24, 0.24, 0.24, 0.04], [4], [4]),  # deviation 0.08, distance 0.2
        ([0.2] * 5, [], []),
    ],
)
def test_equation_4(scores, deleted_if_two_stay, deleted_as_printed):
    assert find(find_underperforming, scores, 2) == deleted_if_two_stay
    assert find(find_underperforming, scores, 1) == deleted_as_printed


@pytest.mark.parametrize(
    ("scores", "deleted"),
    [
        ([1.0], []),
        ([0.9, 0.1], []),  # of two, the lower lies just a deviation below the mean
        ([0.6, 0.4], []),
        ([0.5, 0.3, 0.2], [2]),  # mean 0.333, deviation 0.125: 0.2 lies 0.133 below
        ([0.4, 0.35, 0.25], [2]),  # mean 0.333, deviation 0.062: 0.25 lies 0.083 below
        ([0.4, 0.4, 0.1, 0.1], []),  # two pairs: just a deviation of 0.15
        ([0.35, 0.25, 0.2, 0.12, 0.08], [4]),  # deviation 0.096: 0.12 lies 0.08 below 0.2, 0.08 lies 0.12
        ([0.24, 0.24, 0.24, 0.24, 0.04], [4]),
        ([0.2] * 5, []),
    ],
)
def test_deletion_below_the_mean(scores, deleted):
    scores, is_active = np.array([scores]), np.ones((1, len(scores)), bool)
    assert np.flatnonzero(find_underperforming(scores, is_active, 2, "below_mean")[0]).tolist() == deleted
    assert np.flatnonzero(find_underperforming(scores, is_active, 1, "below_mean")[0]).tolist() == deleted


@hypothesis.given(
    counts=arrays(np.int64, (4, 16), elements=st.integers(0, 300)),
    is_active=arrays(bool, (4, 16)).filter(lambda mask: mask.any(axis=1).all()),
)
@hypothesis.settings(deadline=None)
def test_below_the_mean_two_stay_by_themselves_and_more_may_stay_for_good(counts, is_active):
    """Fewer than half of the scores can lie more than a deviation below their mean."""
    deleted = find_underperforming(normalize(counts, is_active), is_active, 1, "below_mean").sum(axis=1)
    assert (2 * deleted < is_active.sum(axis=1)).all()


def test_models_that_a_device_does_not_have_do_not_count():
    """Without slot 1 (score 0), the device has two models and keeps both; they are never deleted again."""
    assert find(find_underperforming, [0.7, 0.0, 0.3], 2, [True, False, True]) == []
    assert find(find_underperforming, [0.7, 0.0, 0.3], 1, [True, False, True]) == [2]


@pytest.mark.parametrize(
    ("scores", "deleted"),
    [
        ([0.7, 0.3], [1]),  # at most 0.3
        ([0.3, 0.7], [0]),
        ([0.69, 0.31], []),
        ([1.0, 0.0], [1]),  # active with a score of 0
        ([1.0], []),
        ([0.5, 0.3, 0.2], []),  # the rule is for two
    ],
)
def test_the_late_rule(scores, deleted):
    assert find(find_low_second, scores, 0.3) == deleted


def test_the_late_rule_leaves_the_last_model_even_if_its_score_is_low():
    assert find(find_low_second, [0.2, 0.0, 0.0], 0.3, [True, False, False]) == []
    assert find(find_low_second, [0.1, 0.1, 0.0], 0.3, [True, True, False]) == [1]


def test_ranks_by_score_then_slot():
    scores = np.array([[0.2, 0.5, 0.2, 0.0, 0.1]])
    assert rank_models(scores, np.array([[True, True, True, False, True]])).tolist() == [[1, 0, 2, 4, 3]]


@pytest.mark.parametrize(
    ("scores", "round_num", "settings", "left"),
    [
        ([0.35, 0.25, 0.2, 0.12, 0.08], 1, {"deletion": "below_mean"}, [35 / 92, 25 / 92, 20 / 92, 12 / 92, 0]),
        ([0.7, 0.3, 0.0], 19, {}, [0.7, 0.3, 0]),  # the late rule begins with round 20
        ([0.7, 0.3, 0.0], 20, {}, [1, 0, 0]),
        ([0.7, 0.3, 0.0], 19, {"late_round": 19}, [1, 0, 0]),
        ([0.7, 0.3, 0.0], 20, {"late_score": 0.29}, [0.7, 0.3, 0]),
        ([0.5, 0.3, 0.2], 1, {}, [0.625, 0.375, 0]),  # Eq. (4) takes the third
        ([0.5, 0.3, 0.2], 20, {}, [0.625, 0.375, 0]),  # then 0.375 is not low
        ([0.5, 0.3, 0.2], 1, {"normalize_after_deletion": False}, [0.5, 0.3, 0]),
        ([0.5, 0.3, 0.2], 20, {"normalize_after_deletion": False}, [0.5, 0, 0]),  # 0.3 is
        ([0.5, 0.3, 0.2], 1, {"protected_models": 1}, [1, 0, 0]),
        ([0.5, 0.3, 0.2], 1, {"protected_models": 3}, [0.5, 0.3, 0.2]),
    ],
)
def test_both_rules_in_their_order(scores, round_num, settings, left):
    scores = np.array([scores])
    after, is_active = delete_on_devices(scores, scores > 0, round_num, FedCDConfig(**settings))
    np.testing.assert_allclose(after, [left], atol=1e-12)
    assert is_active.tolist() == (after > 0).tolist()


@hypothesis.given(
    scores=arrays(np.float64, (4, 6), elements=st.floats(0, 1)),
    is_active=arrays(bool, (4, 6)).filter(lambda mask: mask.any(axis=1).all()),
    num_protected=st.integers(1, 3),
)
@hypothesis.settings(deadline=None)
def test_the_best_always_stay(scores, is_active, num_protected):
    deleted = find_underperforming(scores, is_active, num_protected)
    assert not (deleted & ~is_active).any()
    left = (is_active & ~deleted).sum(axis=1)
    assert (left >= np.minimum(is_active.sum(axis=1), num_protected)).all()
    after = is_active & ~deleted
    assert (after & ~find_low_second(scores, after, 0.3)).any(axis=1).all()
    highest = np.where(is_active, scores, -1).max(axis=1)
    assert (np.where(after, scores, -1).max(axis=1) == highest).all()


@hypothesis.given(
    counts=arrays(np.int64, (4, 16), elements=st.integers(0, 300)),
    is_active=arrays(bool, (4, 16)).filter(lambda mask: mask.any(axis=1).all()),
    num_protected=st.integers(1, 2),
)
@hypothesis.example(np.array([[2, 2, 1, 1]]), np.ones((1, 4), bool), 2)  # the range is no more than two deviations
def test_of_three_models_or_more_one_goes_unless_all_are_equal(counts, is_active, num_protected):
    """So that after as many rounds as there are models beyond two, a device has two at most.

    The lowest score lies below the highest by the range of the scores, and no deviation is larger than half of that.
    """
    scores = normalize(counts, is_active)
    deleted = find_underperforming(scores, is_active, num_protected).sum(axis=1)
    highest = np.where(is_active, counts, -1).max(axis=1)
    lowest = np.where(is_active, counts, 301).min(axis=1)
    assert (deleted[(is_active.sum(axis=1) >= 3) & (highest > lowest)] >= 1).all()


def test_models_whose_scores_are_all_equal_stay_however_many_rounds_pass():
    """The one way in which a device ends with more than two."""
    is_active = np.array([[True, True, True, False]])
    scores = normalize(np.array([[70, 70, 70, 0]]), is_active)
    for round_num in range(31, 46):
        scores, is_active = delete_on_devices(scores, is_active, round_num, FedCDConfig())
    assert is_active.tolist() == [[True, True, True, False]]
