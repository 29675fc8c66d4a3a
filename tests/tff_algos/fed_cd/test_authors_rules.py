"""FedCD with the rules of its authors' code, on a TFF worker: clones' scores and histories, and rates that are kept."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from small_runs import assert_same, run

from launch.runs.checkpoints import Checkpoints
from tff_algos.settings.local_training import LocalTrainingConfig

STEP = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.5, batch_size=100)  # one full batch
STILL = dataclasses.replace(STEP, learning_rate=1e-30)


def normalized(*values):
    return [[value / sum(values) for value in values]]


def test_the_authors_clones_by_hand(build):
    """Steps of nothing, so that the accuracy a of both models stays; a clone begins with 1 - a.

    After the milestone: scores a and 1 - a, which sum to 1. One evaluation later the clone has two accuracies, so the
    latest counts: a and a. Then (1 - a, a, a), and at last (a, a, a).
    """
    process = build(
        (40,),
        STILL,
        milestones=(1,),
        clone_score="complement_of_accuracy",
        clone_history="complement",
        short_history="latest",
        deletion="below_mean",
    )
    state, _ = run(process, 1, process.initialize())
    right = int(state.history[0, 0, 2])
    assert 0 < right < 40 and state.history[0, 1].tolist() == [-1, -1, 40 - right]
    np.testing.assert_allclose(state.scores, [[right / 40, 1 - right / 40]])
    accuracy = right / 40
    for clone in (accuracy, (1 + accuracy) / 3, accuracy):
        state, _ = run(process, 1, state)
        np.testing.assert_allclose(state.scores, normalized(accuracy, clone))


@pytest.mark.parametrize("history", ["none", "complement"])
def test_a_clone_scores_by_its_parents_latest_accuracy(build, history):
    """Accuracies 8/40, 8/40 and then the model's own a: the parent has their mean, the clone 1 - a."""
    process = build((40,), STILL, milestones=(3,), clone_score="complement_of_accuracy", clone_history=history)
    state, _ = run(process, 2, process.initialize())
    own = int(state.history[0, 0, 2])
    assert own not in (8, 20), "or the latest would be the mean, or its complement itself"
    state.history[0, 0, 1:] = 8
    state, _ = run(process, 1, state)
    assert state.history[0, 0].tolist() == [8, 8, own]
    np.testing.assert_allclose(state.scores, normalized((8 + 8 + own) / 120, 1 - own / 40))
    assert state.history[0, 1].tolist() == [-1, -1, -1 if history == "none" else 40 - own]
    # With one evaluation of its own the clone has its parent's latest accuracy, or the mean of that and 1 - a.
    state, _ = run(process, 1, state)
    clone = own / 40 if history == "none" else 0.5
    np.testing.assert_allclose(state.scores, normalized((8 + own + own) / 120, clone))


def test_a_clone_with_a_history_alone_scores_by_its_parents_score(build):
    """One model has the score 1, so its clone has 0; its history begins with 1 - a all the same."""
    process = build((40,), STILL, milestones=(1,), clone_history="complement")
    state, _ = run(process, 1, process.initialize())
    right = int(state.history[0, 0, 2])
    assert state.scores.tolist() == [[1.0, 0.0]] and state.history[0, 1].tolist() == [-1, -1, 40 - right]
    state, _ = run(process, 1, state)
    np.testing.assert_allclose(state.scores, normalized(right / 40, 0.5), err_msg="the mean of 1 - a and a")


def test_a_resumed_run_goes_on_with_each_models_rate(build, tmp_path):
    """Two devices, one a round; a model's rate falls after two rounds, so a count begun anew would show."""
    falling = dataclasses.replace(STEP, learning_rate_steps=(2,))
    settings = {"cohort_size": 1, "milestones": (3,), "clone_schedule": "anew"}
    process = build((6, 9), falling, **settings)
    kept, _ = run(process, 4, process.initialize())
    assert kept.trained_rounds.tolist() == [4, 1]
    straight, _ = run(process, 2, kept)
    Checkpoints(tmp_path / "checkpoints").save(kept, 4)
    later = build((6, 9), falling, **settings)
    round_num, state = Checkpoints(tmp_path / "checkpoints").restore(later.initialize())
    assert round_num == 4
    resumed, _ = run(later, 2, state)
    assert_same(tf.nest.flatten(resumed), tf.nest.flatten(straight))
    forgotten, _ = run(later, 2, state._replace(trained_rounds=np.zeros_like(state.trained_rounds)))
    assert any((a != b).any() for a, b in zip(forgotten.models, straight.models, strict=True))


def test_the_mean_rate_is_over_pairs_of_device_and_model(build):
    """Devices 0 and 1 train two models, 2 one; model 0 at a tenth. There is no such column without steps."""
    process = build((6, 9, 12), dataclasses.replace(STEP, learning_rate_steps=(2,)), milestones=(8,),
                    clone_schedule="anew")  # fmt: skip
    state = process.initialize()
    state = state._replace(
        is_active=np.array([[True, True], [True, True], [False, True]]), trained_rounds=np.array([2, 1], np.int32)
    )
    rates = process.describe_rates(state, np.arange(3))
    assert rates == {"learning_rate_mean": pytest.approx((2 * 0.05 + 3 * 0.5) / 5)}
    assert process.describe_rates(state, np.array([2])) == {"learning_rate_mean": pytest.approx(0.5)}
    assert np.isnan(process.describe_rates(state, np.zeros(0, int))["learning_rate_mean"])
    _, metrics = process.next(process.initialize())
    assert metrics["learning_rate_mean"] == 0.5
    plain = build((6, 9), STILL)
    assert plain.describe_rates(plain.initialize(), np.arange(2)) == {}
