"""The ten-layer network for images of FedCD: nine 3x3 convolutions and a dense layer, logits out.

The paper prints no more of it than the ten layers. Each convolution is followed by BatchNorm and ReLU, the ninth also
by the mean over the image; "/2" is a stride of 2, so that 32x32 pixels (CIFAR-10) end as 8x8, and 8x8 (digits) as 2x2:

    32  32  64/2  64  64  128/2  128  256  256        filters, times `width`

Parameters at width 1, three channels, ten classes: convolutions, without bias since BatchNorm adds one,
9 (3*32 + 32*32 + 32*64 + 64*64 + 64*64 + 64*128 + 128*128 + 128*256 + 256*256) = 1,208,160; BatchNorm 4 * 1,024 =
4,096, half of them statistics that are not trained; dense 256 * 10 + 10 = 2,570; in all 1,214,826. At width 0.25 the
convolutions have 9 (3*8 + 134,144 / 16) = 75,672, BatchNorm 4 * 256 = 1,024, dense 64 * 10 + 10 = 650; in all 77,346.

BatchNorm's moving statistics follow their batches with a momentum of 0.9, not Keras's 0.99: a client takes tens of
steps in a round, after which 0.99 would still hold most of what the round began with.

`image_cnn10_gn` has GroupNorm in BatchNorm's place, whose statistics differ from client to client (Hsieh et al. 2020):
groups of eight filters, and two parameters a filter, so 2,048 fewer at width 1 and 512 fewer at 0.25.
"""

import functools
import math

import tensorflow as tf

from models.precision import build_logits_layer

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
