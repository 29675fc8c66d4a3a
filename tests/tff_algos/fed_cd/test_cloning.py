"""What a milestone does to scores and models, worked by hand."""

import numpy as np

from tff_algos.fed_cd.cloning import begin_histories, clone_models, clone_scores


def test_the_first_clone_is_active_with_a_score_of_0():
    scores, is_active = clone_scores(np.array([[1.0, 0.0]]), np.array([[True, False]]), 1)
    assert scores.tolist() == [[1.0, 0.0]] and is_active.tolist() == [[True, True]]


def test_clones_have_the_complement_of_their_parents_then_all_is_normalized():
    """Device 0 has slots 0 and 1 of M = 2: 0.7, 0.3 and the clones' 0.3, 0.7, over 2. Device 1 has slot 1 alone."""
    scores = np.array([[0.7, 0.3, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    is_active = scores > 0
    cloned, active = clone_scores(scores, is_active, 2)
    np.testing.assert_allclose(cloned, [[0.35, 0.15, 0.15, 0.35], [0.0, 1.0, 0.0, 0.0]])
    assert active.tolist() == [[True] * 4, [False, True, False, True]]
    assert is_active.sum() == 3, "the arguments stay as they were"


def test_clones_by_the_complement_of_accuracies():
    """Accuracies 0.6 and 0.4, of late 0.7 and 0.2: the clones begin with 0.3 and 0.8, over a sum of 2.1."""
    accuracy = np.array([[0.6, 0.4, 0.0, 0.0]])
    latest = np.array([[0.7, 0.2, 0.0, 0.0]])
    cloned, _ = clone_scores(accuracy, accuracy > 0, 2, latest)
    np.testing.assert_allclose(cloned, [[0.6 / 2.1, 0.4 / 2.1, 0.3 / 2.1, 0.8 / 2.1]])


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
