"""The HAR teacher and student of FedSiKD (Table IV) for sequences (steps, channels), logits out.

The table's Conv1D and MaxPooling1D over (steps, channels) are written as Conv2D and MaxPooling2D over (1, steps,
channels), the same arithmetic, since TF-MOT quantizes only those by channel. The table's softmax is left to the loss.

Parameters. A convolution of length 3 from a to b channels has 3ab + b; each of the two halves the steps, rounded up
(561, 281, 141 and 128, 64, 32; the pooling has stride 1 and keeps them).

                    first convolution   second (256)   dense 128                    dense 6   sum
    student (561, 1)       256             49,408      141*256*128+128 = 4,620,416    774     4,670,854
    teacher (561, 1)       512             98,560                        4,620,416    774     4,720,262
    student (128, 9)     1,792             49,408       32*256*128+128 = 1,048,704    774     1,100,678
    teacher (128, 9)     3,584             98,560                        1,048,704    774     1,151,622

The dense layer of 128 outweighs the rest, so the printed student is hardly smaller than its teacher.
"""

import functools

import tensorflow as tf

from models.precision import build_logits_layer, choose_dtype
from models.stateless_dropout import StatelessDropout


def _build_sensor_cnn(input_shape: tuple[int, int], num_classes: int, first_filters: int) -> tf.keras.Sequential:
    """Sequences (batch, steps, channels) in float32 to logits (batch, num_classes)."""
    layers = tf.keras.layers
    steps, _ = input_shape
    options = {"strides": (1, 2), "padding": "same"}
    first_dtype, second_dtype = choose_dtype(steps, stride=2), choose_dtype(-(-steps // 2), stride=2)
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape),
            layers.Reshape((1, *input_shape), name="rows"),
            layers.Conv2D(first_filters, (1, 3), **options, dtype=first_dtype, name="convolution_1"),
            layers.LeakyReLU(0.2, name="leaky_relu"),
            layers.MaxPooling2D((1, 2), strides=1, padding="same", name="pooling"),
            StatelessDropout(0.25, name="dropout"),
            layers.Conv2D(256, (1, 3), **options, dtype=second_dtype, name="convolution_2"),
            layers.Flatten(name="flatten"),
            layers.Dense(128, activation="relu", name="hidden"),
            build_logits_layer(num_classes),
        ]
    )


build_sensor_student = functools.partial(_build_sensor_cnn, first_filters=64)
build_sensor_teacher = functools.partial(_build_sensor_cnn, first_filters=128)
