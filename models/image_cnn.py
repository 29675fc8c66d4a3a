"""Convolutional networks for images, logits out: FedSiKD's, FedCD's, and three of the federated literature.

The image teacher and student of FedSiKD (Table III) have four strided convolutions and one dense layer.

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
import math
from collections.abc import Mapping

import tensorflow as tf

from models.precision import build_logits_layer, choose_dtype
from models.stateless_dropout import StatelessDropout


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


# The ten-layer network for images of FedCD: nine 3x3 convolutions and a dense layer, logits out.
#
# The paper prints no more of it than the ten layers. Each convolution is followed by BatchNorm and ReLU, the ninth also
# by the mean over the image; "/2" is a stride of 2, so that 32x32 pixels (CIFAR-10) end as 8x8, and 8x8 (digits) as
# 2x2:
#
#     32  32  64/2  64  64  128/2  128  256  256        filters, times `width`
#
# Parameters at width 1, three channels, ten classes: convolutions, without bias since BatchNorm adds one,
# 9 (3*32 + 32*32 + 32*64 + 64*64 + 64*64 + 64*128 + 128*128 + 128*256 + 256*256) = 1,208,160; BatchNorm 4 * 1,024 =
# 4,096, half of them statistics that are not trained; dense 256 * 10 + 10 = 2,570; in all 1,214,826. At width 0.25 the
# convolutions have 9 (3*8 + 134,144 / 16) = 75,672, BatchNorm 4 * 256 = 1,024, dense 64 * 10 + 10 = 650; in all 77,346.
#
# BatchNorm's moving statistics follow their batches with a momentum of 0.9, not Keras's 0.99: a client takes tens of
# steps in a round, after which 0.99 would still hold most of what the round began with.
#
# `image_cnn10_gn` has GroupNorm in BatchNorm's place, whose statistics differ from client to client (Hsieh et al.
# 2020): groups of eight filters, and two parameters a filter, so 2,048 fewer at width 1 and 512 fewer at 0.25.

# (filters at width 1, stride)
_CONVOLUTIONS = ((32, 1), (32, 1), (64, 2), (64, 1), (64, 1), (128, 2), (128, 1), (256, 1), (256, 1))
_MOMENTUM = 0.9
_GROUP = 8  # filters that are normalized together, where their number is a multiple of it


def _build(
    input_shape: tuple[int, int, int], num_classes: int, width: float = 1.0, *, in_groups: bool
) -> tf.keras.Sequential:
    """Images (batch, height, width, channels) in float32 to logits (batch, num_classes).

    Args:
      input_shape: (height, width, channels).
      num_classes: width of the logits.
      width: factor on the numbers of filters, above 0; rounded, at least 1 filter stays.
      in_groups: whether it has GroupNorm.
    """
    layers = tf.keras.layers
    body = []
    for i, (filters, stride) in enumerate(_CONVOLUTIONS, start=1):
        filters, name = max(1, round(width * filters)), f"normalization_{i}"
        convolution = layers.Conv2D(filters, 3, stride, padding="same", use_bias=False, name=f"convolution_{i}")
        if in_groups:  # in float32 under any policy: sums over a group of bfloat16 have two digits
            norm = layers.GroupNormalization(filters // math.gcd(filters, _GROUP), dtype="float32", name=name)
        else:
            norm = layers.BatchNormalization(momentum=_MOMENTUM, name=name)
        body += [convolution, norm, layers.ReLU(name=f"relu_{i}")]
    pooling = layers.GlobalAveragePooling2D(name="pooling")
    return tf.keras.Sequential([tf.keras.Input(input_shape), *body, pooling, build_logits_layer(num_classes)])


build_image_cnn10 = functools.partial(_build, in_groups=False)
build_image_cnn10_gn = functools.partial(_build, in_groups=True)


# Three convolutional networks of the federated literature for small images, logits out.
#
# `emnist_cnn` is that of Reddi et al. 2021 ("Adaptive Federated Optimization") for EMNIST, TensorFlow Federated's
# `create_conv_dropout_model`: two 3x3 convolutions without padding, pooling, dropout. `fedavg_cnn` is that of McMahan
# et al. 2017, TensorFlow Federated's `create_original_fedavg_cnn_model`: two 5x5 convolutions, each with pooling. Their
# softmax is left to the loss, and dropout draws its masks from the seeds of the run. `lenet` is the benchmark network
# of Li et al. 2022 ("Federated Learning on Non-IID Data Silos", section V), after LeCun et al. 1998: two 5x5
# convolutions of 6 and 16 filters without padding, each with pooling, dense layers of 120 and 84.
#
# Parameters. A kxk convolution from a to b channels has kkab + b. For 28x28x1 and 10 or 62 classes:
#
#                  convolutions       dense layer                            logits             sum
#     emnist_cnn   320 + 18,496       12 * 12 * 64 * 128 + 128 = 1,179,776   1,290 or 7,998     1,199,882 or 1,206,590
#     fedavg_cnn   832 + 51,264       7 * 7 * 64 * 512 + 512 = 1,606,144     5,130 or 31,806    1,663,370 or 1,690,046
#     lenet        156 + 2,416        4 * 4 * 16 * 120 + 120 = 30,840 and 10,164     850 or 5,270    44,426 or 48,846


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


# The HAR teacher and student of FedSiKD (Table IV) for sequences (steps, channels), logits out.
#
# The table's Conv1D and MaxPooling1D over (steps, channels) are written as Conv2D and MaxPooling2D over (1, steps,
# channels), the same arithmetic, since TF-MOT quantizes only those by channel. The table's softmax is left to the loss.
#
# Parameters. A convolution of length 3 from a to b channels has 3ab + b; each of the two halves the steps, rounded up
# (561, 281, 141 and 128, 64, 32; the pooling has stride 1 and keeps them).
#
#                     first convolution   second (256)   dense 128                    dense 6   sum
#     student (561, 1)       256             49,408      141*256*128+128 = 4,620,416    774     4,670,854
#     teacher (561, 1)       512             98,560                        4,620,416    774     4,720,262
#     student (128, 9)     1,792             49,408       32*256*128+128 = 1,048,704    774     1,100,678
#     teacher (128, 9)     3,584             98,560                        1,048,704    774     1,151,622
#
# The dense layer of 128 outweighs the rest, so the printed student is hardly smaller than its teacher.


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
