"""The image teacher and student of FedSiKD (Table III): four strided convolutions and one dense layer, logits out.

As printed, the convolutions have no activation, so that the whole network is a linear function of the image;
`activation="relu"` fixes that. The table's softmax is left to the loss.

Parameters. A 3x3 convolution from a to b channels has 9ab + b; its stride 2 with padding "same" halves a side, rounded
up: 28, 14, 7, 4, 2 for MNIST and 8, 4, 2, 1, 1 for digits, so that 2 * 2 * 64 = 256 or 64 values reach the dense layer.

    student  1 -> 32 -> 16 -> 16 -> 64       320 + 4,624 + 2,320 + 9,280    = 16,544
    teacher  1 -> 32 -> 64 -> 64 -> 64       320 + 18,496 + 36,928 + 36,928 = 92,672
    dense    256 -> 10: 2,570                64 -> 10: 650
    sum      MNIST 19,114 and 95,242         digits 17,194 and 93,322
"""

import functools

import tensorflow as tf

from models.precision import build_logits_layer, choose_dtype


def _build_image_cnn(
    input_shape: tuple[int, int, int], num_classes: int, activation: str = "linear", *, filters: tuple[int, ...]
) -> tf.keras.Sequential:
    """Images (batch, height, width, channels) in float32 to logits (batch, num_classes)."""
    layers = tf.keras.layers
    options = {"strides": 2, "padding": "same", "activation": activation}
    convolutions = []
    side = input_shape[1]
    for i, number in enumerate(filters, start=1):
        dtype = choose_dtype(side, stride=2)
        convolutions.append(layers.Conv2D(number, 3, **options, dtype=dtype, name=f"convolution_{i}"))
        side = -(-side // 2)
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape),
            *convolutions,
            layers.Flatten(name="flatten"),
            build_logits_layer(num_classes),
        ]
    )


build_image_student = functools.partial(_build_image_cnn, filters=(32, 16, 16, 64))
build_image_teacher = functools.partial(_build_image_cnn, filters=(32, 64, 64, 64))
