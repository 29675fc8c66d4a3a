"""Compiled training is that of TensorFlow's operations, but for rounding: each example counts once, padding never."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format
from small_runs import assert_close

from models.model_spec import ModelSpec
from models.task import build_task
from tff_algos.client.local_training import train_locally
from tff_algos.client.training_steps import CHUNK_STEPS
from tff_algos.settings.local_training import LocalTrainingConfig

LAYERS = tf.keras.layers


def build_dense():
    return tf.keras.Sequential([tf.keras.Input((3,)), LAYERS.Dense(5, activation="tanh"), LAYERS.Dense(4)])


def build_tagger():
    """Two tokens in, logits of two further ones out."""
    return tf.keras.Sequential([tf.keras.Input((2,), dtype="int32"), LAYERS.Embedding(5, 4), LAYERS.Dense(5)])


DENSE = ModelSpec("dense", build_dense, make_format((3,), "float32", 4))
TAGGER = ModelSpec(
    "tagger", build_tagger, make_format((2,), "int32", 5, takes_tokens=True), task=build_task("next_token", 5, (2,))
)
RNG = np.random.default_rng(3)
START = {
    spec.name: tuple(RNG.normal(size=shape).astype(np.float32) for shape in spec.weight_shapes)
    for spec in (DENSE, TAGGER)
}


def draw(spec, num_examples):
    if spec is TAGGER:  # 0 is padding
        return RNG.integers(0, 5, (2, num_examples, 2)).astype(np.int32)
    return RNG.normal(size=(num_examples, 3)).astype(np.float32), RNG.integers(0, 4, num_examples).astype(np.int32)


@functools.cache
def trace(spec, config, with_options):
    """Training in a plain graph, as in a TFF computation, compiled and not, as a function of examples and steps."""
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(spec.format.input_dtype, (None, *spec.format.input_shape))
        y = tf.compat.v1.placeholder(tf.int32, (None, *spec.task.label_shape))
        num_steps = tf.compat.v1.placeholder(tf.int32, ())
        start = tuple(map(tf.constant, START[spec.name]))
        options = {}
        if with_options:
            options = {
                "anchor": tuple(value + 1 for value in start),
                "correction": tuple(0.1 * tf.ones_like(value) for value in start),
                "chosen": [place > 0 for place in range(len(start))],
                "targets": tf.cast(y, tf.float32) + 1,
                "loss_fn": lambda batch: batch.targets * spec.task.compute_losses(batch.labels, batch.logits),
            }
        # All four in one graph, since building the session takes longest.
        results = [
            train_locally(each, config, start, x, y, tf.constant([7, 8]), tf.constant(0.05), num_steps=steps, **options)
            for each in (spec, dataclasses.replace(spec, compiled=True))
            for steps in (None, num_steps)
        ]
        session = tf.compat.v1.Session()
        session.run(tf.compat.v1.global_variables_initializer())
    return session.make_callable([results[:2], results[2:]], [x, y, num_steps])


def assert_same(given, expected):
    np.testing.assert_allclose(given.num_trained, expected.num_trained)
    np.testing.assert_allclose(given.loss_sum, expected.loss_sum, rtol=2e-5)
    assert_close(given.weights_delta, expected.weights_delta, rtol=2e-4, atol=2e-5)
    assert given.is_finite and expected.is_finite


SGD = LocalTrainingConfig(epochs=3, batch_size=4, optimizer="sgd", momentum=0.5, weight_decay=0.01)


@pytest.mark.parametrize(
    ("spec", "config", "with_options"),
    [
        pytest.param(DENSE, SGD, False, id="dense"),
        pytest.param(DENSE, dataclasses.replace(SGD, proximal_weight=0.3), True, id="all options"),
        pytest.param(TAGGER, SGD, False, id="tokens with padding"),
    ],
)
def test_the_same_as_without_compilation(spec, config, with_options):
    """Of 7 examples in batches of 4, the last batch lacks one; 3 epochs have 6 steps, more than the smallest chunk."""
    run = trace(spec, config, with_options)
    for num_examples, num_steps in ((7, 5), (3, 1), (8, 2 * CHUNK_STEPS[1] + 1)):
        plain, compiled = run(*draw(spec, num_examples), num_steps)
        for given, expected in zip(compiled, plain, strict=True):
            assert_same(given, expected)


def test_nobodys_examples_change_nothing():
    for results in trace(DENSE, SGD, False)(*draw(DENSE, 0), 3):
        for result in results:
            assert float(result.num_trained) == float(result.loss_sum) == 0 and result.is_finite
            assert not any(delta.any() for delta in result.weights_delta)


def test_the_same_bytes_again_and_an_example_that_is_not_finite_is_rejected():
    run, (x, y) = trace(DENSE, SGD, False), draw(DENSE, 7)
    first, second = ([delta.tobytes() for delta in run(x, y, 9)[1][1].weights_delta] for _ in range(2))
    assert first == second
    x[4] = np.inf
    assert not run(x, y, 2)[1][0].is_finite
