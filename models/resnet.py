"""ResNet-18 with GroupNorm for images, as TensorFlow Federated's task on CIFAR-100 has it, logits out.

He et al. 2016 ("Identity Mappings in Deep Residual Networks"): each block normalizes before it convolves. GroupNorm
(32 groups) stands in place of BatchNorm, whose statistics differ from client to client (Hsieh et al. 2020). As in
`tff.simulation.models.create_resnet18`, all four stages have stride 1: a 7x7 convolution and a pooling, both of stride
2, are all that makes the image smaller. Kernels and the last layer have an L2 penalty of 0.0001 in the loss.

Parameters for c channels and n classes, GroupNorm having 2 a channel:

    start   49 * c * 64 and GroupNorm 128                                                     c = 3:    9,536
    64      4 convolutions of 36,864, GroupNorm 3 * 128 (the first block does not begin with it)       147,840
    128     73,728 + 3 * 147,456; GroupNorm 128 + 3 * 256; shortcut 8,192 + 256                        525,440
    256     4 * the 128 stage's convolutions; GroupNorm 256 + 3 * 512; shortcut 32,768 + 512         2,099,456
    512     as many times 4 again; GroupNorm 512 + 3 * 1,024; shortcut 131,072 + 1,024               8,393,216
    end     GroupNorm 1,024; dense 512 n + n                                                n = 100:    52,324
    sum     11,227,812 for 100 classes of colour pictures
"""

import tensorflow as tf

from models.precision import build_logits_layer, choose_dtype

_FILTERS = (64, 128, 256, 512)
_BLOCKS = 2  # of a stage
_PENALTY = 1e-4


def build_resnet18_gn(input_shape: tuple[int, int, int], num_classes: int):
    """Images (batch, height, width, channels) in float32 to logits (batch, num_classes)."""
    layers = tf.keras.layers
    images = tf.keras.Input(input_shape)
    x = _convolve(images, _FILTERS[0], 7, "start", stride=2)
    x = _normalize(x, "start")
    x = layers.MaxPooling2D(3, 2, padding="same", name="pooling")(x)
    for stage, filters in enumerate(_FILTERS, start=1):
        for number in range(1, _BLOCKS + 1):
            x = _add_block(x, filters, f"stage_{stage}_block_{number}", is_first=stage == number == 1)
    x = layers.GlobalAveragePooling2D(name="mean")(_normalize(x, "end"))
    logits = build_logits_layer(num_classes)
    logits.kernel_initializer = tf.keras.initializers.RandomNormal(stddev=0.01)
    logits.kernel_regularizer = logits.bias_regularizer = tf.keras.regularizers.L2(_PENALTY)
    return tf.keras.Model(images, logits(x))


def _add_block(x, filters: int, name: str, is_first: bool):
    """Two convolutions beside a shortcut, which has one of its own where the number of channels changes."""
    inner = x if is_first else _normalize(x, f"{name}_1")
    inner = _convolve(inner, filters, 3, f"{name}_1")
    inner = _convolve(_normalize(inner, f"{name}_2"), filters, 3, f"{name}_2")
    if x.shape[-1] != filters:
        x = _convolve(x, filters, 1, f"{name}_shortcut")
        x = tf.keras.layers.GroupNormalization(dtype="float32", name=f"{name}_shortcut_normalization")(x)
    return tf.keras.layers.Add(name=f"{name}_sum")([x, inner])


def _convolve(x, filters: int, size: int, name: str, stride: int = 1):
    return tf.keras.layers.Conv2D(
        filters,
        size,
        stride,
        padding="same",
        use_bias=False,
        kernel_initializer="he_normal",
        kernel_regularizer=tf.keras.regularizers.L2(_PENALTY),
        dtype=choose_dtype(x.shape[2], stride),
        name=f"{name}_convolution",
    )(x)


def _normalize(x, name: str):
    # In float32 under any policy: sums over a group of bfloat16 have two digits.
    x = tf.keras.layers.GroupNormalization(dtype="float32", name=f"{name}_normalization")(x)
    return tf.keras.layers.ReLU(name=f"{name}_relu")(x)
