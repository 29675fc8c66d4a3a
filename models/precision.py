"""Mixed precision: layers compute in bfloat16, while weights, logits and everything after them stay in float32.

Keras's policy is set while the model is built and restored afterwards, since it is global to the process. Losses are
not scaled, as float16 would need: bfloat16 has the exponents of float32.

A convolution whose input is narrower than its stride stays in float32. In TensorFlow 2.14, oneDNN (seen on a CPU with
AVX-512) leaves part of the bfloat16 gradient of such a kernel unwritten: where the kernel's columns meet only padding,
it holds whatever lay in memory, up to 1e37 or NaN. Heights do not matter, nor do widths of at least the stride.
"""

from collections.abc import Callable

import tensorflow as tf

from models.model_names import ModelError

_CONVOLUTIONS = (tf.keras.layers.Conv1D, tf.keras.layers.Conv2D)
_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


def build_in_precision(build: Callable[[], tf.keras.Model], precision: str) -> tf.keras.Model:
    """The model that `build` returns. Its layers compute in `precision` unless they name a dtype of their own.

    Args:
      build: takes nothing, returns a built Keras model.
      precision: "float32" or "bfloat16".

    Raises:
      ModelError: if a layer computes in bfloat16 that `choose_dtype` would have left in float32.
    """
    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy(_POLICIES[precision])
    try:
        model = build()
    finally:
        tf.keras.mixed_precision.set_global_policy(before)
    for layer in getattr(model, "layers", ()):
        if isinstance(layer, _CONVOLUTIONS) and layer.compute_dtype == "bfloat16":
            width, stride = layer.input_shape[-2], layer.strides[-1]
            if choose_dtype(width, stride):
                problem = f"{layer.name} has a stride of {stride} on a width of {width}"
                raise ModelError(f'{problem}, whose bfloat16 gradient is undefined; give this layer dtype="float32"')
    return model


def choose_dtype(width: int, stride: int) -> str | None:
    """What a convolution has to compute in: "float32", or None for what the policy says.

    Args:
      width: of its input, in pixels or steps.
      stride: along the width.
    """
    return "float32" if width is not None and width < stride else None


def build_logits_layer(num_classes: int) -> tf.keras.layers.Dense:
    """The last layer of every model. It stays in float32 under a mixed precision policy: losses need exact logits."""
    return tf.keras.layers.Dense(num_classes, dtype="float32", name="logits")
