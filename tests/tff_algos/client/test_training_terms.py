"""Losses and constraints of a model's own in local training: by hand, and as Keras trains with them."""

import numpy as np
import pytest
import tensorflow as tf

from models.model_spec import ModelSpec
from models.training_terms import find_training_terms
from tff_algos.client import joined_optimizer, local_training
from tff_algos.client.local_training import train_locally
from tff_algos.settings.local_training import LocalTrainingConfig

LAYERS, KERAS = tf.keras.layers, tf.keras


class Mean(LAYERS.Layer):
    """Adds the mean of what it gets to the loss."""

    def call(self, x):
        self.add_loss(tf.reduce_mean(x))
        return x


class Subclassed(KERAS.Model):
    def __init__(self):
        super().__init__()
        self.dense = LAYERS.Dense(1, use_bias=False)

    def call(self, x):
        logit = self.dense(x)
        self.add_loss(tf.reduce_mean(logit))
        return tf.concat([logit, tf.zeros_like(logit)], 1)


def build_scalar(*after, add=None, **options):
    """Two logits (a x, 0), a the only weight."""
    x = KERAS.Input((1,))
    dense = LAYERS.Dense(1, use_bias=False, **options)
    logit = dense(x)
    for layer in after:
        logit = layer(logit)
    model = KERAS.Model(x, LAYERS.Concatenate()([logit, tf.zeros_like(logit)]))
    if add is not None:
        model.add_loss(add(dense, logit))
    return model


def build_nested():
    inner = KERAS.Sequential([KERAS.Input((1,)), LAYERS.Dense(1, use_bias=False, kernel_regularizer=half_square())])
    x = KERAS.Input((1,))
    return KERAS.Model(x, LAYERS.Concatenate()([inner(x), tf.zeros_like(x)]))


def build_shared():
    """The layer is used twice, and its regularizer counts once."""
    x = KERAS.Input((1,))
    dense = LAYERS.Dense(1, use_bias=False, kernel_regularizer=half_square())
    return KERAS.Model(x, LAYERS.Concatenate()([dense(x), dense(tf.zeros_like(x))]))


def build_subclassed():
    model = Subclassed()
    model(tf.zeros((1, 1)))  # `build` cannot call what calls `add_loss`
    return model


def half_square():
    return KERAS.regularizers.L2(0.5)


# Each with its own loss, and that loss's gradient, at a = 1 for the examples x = 2 and 1.
TERMS = {
    "regularizer": (lambda: build_scalar(kernel_regularizer=half_square()), 0.5, 1.0),
    "nested": (build_nested, 0.5, 1.0),
    "shared": (build_shared, 0.5, 1.0),
    "l1": (lambda: build_scalar(kernel_regularizer=KERAS.regularizers.L1(0.3)), 0.3, 0.3),
    "function": (lambda: build_scalar(kernel_regularizer=lambda kernel: 3 * tf.reduce_sum(kernel)), 3.0, 3.0),
    # (2^2 + 1^2) / 2 over the two examples
    "activity": (lambda: build_scalar(activity_regularizer=half_square()), 1.25, 2.5),
    "activity layer": (lambda: build_scalar(LAYERS.ActivityRegularization(l2=0.5)), 1.25, 2.5),
    "add_loss of a layer": (lambda: build_scalar(Mean()), 1.5, 1.5),
    "add_loss of two layers": (lambda: build_scalar(Mean(), Mean()), 3.0, 3.0),
    "add_loss of a model": (lambda: build_scalar(add=lambda dense, logit: tf.reduce_mean(logit)), 1.5, 1.5),
    "add_loss of a function": (
        lambda: build_scalar(add=lambda dense, _: lambda: tf.reduce_sum(dense.kernel)),
        1.0,
        1.0,
    ),
    "add_loss of a subclass": (build_subclassed, 1.5, 1.5),
}


def square_loss(batch):
    return tf.reduce_mean(tf.square(batch.logits[:, 0] - tf.cast(batch.labels, tf.float32)) / 2)


def train(build, weights, x, y, epochs=1, shape=(1,), rate=0.1, **options):
    spec = ModelSpec("own", build, shape, "float32", 2)
    config = LocalTrainingConfig(epochs=epochs, optimizer="sgd", batch_size=len(y))
    x, y = tf.constant(x, tf.float32), tf.constant(y, tf.int32)
    weights = tuple(map(tf.constant, weights))
    return train_locally(spec, config, weights, x, y, tf.constant([1, 2]), tf.constant(rate), **options)


def train_scalar(build, **options):
    """From a = 1 on (x, y) = (2, 0), (1, 3), where the mean of (a x - y)^2 / 2 is 2, and its gradient 1."""
    return train(build, [np.ones((1, 1), np.float32)], [[2.0], [1.0]], [0, 3], loss_fn=square_loss, **options)


@pytest.mark.parametrize("term", TERMS)
def test_a_models_own_losses_are_trained_and_reported_by_hand(term):
    build, loss, gradient = TERMS[term]
    result = train_scalar(build)
    np.testing.assert_allclose(result.weights_delta[0], [[-0.1 * (1 + gradient)]], rtol=1e-5)
    np.testing.assert_allclose(result.loss_sum, 2 * (2 + loss), rtol=1e-6)


def test_a_constraint_is_applied_after_each_step_and_the_next_step_begins_there():
    """Halved: 1 - 0.1 = 0.9 -> 0.45; its gradient is (5 a - 3) / 2 = -0.375: 0.4875 -> 0.24375."""
    result = train_scalar(lambda: build_scalar(kernel_constraint=lambda kernel: kernel / 2), epochs=2)
    np.testing.assert_allclose(result.weights_delta[0], [[0.24375 - 1]], rtol=1e-6)


CONSTRAINED = {
    "NonNeg": lambda: [LAYERS.Dense(2, kernel_constraint="non_neg", bias_constraint="non_neg")],
    "MaxNorm": lambda: [LAYERS.Dense(2, kernel_constraint=KERAS.constraints.MaxNorm(0.3))],
    "UnitNorm": lambda: [LAYERS.Dense(3, kernel_constraint="unit_norm"), LAYERS.Dense(2)],
    "depthwise": lambda: [
        LAYERS.Reshape((2, 2, 1)),
        LAYERS.DepthwiseConv2D(2, depthwise_constraint=KERAS.constraints.MinMaxNorm(0.2, 0.4)),
        LAYERS.Flatten(),
        LAYERS.Dense(2),
    ],
    "with a regularizer": lambda: [
        LAYERS.Dense(4, kernel_regularizer=KERAS.regularizers.OrthogonalRegularizer(0.1)),
        LAYERS.BatchNormalization(gamma_regularizer="l2", beta_constraint="non_neg"),
        LAYERS.Dense(2, bias_regularizer="l1", activity_regularizer="l2"),
    ],
    "frozen": lambda: [LAYERS.Dense(3, trainable=False, kernel_constraint="unit_norm"), LAYERS.Dense(2)],
}


@pytest.mark.parametrize("layers", CONSTRAINED)
def test_local_training_equals_keras(layers):
    def build():
        return KERAS.Sequential([KERAS.Input((4,)), *CONSTRAINED[layers]()])

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 4)).astype(np.float32), rng.integers(0, 2, 8)
    KERAS.utils.set_random_seed(1)
    model = build()
    start = model.get_weights()
    model.compile(KERAS.optimizers.SGD(0.5), KERAS.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0)
    result = train(build, start, x, y, epochs=3, shape=(4,), rate=0.5)
    for begin, delta, end in zip(start, result.weights_delta, model.get_weights(), strict=True):
        np.testing.assert_allclose(begin + delta, end, rtol=1e-4, atol=1e-5)


def test_a_model_without_any_is_trained_by_the_same_graph(monkeypatch):
    def trace():
        KERAS.backend.clear_session()
        graph = tf.Graph()
        with graph.as_default():
            train_scalar(build_scalar)
        functions = graph.as_graph_def().library.function
        return [(node.op, tuple(node.input)) for function in functions for node in function.node_def]

    before = trace()
    monkeypatch.setattr(local_training, "add_own_losses", lambda loss, model: loss)
    monkeypatch.setattr(joined_optimizer, "has_constraints", lambda variables: False)
    assert sorted(op for op, _ in before) == sorted(op for op, _ in trace()) and before


@pytest.mark.parametrize("term", TERMS)
def test_what_a_model_asks_for_is_found(term):
    assert find_training_terms(TERMS[term][0](), (1,)) == ("losses of its own",)


def test_constraints_are_found_and_plain_models_have_neither():
    assert find_training_terms(build_scalar(kernel_constraint="non_neg"), (1,)) == ("constraints",)
    assert find_training_terms(build_scalar(LAYERS.ReLU()), (1,)) == ()
