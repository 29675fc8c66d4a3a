"""Losses and constraints of a model's own in local training, by hand."""

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format
from traced_training import train

from models.model_spec import ModelSpec
from models.quantization import build_quantized_spec
from models.training_terms import find_training_terms
from tff_algos.client import joined_optimizer, training_steps
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
    return tf.square(batch.logits[:, 0] - tf.cast(batch.labels, tf.float32)) / 2


def train_own(build, weights, x, y, epochs=1, shape=(1,), **options):
    """In a plain graph, where Keras keeps losses in another way than in eager mode."""
    config = LocalTrainingConfig(epochs=epochs, optimizer="sgd", batch_size=len(y))
    return train(ModelSpec("own", build, make_format(shape, "float32", 2)), config, weights, x, y, **options)


def train_scalar(build, **options):
    """From a = 1 on (x, y) = (2, 0), (1, 3), where the mean of (a x - y)^2 / 2 is 2, and its gradient 1."""
    return train_own(build, [np.ones((1, 1), np.float32)], [[2.0], [1.0]], [0, 3], loss_fn=square_loss, **options)


# The others are found, see the last test here, and then trained by the same code.
ONLY_SLOW = ("nested", "function", "activity layer", "add_loss of two layers", "add_loss of a function")


@pytest.mark.parametrize("term", [pytest.param(term, marks=[pytest.mark.slow] * (term in ONLY_SLOW)) for term in TERMS])
def test_a_models_own_losses_are_trained_and_reported_by_hand(term):
    build, loss, gradient = TERMS[term]
    result = train_scalar(build)
    np.testing.assert_allclose(result.weights_delta[0], [[-0.1 * (1 + gradient)]], rtol=1e-5)
    np.testing.assert_allclose(result.loss_sum, 2 * (2 + loss), rtol=1e-6)


def test_a_constraint_is_applied_after_each_step_and_the_next_step_begins_there():
    """Halved: 1 - 0.1 = 0.9 -> 0.45; its gradient is (5 a - 3) / 2 = -0.375: 0.4875 -> 0.24375."""
    result = train_scalar(lambda: build_scalar(kernel_constraint=lambda kernel: kernel / 2), epochs=2)
    np.testing.assert_allclose(result.weights_delta[0], [[0.24375 - 1]], rtol=1e-6)


CONSTRAINTS = {
    "NonNeg": KERAS.constraints.NonNeg,
    "MaxNorm": lambda: KERAS.constraints.MaxNorm(0.3),
    "UnitNorm": KERAS.constraints.UnitNorm,
}


@pytest.mark.parametrize(
    "constraint", ["MaxNorm", *(pytest.param(name, marks=pytest.mark.slow) for name in ("NonNeg", "UnitNorm"))]
)
def test_three_steps_of_a_regularized_and_constrained_regression(constraint):
    """w <- constraint(w - 0.5 (X^T (p - y) / n + 2 * 0.1 w)), in NumPy; the bias is free."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 4)).astype(np.float32), rng.integers(0, 2, 8)
    start = [rng.normal(size=(4, 2)).astype(np.float32), np.zeros(2, np.float32)]

    def build():
        options = {"kernel_regularizer": KERAS.regularizers.L2(0.1), "kernel_constraint": CONSTRAINTS[constraint]()}
        return KERAS.Sequential([KERAS.Input((4,)), LAYERS.Dense(2, **options)])

    kernel, bias = start
    for _ in range(3):
        scores = np.exp(x @ kernel + bias)
        error = (scores / scores.sum(axis=1, keepdims=True) - np.eye(2)[y]) / 8
        stepped = kernel - 0.5 * (x.T @ error + 0.2 * kernel)
        kernel, bias = (
            CONSTRAINTS[constraint]()(tf.constant(stepped, tf.float32)).numpy(),
            bias - 0.5 * error.sum(axis=0),
        )
    result = train_own(build, start, x, y, epochs=3, shape=(4,), rate=0.5)
    np.testing.assert_allclose(start[0] + result.weights_delta[0], kernel, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(start[1] + result.weights_delta[1], bias, rtol=1e-4, atol=1e-6)


def test_a_frozen_layer_stays_and_its_constraint_does_nothing():
    def build():
        frozen = LAYERS.Dense(1, trainable=False, kernel_constraint="non_neg")
        return KERAS.Sequential([KERAS.Input((1,)), frozen, LAYERS.Dense(2)])

    start = [np.array(array, np.float32) for array in ([[-1.0]], [0.5], [[1.0, -1.0]], [0.0, 0.0])]
    kernel, bias, *trained = train_own(build, start, [[2.0], [1.0]], [0, 1]).weights_delta
    assert not kernel.any() and not bias.any() and all(delta.any() for delta in trained)


def test_what_is_frozen_stays_in_quantization_aware_training():
    """Kernel, bias, and a BatchNorm's scale, offset and statistics; the ranges of what is rounded do follow."""

    def build():
        frozen = [LAYERS.Conv2D(2, 1, name="a", trainable=False), LAYERS.BatchNormalization(name="b", trainable=False)]
        return KERAS.Sequential([KERAS.Input((2, 2, 1)), *frozen, LAYERS.Flatten(), LAYERS.Dense(2, name="head")])

    spec = build_quantized_spec(ModelSpec("own", build, make_format((2, 2, 1))))
    model = spec.build()
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2, 1)
    result = train_own(spec.build, model.get_weights(), x, [0, 1], shape=(2, 2, 1))
    floats = [weight.name.split(":")[0] for weight in model.weights if weight.dtype.is_floating]
    moved = {name for name, delta in zip(floats, result.weights_delta, strict=True) if delta.any()}
    assert {name for name in moved if not name.startswith("quant")} == {"head/kernel", "head/bias"}
    assert {"quant_a/kernel_min", "quant_a/kernel_max"} <= moved


def test_a_model_without_any_is_trained_by_the_same_graph(monkeypatch):
    def trace():
        with tf.Graph().as_default() as graph:
            spec = ModelSpec("own", build_scalar, make_format((1,), "float32", 2))
            seed, weights = tf.constant([1, 2]), (tf.ones((1, 1)),)
            train_locally(
                spec, LocalTrainingConfig(), weights, tf.ones((2, 1)), tf.zeros(2, tf.int32), seed, tf.constant(0.1)
            )
        return sorted(node.op for function in graph.as_graph_def().library.function for node in function.node_def)

    before = trace()
    # As if the code for own losses and constraints were not there.
    monkeypatch.setattr(training_steps, "add_own_losses", lambda loss, model: loss)
    monkeypatch.setattr(joined_optimizer, "has_constraints", lambda variables: False)
    assert before == trace() and before


def test_own_losses_and_constraints_are_found_and_plain_models_have_neither():
    found = {term: find_training_terms(build(), (1,)) for term, (build, *_) in TERMS.items()}
    assert found == dict.fromkeys(TERMS, ("losses of its own",))
    assert find_training_terms(build_scalar(kernel_constraint="non_neg"), (1,)) == ("constraints",)
    assert find_training_terms(build_scalar(LAYERS.ReLU()), (1,)) == ()
