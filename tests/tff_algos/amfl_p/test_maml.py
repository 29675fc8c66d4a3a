"""Meta-gradients against finite differences and hand-worked numbers, and the weights of devices by hand."""

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf
from small_runs import assert_same, flatten

from tff_algos.amfl_p.maml import (
    Batch,
    adapt,
    build_predict,
    compute_loss,
    compute_meta_gradient,
    compute_reptile_gradient,
)
from tff_algos.amfl_p.process import compute_unnormalized_weight
from tff_algos.settings.config_fields import ConfigError

RATE = tf.constant(0.5, tf.float64)


def predict_small(weights, x):
    """A network of two layers in float64."""
    first, second = weights
    return tf.tanh(x @ first) @ second


@pytest.fixture
def task():
    """(weights, support, query) of the small network: 3 features, 4 hidden units, 2 classes."""
    rng = np.random.default_rng(3)
    weights = tuple(tf.constant(rng.normal(size=shape)) for shape in ((3, 4), (4, 2)))
    support, query = (
        Batch(tf.constant(rng.normal(size=(size, 3))), tf.constant(rng.integers(0, 2, size), tf.int32))
        for size in (5, 7)
    )
    return weights, support, query


def compute_adapted_loss(weights, support, query, num_steps):
    adapted = adapt(predict_small, weights, support, num_steps, RATE, first_order=False)
    return compute_loss(predict_small, adapted, query)


def differentiate(weights, support, query, num_steps, step=1e-5):
    """The gradient of the loss after adaptation by central differences."""
    compute = tf.function(lambda *changed: compute_adapted_loss(changed, support, query, num_steps))
    gradients = []
    for position, weight in enumerate(weights):
        gradient = np.zeros(weight.shape)
        for index in np.ndindex(*weight.shape):
            losses = []
            for sign in (1, -1):
                moved = weight.numpy()
                moved[index] += sign * step
                changed = [*weights[:position], tf.constant(moved), *weights[position + 1 :]]
                losses.append(float(compute(*changed)))
            gradient[index] = (losses[0] - losses[1]) / (2 * step)
        gradients.append(gradient)
    return gradients


@pytest.mark.parametrize("num_steps", [0, 1, 3])
def test_the_second_order_gradient_is_that_of_the_loss_after_adaptation(task, num_steps):
    expected = flatten(differentiate(*task, num_steps))
    meta = compute_meta_gradient(predict_small, *task, num_steps, RATE, first_order=False)
    assert np.linalg.norm(flatten(meta.gradient) - expected) <= 1e-6 * np.linalg.norm(expected)
    assert float(meta.query_loss) == pytest.approx(float(compute_adapted_loss(*task, num_steps)))


def test_the_first_order_gradient_is_the_plain_one_at_the_adapted_weights(task):
    weights, support, query = task
    meta = compute_meta_gradient(predict_small, weights, support, query, 3, RATE, first_order=True)
    plain = compute_meta_gradient(predict_small, meta.adapted, support, query, 0, RATE, first_order=False)
    np.testing.assert_allclose(flatten(meta.gradient), flatten(plain.gradient), rtol=1e-12)
    second = compute_meta_gradient(predict_small, weights, support, query, 3, RATE, first_order=False)
    difference = np.linalg.norm(flatten(meta.gradient) - flatten(second.gradient))
    assert difference > 0.05 * np.linalg.norm(flatten(second.gradient))


def test_without_inner_steps_both_are_the_plain_gradient(task):
    weights, _, query = task
    with tf.GradientTape() as tape:
        tape.watch(weights)
        loss = compute_loss(predict_small, weights, query)
    expected = flatten(tape.gradient(loss, weights))
    for first_order in (False, True):
        meta = compute_meta_gradient(predict_small, *task, 0, RATE, first_order)
        np.testing.assert_allclose(flatten(meta.gradient), expected, rtol=1e-12)


def test_reptile_points_back_along_the_inner_steps(task):
    weights, support, query = task
    meta = compute_reptile_gradient(predict_small, weights, support, query, 2, RATE)
    walked = flatten(weights) - 0.5 * flatten(meta.gradient)
    np.testing.assert_allclose(walked, flatten(meta.adapted), rtol=1e-12)


def test_loss_by_hand():
    """Logits (0, ln 3) have probabilities (1/4, 3/4): the losses of labels 1 and 0 are ln 4/3 and ln 4."""
    logits = tf.math.log([[1.0, 3.0], [1.0, 3.0]])
    batch = Batch(logits, tf.constant([1, 0]))
    loss = compute_loss(lambda weights, x: x, (), batch)
    assert float(loss) == pytest.approx((np.log(4 / 3) + np.log(4)) / 2)
    assert float(compute_loss(lambda weights, x: x, (), Batch(logits[:0], tf.zeros(0, tf.int32)))) == 0


class SecondMadeFirst(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.second, self.first = tf.keras.layers.Dense(3), tf.keras.layers.Dense(4)

    def call(self, x, training=None):
        return self.second(self.first(x))


class Assigning(tf.keras.layers.Dense):
    def call(self, x):
        self.kernel.assign(0.9 * self.kernel)
        return super().call(x)


def build_one_layer():
    return tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3)])


def build_shared():
    x, dense = tf.keras.Input((4,)), tf.keras.layers.Dense(4)
    return tf.keras.Model(x, tf.keras.layers.Dense(3)(dense(dense(x))))


def build_second_made_first():
    model = SecondMadeFirst()
    model(tf.zeros((1, 4)))
    return model


def build_with_operations(with_constants=True):
    """Branches of equal shapes, where `model.weights` goes by depth and the weights were made branch by branch.

    And TensorFlow's functions with constants of their own beside the layers.
    """
    x = tf.keras.Input((4,))
    ends = [tf.keras.layers.Dense(4)(tf.keras.layers.Dense(4)(x)) for _ in range(2)]
    ends += [tf.cumsum(x, axis=1)[:, 1:3] * 2.0] if with_constants else []
    return tf.keras.Model(x, tf.keras.layers.Dense(3)(tf.concat(ends, axis=1)))


def build_branches():
    return build_with_operations(with_constants=False)


def build_around_operations():
    x = tf.keras.Input((4,))
    return tf.keras.Model(x, tf.keras.layers.Dense(3)(build_with_operations()(x)))


@pytest.mark.parametrize(
    "build",
    [
        build_one_layer,
        build_branches,
        build_shared,
        build_second_made_first,
        build_with_operations,
        build_around_operations,
    ],
)
def test_weights_find_their_layers_whatever_order_they_were_made_in(linear_spec, build):
    model = build()
    weights = [np.random.default_rng(1).normal(size=weight.shape).astype(np.float32) for weight in model.weights]
    model.set_weights(weights)
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    expected = model(x).numpy()
    predict = build_predict(dataclasses.replace(linear_spec, build=build))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        logits = session.run(predict(tuple(map(tf.constant, weights)), tf.constant(x)))
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)


def test_a_model_that_needs_variables_is_one_line(linear_spec):
    def build():
        return tf.keras.Sequential([tf.keras.Input((4,)), Assigning(3)])

    with pytest.raises(
        ConfigError, match=r"called with tensors as weights, which fails with .*has no attribute .assign"
    ):
        build_predict(dataclasses.replace(linear_spec, build=build))


@pytest.mark.parametrize("first_order", [True, False])
def test_a_model_that_cannot_compute_nothing_gets_no_empty_batch(task, first_order):
    """As convolutions of an empty place in the cohort; its loss and its gradients are 0, and others stay the same."""

    def predict(weights, x):
        tf.debugging.assert_positive(tf.shape(x)[0])
        return predict_small(weights, x)

    weights, support, query = task
    nothing = Batch(support.x[:0], support.y[:0])
    empty = compute_meta_gradient(predict, weights, nothing, nothing, 2, RATE, first_order)
    assert float(empty.query_loss) == 0 and not np.any(flatten(empty.gradient))
    assert_same(empty.adapted, weights)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(query.y, predict_small(weights, query.x))
    assert float(compute_loss(predict, weights, query)) == pytest.approx(float(tf.reduce_mean(losses)), rel=1e-12)


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [("adaptive", 1 / 8), ("quality", 1 / 2), ("resource", 1 / 4), ("examples", 40.0), ("equal", 1.0)],
)
def test_weights_by_hand(weighting, expected):
    """A device with Q = exp(-log 2) = 1/2, R = 1/4 and 40 examples."""
    given = map(tf.constant, (math.log(2), 0.25, 40.0))
    assert float(compute_unnormalized_weight(weighting, *given)) == pytest.approx(expected)
