"""Three convolutional networks of the federated literature for small images, logits out.

`emnist_cnn` is that of Reddi et al. 2021 ("Adaptive Federated Optimization") for EMNIST, TensorFlow Federated's
`create_conv_dropout_model`: two 3x3 convolutions without padding, pooling, dropout. `fedavg_cnn` is that of McMahan et
al. 2017, TensorFlow Federated's `create_original_fedavg_cnn_model`: two 5x5 convolutions, each with pooling. Their
softmax is left to the loss, and dropout draws its masks from the seeds of the run. `lenet` is the benchmark network of
Li et al. 2022 ("Federated Learning on Non-IID Data Silos", section V), after LeCun et al. 1998: two 5x5 convolutions of
6 and 16 filters without padding, each with pooling, dense layers of 120 and 84.

Parameters. A kxk convolution from a to b channels has kkab + b. For 28x28x1 and 10 or 62 classes:

                 convolutions       dense layer                            logits             sum
    emnist_cnn   320 + 18,496       12 * 12 * 64 * 128 + 128 = 1,179,776   1,290 or 7,998     1,199,882 or 1,206,590
    fedavg_cnn   832 + 51,264       7 * 7 * 64 * 512 + 512 = 1,606,144     5,130 or 31,806    1,663,370 or 1,690,046
    lenet        156 + 2,416        4 * 4 * 16 * 120 + 120 = 30,840 and 10,164     850 or 5,270    44,426 or 48,846
"""

import functools
from collections.abc import Mapping

import tensorflow as tf

from models.precision import build_logits_layer
from models.stateless_dropout import StatelessDropout

SMALLEST_EMNIST_SIDE = 6  # two convolutions take 4 pixels of each side, and the pooling needs 2
SMALLEST_LENET_SIDE = 16  # each convolution takes 4, and each pooling half of what is left


def build_emnist_cnn(input_shape: tuple[int, int, int], num_classes: int):
    """Images (batch, height, width, channels) in float32, sides of at least 6, to logits (batch, num_classes)."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape),
            layers.Conv2D(32, 3, activation="relu", name="convolution_1"),
            layers.Conv2D(64, 3, activation="relu", name="convolution_2"),
            layers.MaxPooling2D(2, name="pooling"),
            StatelessDropout(0.25, salt=1, name="dropout_1"),
            layers.Flatten(name="flatten"),
            layers.Dense(128, activation="relu", name="hidden"),
            StatelessDropout(0.5, salt=2, name="dropout_2"),
            build_logits_layer(num_classes),
        ]
    )


def _build_in_pairs(
    input_shape: tuple[int, int, int],
    num_classes: int,
    filters: tuple[int, int],
    padding: str,
    hidden: Mapping[str, int],
) -> tf.keras.Sequential:
    """Two 5x5 convolutions, each with pooling, and hidden layers: images (batch, height, width, channels) to logits."""
    layers = tf.keras.layers
    body = []
    for i, number in enumerate(filters, start=1):
        body += [
            layers.Conv2D(number, 5, padding=padding, activation="relu", name=f"convolution_{i}"),
            layers.MaxPooling2D(2, padding=padding, name=f"pooling_{i}"),
        ]
    body += [layers.Flatten(name="flatten")]
    body += [layers.Dense(width, activation="relu", name=name) for name, width in hidden.items()]
    return tf.keras.Sequential([tf.keras.Input(input_shape), *body, build_logits_layer(num_classes)])


build_fedavg_cnn = functools.partial(_build_in_pairs, filters=(32, 64), padding="same", hidden={"hidden": 512})
# Sides of at least 16.
build_lenet = functools.partial(
    _build_in_pairs, filters=(6, 16), padding="valid", hidden={"hidden_1": 120, "hidden_2": 84}
)
