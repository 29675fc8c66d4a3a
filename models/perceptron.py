"""Fully connected networks for flat features, logits out; other shapes are flattened first.

Parameters for F features and C classes with two hidden layers of width H: (F + 1) H + (H + 1) H + (H + 1) C. For
F = 20, C = 3: student (H = 64) 1,344 + 4,160 + 195 = 5,699, teacher (H = 256) 5,376 + 65,792 + 771 = 71,939. McMahan's
2NN (H = 200) for MNIST, F = 784, C = 10: 157,000 + 40,200 + 2,010 = 199,210. With one hidden layer, as IFCA's for
rotated MNIST: 157,000 + 2,010 = 159,010.
"""

import functools

import tensorflow as tf

from models.precision import build_logits_layer


def _build_perceptron(input_shape: tuple[int, ...], num_classes: int, widths: tuple[int, ...]) -> tf.keras.Sequential:
    """Hidden layers of these widths with ReLU: (batch, *input_shape) in float32 to logits (batch, num_classes)."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape),
            *([layers.Flatten(name="flatten")] if len(input_shape) > 1 else []),
            *(layers.Dense(width, activation="relu", name=f"hidden_{i}") for i, width in enumerate(widths, start=1)),
            build_logits_layer(num_classes),
        ]
    )


build_perceptron = functools.partial(_build_perceptron, widths=(64, 64))  # the student
build_perceptron_teacher = functools.partial(_build_perceptron, widths=(256, 256))
build_perceptron_2nn = functools.partial(_build_perceptron, widths=(200, 200))  # the "2NN" of McMahan et al. 2017
build_perceptron_1nn = functools.partial(_build_perceptron, widths=(200,))  # of Ghosh et al. 2020 for rotated MNIST


# Logistic regression: one dense layer, logits out. On regression's numbers it is linear regression.
#
# TensorFlow Federated's model for the tags of Stack Overflow, whose sigmoid is left to the loss. Parameters for F
# values an example and C outputs: F C + C; 10,000 words and 500 tags 5,000,500; MNIST 784 * 10 + 10 = 7,850.


build_logistic_regression = functools.partial(_build_perceptron, widths=())
