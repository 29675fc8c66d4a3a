"""What a model predicts in a client's work: as Keras has it, in float32."""

import numpy as np
import tensorflow as tf
from small_formats import make_spec

from tff_algos.client.local_training import predict_logits


def test_predicted_logits_equal_the_model_in_batches(linear_spec):
    model = linear_spec.build()
    x = np.random.default_rng(0).normal(size=(1203, 4)).astype(np.float32)
    weights = tuple(tf.constant(w.numpy()) for w in model.weights)
    logits = predict_logits(linear_spec, weights, tf.constant(x))
    np.testing.assert_allclose(logits, model(x), rtol=1e-5, atol=1e-5)
    assert predict_logits(linear_spec, weights, tf.constant(x[:0])).shape == (0, 3)


def test_predicted_logits_of_a_bfloat16_model_are_float32():
    spec = make_spec("perceptron", (4,), precision="bfloat16")
    weights = tuple(tf.constant(weight) for weight in spec.build().get_weights())
    assert predict_logits(spec, weights, tf.ones((5, 4))).dtype == tf.float32
