"""FedCD's scores, worked by hand."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

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

NO = NOT_EVALUATED


def test_an_evaluation_pushes_the_oldest_out():
    history = np.array([[[1, 2, 3], [NO, NO, 4], [5, 6, 7]]])
    recorded = record_evaluation(history, np.array([[8, 9, 10]]), np.array([[True, True, False]]))
    assert recorded.tolist() == [[[2, 3, 8], [NO, 4, 9], [6, 7, NO]]]


def test_mean_accuracy_of_the_last_three_or_of_fewer():
    """Of 10 examples: (2 + 4 + 9) / 30, (4 + 9) / 20, 9 / 10, and nothing yet."""
    history = np.array([[[2, 4, 9], [NO, 4, 9], [NO, NO, 9], [NO, NO, NO]]])
    np.testing.assert_array_equal(compute_mean_accuracy(history, np.array([10])), [[0.5, 0.65, 0.9, 0.0]])


def test_the_latest_alone_counts_until_there_are_three():
    """As the mean above where there are three, else the last: 9 of 10, whatever came before."""
    history = np.array([[[2, 4, 9], [NO, 4, 9], [NO, NO, 9], [NO, NO, NO]]])
    accuracy = compute_mean_accuracy(history, np.array([10]), "latest")
    np.testing.assert_array_equal(accuracy, [[0.5, 0.9, 0.9, 0.0]])


def test_equal_accuracies_are_equal_to_the_last_bit_in_any_order_and_number():
    """0.1 + 0.2 + 0.3 differs from 0.3 + 0.2 + 0.1 in floating point; counts do not."""
    history = np.array([[[1, 2, 3], [3, 2, 1], [NO, 1, 3], [NO, NO, 2]]])
    assert len(set(compute_mean_accuracy(history, np.array([10]))[0])) == 1


def test_without_validation_examples_the_accuracy_is_0():
    assert compute_mean_accuracy(np.array([[[0, 0]]]), np.array([0])).tolist() == [[0.0]]


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
