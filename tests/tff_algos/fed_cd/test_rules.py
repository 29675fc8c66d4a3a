"""FedCD's rules on the host, worked by hand: scores, clones, deletion, milestones."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.fed_cd.scores import (
    NOT_EVALUATED,
    add_noise,
    compute_aggregation_weights,
    compute_mean_accuracy,
    compute_score_deviations,
    find_best,
    forget,
    normalize,
    record_evaluation,
)
from tff_algos.fed_cd.state import (
    begin_histories,
    clone_models,
    clone_scores,
    delete_on_devices,
    find_low_second,
    find_underperforming,
    rank_models,
)

NOT = -1.0  # the score of a model that the device does not have


@pytest.mark.parametrize(
    ("scores", "if_two_stay", "as_printed", "below_mean", "late"),
    [
        ([1.0], [], [], [], []),
        ([0.9, 0.1], [], [1], [], [1]),  # deviation 0.4, distance 0.8: as printed, one of two always goes
        ([0.1, 0.9], [], [0], [], [0]),
        ([0.5, 0.5], [], [], [], []),  # deviation 0: nothing, although 0 >= 0
        ([0.6, 0.4], [], [1], [], []),  # of two, the lower lies just a deviation below the mean
        ([0.7, 0.3], [], [1], [], [1]),  # late: at most 0.3
        ([0.3, 0.7], [], [0], [], [0]),
        ([0.69, 0.31], [], [1], [], []),
        ([1.0, 0.0], [], [1], [], [1]),  # active with a score of 0
        ([0.5, 0.3, 0.2], [2], [1, 2], [2], []),  # deviation 0.125; distances 0.2 and 0.3; 0.2 lies 0.133 below 0.333
        ([0.4, 0.35, 0.25], [2], [2], [2], []),  # deviation 0.062: only 0.15 is as far; 0.25 lies 0.083 below 0.333
        ([0.2, 0.4, 0.4], [0], [0], [0], []),
        ([0.3, 0.4, 0.3], [2], [0, 2], [], []),  # of the two second best, the lower slot stays
        ([0.4, 0.4, 0.1, 0.1], [2, 3], [2, 3], [], []),  # two pairs: just a deviation of 0.15 below the mean
        # Deviation 0.096; distances 0.1, 0.15, 0.23, 0.27; 0.12 lies 0.08 below the mean of 0.2, 0.08 lies 0.12.
        ([0.35, 0.25, 0.2, 0.12, 0.08], [2, 3, 4], [1, 2, 3, 4], [4], []),
        ([0.24, 0.24, 0.24, 0.24, 0.04], [4], [4], [4], []),  # deviation 0.08, distance 0.2
        ([0.2] * 5, [], [], [], []),
        ([0.7, NOT, 0.3], [], [2], [], [2]),  # models that a device does not have do not count
        ([0.2, NOT, NOT], [], [], [], []),  # the last one stays even if its score is low
        ([0.1, 0.1, NOT], [], [], [], [1]),
    ],
)
def test_deletion_by_hand(scores, if_two_stay, as_printed, below_mean, late):
    """Eq. (4) with two models that stay and as printed, with one; below the mean; and the late rule, for two models."""
    is_active = np.array([scores]) >= 0
    arguments = np.where(is_active, [scores], 0.0), is_active
    rules = [("below_best", 2, if_two_stay), ("below_best", 1, as_printed)]
    rules += [("below_mean", number, below_mean) for number in (1, 2)]
    found = [find_underperforming(*arguments, number, rule) for rule, number, _ in rules] + [
        find_low_second(*arguments, 0.3)
    ]
    assert [np.flatnonzero(each[0]).tolist() for each in found] == [*(expected for *_, expected in rules), late]


@hypothesis.given(
    counts=arrays(np.int64, (4, 16), elements=st.integers(0, 300)),
    is_active=arrays(bool, (4, 16)).filter(lambda mask: mask.any(axis=1).all()),
)
@hypothesis.settings(deadline=None)
def test_below_the_mean_two_stay_by_themselves_and_more_may_stay_for_good(counts, is_active):
    """Fewer than half of the scores can lie more than a deviation below their mean."""
    deleted = find_underperforming(normalize(counts, is_active), is_active, 1, "below_mean").sum(axis=1)
    assert (2 * deleted < is_active.sum(axis=1)).all()


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


NO = NOT_EVALUATED


def test_an_evaluation_pushes_the_oldest_out():
    history = np.array([[[1, 2, 3], [NO, NO, 4], [5, 6, 7]]])
    recorded = record_evaluation(history, np.array([[8, 9, 10]]), np.array([[True, True, False]]))
    assert recorded.tolist() == [[[2, 3, 8], [NO, 4, 9], [6, 7, NO]]]


@pytest.mark.parametrize(("rule", "expected"), [("mean", [0.5, 0.65, 0.9, 0.0]), ("latest", [0.5, 0.9, 0.9, 0.0])])
def test_accuracy_of_the_last_three_or_of_fewer(rule, expected):
    """Of 10 examples: (2 + 4 + 9) / 30, (4 + 9) / 20 or the latest alone, 9 / 10, and nothing yet."""
    history = np.array([[[2, 4, 9], [NO, 4, 9], [NO, NO, 9], [NO, NO, NO]]])
    np.testing.assert_array_equal(compute_mean_accuracy(history, np.array([10]), rule), [expected])
    assert not compute_mean_accuracy(np.zeros((1, 1, 2), int), np.array([0]), rule).any()  # without any example


def test_equal_accuracies_are_equal_to_the_last_bit_in_any_order_and_number():
    """0.1 + 0.2 + 0.3 differs from 0.3 + 0.2 + 0.1 in floating point; counts do not."""
    history = np.array([[[1, 2, 3], [3, 2, 1], [NO, 1, 3], [NO, NO, 2]]])
    assert len(set(compute_mean_accuracy(history, np.array([10]))[0])) == 1


def test_scores_are_accuracies_over_their_sum_among_active_models():
    """0.6, 0.2 and 0.2 of a sum of 1.0 become themselves; without the second, 0.75 and 0.25."""
    accuracy = np.array([[0.6, 0.2, 0.2], [0.6, 0.2, 0.2]])
    scores = normalize(accuracy, np.array([[True, True, True], [True, False, True]]))
    np.testing.assert_allclose(scores, [[0.6, 0.2, 0.2], [0.75, 0.0, 0.25]])


def test_accuracies_of_zero_give_equal_scores():
    scores = normalize(np.zeros((2, 4)), np.array([[True, True, False, False], [False, False, True, False]]))
    assert scores.tolist() == [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]


@hypothesis.given(
    accuracy=arrays(np.float64, (5, 4), elements=st.floats(0, 1)),
    is_active=arrays(bool, (5, 4)).filter(lambda mask: mask.any(axis=1).all()),
)
@hypothesis.settings(deadline=None)
def test_scores_sum_to_1_and_are_0_without_the_model(accuracy, is_active):
    scores = normalize(accuracy, is_active)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0)
    assert (scores[~is_active] == 0).all() and (scores >= 0).all()
    best = find_best(scores, is_active)
    assert is_active[np.arange(5), best].all()


def test_the_score_that_is_sent_has_noise_and_is_never_negative():
    scores = np.tile([0.0, 0.5], (2000, 1))
    sent = add_noise(scores, 0.1, np.random.default_rng(0))
    assert sent.min() == 0.0
    assert 0.4 < np.mean(sent[:, 0] == 0.0) < 0.6
    assert sent[:, 1].mean() == pytest.approx(0.5, abs=0.01) and sent[:, 1].std() == pytest.approx(0.1, abs=0.01)
    np.testing.assert_array_equal(add_noise(scores, 0.0, np.random.default_rng(0)), scores)


def test_updates_weigh_as_their_scores_and_alike_where_all_are_0():
    sent, slots = np.array([0.2, 0.0, 0.0, 0.6, 0.0]), np.array([0, 0, 2, 3, 2])
    assert compute_aggregation_weights(sent, slots).tolist() == [0.2, 0.0, 1.0, 0.6, 1.0]


def test_the_best_model_is_the_lowest_slot_of_the_highest_score():
    scores = np.array([[0.3, 0.4, 0.4, 0.0], [0.9, 0.0, 0.1, 0.0], [0.0, 0.0, 0.0, 0.0]])
    can_be = np.array([[True, True, True, False], [False, True, True, False], [False, False, False, True]])
    assert find_best(scores, can_be).tolist() == [1, 2, 3]


def test_deviation_over_active_models_by_hand():
    """(0.5, 0.3, 0.2): mean 1/3, deviations 1/6, -1/30, -2/15, variance (25 + 1 + 16) / 900 / 3."""
    scores = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    is_active = np.array([[True, True, True], [True, False, False], [True, True, False]])
    np.testing.assert_allclose(compute_score_deviations(scores, is_active), [np.sqrt(42 / 2700), 0.0, 0.0], atol=1e-12)


def test_what_is_gone_is_forgotten():
    assert forget(np.array([[[1, 2], [3, 4]]]), np.array([[False, True]])).tolist() == [[[NO, NO], [3, 4]]]


@pytest.mark.parametrize(
    ("scores", "latest", "expected"),
    [
        ([1.0, 0.0], None, [1.0, 0.0]),  # the first clone has the score 0
        ([0.7, 0.3, 0, 0], None, [0.35, 0.15, 0.15, 0.35]),  # M = 2: the clones' 0.3 and 0.7, all over 2
        ([0.0, 1.0, 0, 0], None, [0.0, 1.0, 0.0, 0.0]),  # slot 1 alone, so its clone alone
        # Accuracies 0.6 and 0.4, of late 0.7 and 0.2: the clones begin with 0.3 and 0.8, over a sum of 2.1.
        ([0.6, 0.4, 0, 0], [0.7, 0.2, 0, 0], [0.6 / 2.1, 0.4 / 2.1, 0.3 / 2.1, 0.8 / 2.1]),
    ],
)
def test_clones_have_the_complement_of_their_parents_then_all_is_normalized(scores, latest, expected):
    scores = np.array([scores])
    is_active, number = scores > 0, scores.shape[1] // 2
    cloned, active = clone_scores(scores, is_active, number, None if latest is None else np.array([latest]))
    np.testing.assert_allclose(cloned, [expected])
    assert active.tolist() == np.tile(is_active[:, :number], 2).tolist()
    assert not is_active[:, number:].any(), "the arguments stay as they were"


def test_a_clone_can_begin_with_the_complement_of_its_parents_latest_accuracy():
    """Of 10 examples the parents in slots 0 and 1 had 7 and 2 right; the other device, of 4, has slot 1 alone."""
    history = np.full((2, 4, 3), -1)
    history[0, 0], history[0, 1], history[1, 1] = [5, 6, 7], [-1, -1, 2], [-1, 3, 3]
    is_active = np.array([[True, True, False, False], [False, True, False, False]])
    begun = begin_histories(history, is_active, np.array([10, 4]), 2)
    assert begun[0, 2:].tolist() == [[-1, -1, 3], [-1, -1, 8]]
    assert begun[1, 2:].tolist() == [[-1, -1, -1], [-1, -1, 1]]
    np.testing.assert_array_equal(begun[:, :2], history[:, :2])


def test_a_device_without_the_parent_gets_no_clone():
    """M = 4 of capacity 8: the clone of slot m is slot 4 + m."""
    is_active = np.zeros((2, 8), bool)
    is_active[0, [0, 3]], is_active[1, 2] = True, True
    _, active = clone_scores(is_active / is_active.sum(axis=1, keepdims=True), is_active, 4)
    assert [np.flatnonzero(row).tolist() for row in active] == [[0, 3, 4, 7], [2, 6]]


def test_a_clone_is_a_copy_of_what_the_devices_have():
    models = (np.arange(8.0).reshape(4, 2), np.arange(4))
    received = (10 * models[0], models[1])
    cloned = clone_models(models, received, np.array([-1, -1, -1, 1]))
    assert cloned[0].tolist() == [[0, 1], [2, 3], [4, 5], [20, 30]] and cloned[1].tolist() == [0, 1, 2, 1]
    assert models[0][3].tolist() == [6, 7]


def test_milestones_double_the_slots():
    config = FedCDConfig(milestones=(5, 15, 25))
    assert config.capacity == 8
    assert [config.count_slots(round_num) for round_num in (1, 5, 6, 15, 16, 99)] == [1, 1, 2, 2, 4, 8]


def test_a_smoke_run_clones_once_if_at_all():
    config = FedCDConfig(cohort_size=15).shrink_to_smoke()
    assert (config.milestones, config.cohort_size, config.training.epochs) == ((1,), 3, 1)
    assert FedCDConfig(milestones=()).shrink_to_smoke().milestones == ()
