"""A model's last layer and what goes into it: found, put out beside the logits, and replaced."""

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format

from models.embedding import expose_embedding, find_head, split_outputs
from models.model_names import ModelError
from models.model_spec import ModelSpec
from models.precision import build_in_precision

LAYERS = tf.keras.layers
X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def build_branched():
    """Weights that are trained and others, and a layer that gets what two others put out."""
    x = LAYERS.Input((4,))
    left = LAYERS.BatchNormalization()(LAYERS.Dense(5, activation="relu", kernel_regularizer="l2")(x))
    joined = LAYERS.Concatenate()([left, LAYERS.Dense(2)(x)])
    return tf.keras.Model(x, LAYERS.Dense(3)(joined))


def build_sequential():
    return tf.keras.Sequential([LAYERS.Input((4,)), LAYERS.Dense(7, activation="relu"), LAYERS.Dense(3)])


def build_in_bfloat16():
    return build_in_precision(
        lambda: tf.keras.Sequential([LAYERS.Input((4,)), LAYERS.Dense(7), LAYERS.Dense(3, dtype="float32")]), "bfloat16"
    )


def build_linear():
    return tf.keras.Sequential([LAYERS.Input((4,)), LAYERS.Dense(3)])


def make_spec(build):
    return ModelSpec("own", build, make_format((4,)))


@pytest.mark.parametrize("build", [build_branched, build_sequential, build_in_bfloat16, build_linear])
def test_logits_and_embedding_are_those_of_the_model_and_its_weights_are_in_the_same_order(build):
    spec = make_spec(build)
    head, exposed, model = find_head(spec), expose_embedding(spec).build(), build()
    assert [weight.shape for weight in exposed.weights] == [weight.shape for weight in model.weights]
    rng = np.random.default_rng(1)
    weights = tuple(rng.uniform(0.5, 1, weight.shape).astype(np.float32) for weight in model.weights)
    exposed.set_weights(weights), model.set_weights(weights)
    logits, embedding = split_outputs(exposed(X), 3)
    assert logits.dtype == embedding.dtype == tf.float32 and embedding.shape == (6, head.width)
    np.testing.assert_allclose(logits, model(X), rtol=1e-6)
    np.testing.assert_allclose(embedding @ weights[head.kernel] + weights[head.bias], logits, rtol=1e-5)
    assert len(exposed.losses) == len(model.losses)

    kernel, bias = np.ones((head.width, 3), np.float32), np.arange(3, dtype=np.float32)
    replaced = head.replace(weights, kernel, bias)
    model.set_weights(replaced)
    np.testing.assert_allclose(model(X), embedding @ kernel + bias, rtol=1e-5)
    changed = [position for position, (a, b) in enumerate(zip(weights, replaced, strict=True)) if a is not b]
    assert changed == sorted([head.kernel, head.bias])


class Subclass(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.last = LAYERS.Dense(3)
        self.build((None, 4))

    def call(self, inputs, training=False):
        return self.last(inputs)


def build_ending(*layers):
    return tf.keras.Sequential([LAYERS.Input((4,)), *layers])


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (lambda: build_ending(LAYERS.Dense(3), LAYERS.Activation("relu")), "Activation"),
        (lambda: build_ending(LAYERS.Dense(3, activation="relu")), "Dense"),
        (lambda: build_ending(LAYERS.Dense(3, use_bias=False)), "Dense"),
        (lambda: build_ending(LAYERS.Reshape((2, 2)), LAYERS.Dense(3)), "Dense"),
        (lambda: build_ending(tf.keras.Sequential([LAYERS.Dense(3)])), "Sequential"),
        (Subclass, "a model of a class of its own"),
    ],
)
def test_models_whose_head_is_not_to_be_had_are_refused(build, found):
    with pytest.raises(ModelError, match=rf"^own: expected a last layer .*Dense\(3\) .*, found {found}"):
        find_head(make_spec(build))
