"""Logistic regression: one dense layer, logits out. On regression's numbers it is linear regression.

TensorFlow Federated's model for the tags of Stack Overflow, whose sigmoid is left to the loss. Parameters for F values
an example and C outputs: F C + C; 10,000 words and 500 tags 5,000,500; MNIST 784 * 10 + 10 = 7,850.
"""

import tensorflow as tf

from models.precision import build_logits_layer


def build_logistic_regression(input_shape: tuple[int, ...], num_outputs: int):
    """(batch, *input_shape) in float32, flattened, to logits (batch, num_outputs)."""
    flatten = [tf.keras.layers.Flatten(name="flatten")] if len(input_shape) > 1 else []
    return tf.keras.Sequential([tf.keras.Input(input_shape), *flatten, build_logits_layer(num_outputs)])
