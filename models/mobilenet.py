"""MobileNetV2 (Sandler et al. 2018) with GroupNorm in place of BatchNorm, logits out; its weights are not pretrained.

It is that of TensorFlow Federated's task on Landmarks, `tff.simulation.models.create_mobilenet_v2` with 8 groups, whose
softmax is left to the loss. A block widens its channels sixfold, convolves each by itself and narrows them again.
Numbers of filters are scaled by `width` and rounded to multiples of 8, by at most a tenth downwards.

Parameters at width 1 for three channels and n classes. A block from a to b channels has 6aa + 54a + 6ab for its three
convolutions and 24a + 2b for GroupNorm; the first does not widen: 9a + ab and 2a + 2b.

    start             27 * 32 + 64     928        4 blocks to 64    183,872
    1 block to 16                      896        3 blocks to 96    303,168
    2 blocks to 24   5,136 + 8,832  13,968        3 blocks to 160   795,264
    3 blocks to 32                  39,696        1 block to 320    473,920
    end       320 * 1,280 + 2,560  412,160        dense             1,281 n
    sum      2,223,872 + 1,281 n: 2,236,682 for 10 classes and 2,351,972 for 100
"""

import math

import tensorflow as tf

from models.precision import build_logits_layer, choose_dtype

# (filters at width 1, blocks, stride of the first); all but the first widen
_STAGES = ((16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1))
_FIRST_FILTERS, _LAST_FILTERS = 32, 1280
_WIDENING = 6
_MULTIPLE = 8  # of which all numbers of filters are, and as many groups


def build_mobilenet_v2(input_shape: tuple[int, int, int], num_classes: int, width: float = 1.0):
    """Images (batch, height, width, channels) in float32 to logits (batch, num_classes).

    Args:
      input_shape: (height, width, channels); at 32 pixels a side, one is left at the end.
      num_classes: width of the logits.
      width: factor on the numbers of filters, above 0; the last convolution keeps at least its 1,280.
    """
    images = tf.keras.Input(input_shape)
    x = _convolve(images, _round_filters(_FIRST_FILTERS * width), 3, "start", stride=2)
    number = 0
    for filters, num_blocks, first_stride in _STAGES:
        for i in range(num_blocks):
            stride = first_stride if i == 0 else 1
            x = _add_block(x, _round_filters(int(filters * width)), stride, f"block_{number}", widens=number > 0)
            number += 1
    x = _convolve(x, _round_filters(_LAST_FILTERS * max(width, 1)), 1, "end")
    x = tf.keras.layers.GlobalAveragePooling2D(name="mean")(x)
    return tf.keras.Model(images, build_logits_layer(num_classes)(x))


def _add_block(x, filters: int, stride: int, name: str, widens: bool):
    """Widens, convolves and narrows; what came in is added where it has the same shape."""
    layers = tf.keras.layers
    inner = _convolve(x, _WIDENING * x.shape[-1], 1, f"{name}_widening") if widens else x
    dtype = choose_dtype(inner.shape[2], stride)
    inner = layers.DepthwiseConv2D(
        3, stride, padding="same", use_bias=False, dtype=dtype, name=f"{name}_depthwise_convolution"
    )(inner)
    inner = layers.ReLU(6.0, name=f"{name}_depthwise_relu")(_normalize(inner, f"{name}_depthwise"))
    inner = layers.Conv2D(filters, 1, use_bias=False, name=f"{name}_narrowing_convolution")(inner)
    inner = _normalize(inner, f"{name}_narrowing")
    return layers.Add(name=f"{name}_sum")([x, inner]) if x.shape[-1] == filters and stride == 1 else inner


def _convolve(x, filters: int, size: int, name: str, stride: int = 1):
    options = {"padding": "same", "use_bias": False, "dtype": choose_dtype(x.shape[2], stride)}
    x = tf.keras.layers.Conv2D(filters, size, stride, **options, name=f"{name}_convolution")(x)
    return tf.keras.layers.ReLU(6.0, name=f"{name}_relu")(_normalize(x, name))


def _normalize(x, name: str):
    # In float32 under any policy: sums over a group of bfloat16 have two digits.
    return tf.keras.layers.GroupNormalization(_MULTIPLE, dtype="float32", name=f"{name}_normalization")(x)


def _round_filters(number: float) -> int:
    """The nearest multiple of 8, or the next one above where that would take away more than a tenth."""
    nearest = _MULTIPLE * math.floor((number + _MULTIPLE / 2) / _MULTIPLE)
    return max(nearest, _MULTIPLE * math.ceil(0.9 * number / _MULTIPLE))
