"""Steps worked out by hand, on variables as they are."""

import numpy as np
import pytest
import tensorflow as tf

from models.model_names import ModelError
from models.on_device_training import LocalStep, StepState


def take(state, gradients, rate=0.5):
    state.take([tf.constant(gradient, tf.float32) for gradient in gradients], tf.constant(rate))


def begin(state, variable, values):
    """A round that begins with these values of the only variable, as `set_weights` has it."""
    variable.assign(values)
    state.begin_round({id(variable): tf.constant(values, tf.float32)})


@pytest.mark.parametrize(
    ("rule", "start", "gradients", "reached", "again"),
    [
        # v = 2, then 0.5 * 2 + 4 = 5; steps of half of that from 10. A round begins with v = 0, also after infinity.
        (LocalStep(momentum=0.5), 10, [2, 4, np.inf], [9, 6.5, -np.inf], 9),
        # The first step is the rate, whatever the gradient. Then a = 0.9 * 0.4 + 0.1 * -2 = 0.16 and
        # p = 0.999 * 0.016 + 0.001 * 4 = 0.019984, so 0.5 * sqrt(1 - 0.999^2) / (1 - 0.9^2) * a / sqrt(p) = 0.1331696.
        (LocalStep("adam"), 1, [4, -2], [0.5, 0.5 - 0.1331696], 0.5),
    ],
    ids=["momentum", "adam"],
)
def test_steps_by_hand(rule, start, gradients, reached, again):
    """At a rate of 1/2; the first gradient gives `again` where a new round begins."""
    weight = tf.Variable([float(start)])
    state = StepState(rule, [weight])
    for gradient, expected in zip(gradients, reached, strict=True):
        take(state, [[gradient]])
        np.testing.assert_allclose(weight, [expected], rtol=1e-4)
    begin(state, weight, [float(start)])
    take(state, [[gradients[0]]])
    np.testing.assert_allclose(weight, [again], rtol=1e-5)


def test_the_pull_goes_to_where_the_round_began():
    """Without a gradient a weight moves by rate * pull = 1/4 of the way back: from 8 + 4 to 11, then to 10.25."""
    weight = tf.Variable([8.0])
    state = StepState(LocalStep(proximal_weight=0.5), [weight])
    for first, reached in ((8.0, [11, 10.25]), (4.0, [7, 6.25])):
        begin(state, weight, [first])
        weight.assign([first + 4])
        for expected in reached:
            take(state, [[0]])
            assert weight.numpy() == expected


def test_kernels_decay_and_constraints_hold():
    """A kernel of 2 loses 0.5 * 0.5 * 2, a bias nothing; what would be below 0 is brought back."""
    kernel, bias = tf.Variable([[2.0]]), tf.Variable([2.0])
    held = tf.Variable([[2.0]], constraint=tf.keras.constraints.NonNeg())
    state = StepState(LocalStep(weight_decay=0.5), [kernel, bias, held])
    take(state, [[[0]], [0], [[9]]])
    assert (float(kernel), float(bias), float(held)) == (1.5, 2, 0)


def test_there_is_no_more_state_than_the_step_needs():
    trained = [tf.Variable([1.0]), tf.Variable([2.0])]
    names = [
        sorted(StepState(LocalStep(*rule), trained).variables)
        for rule in (("sgd",), ("sgd", 0.0, 0.1), ("sgd", 0.9), ("adam", 0.0, 0.0, 0.1))
    ]
    averages = ["accumulator_0", "accumulator_1"]
    adam = [*averages, "anchor_0", "anchor_1", "preconditioner_0", "preconditioner_1", "step_0"]
    assert names == [[], [], [*averages, "step_0"], adam]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (("yogi",), "local optimizer yogi: expected one of sgd, adam"),
        (("adam", 0.9), "momentum=0.9: expected 0 with adam, which has no such setting"),
    ],
)
def test_unknown_steps(rule, message):
    with pytest.raises(ModelError, match=f"^{message}$"):
        StepState(LocalStep(*rule), [])
