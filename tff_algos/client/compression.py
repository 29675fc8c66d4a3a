"""Uniform quantization of what travels: models on their way down, updates on their way up.

Each trained weight tensor is rounded to 2^bits levels, evenly spaced from its smallest to its largest value. It travels
as its level numbers and these two values. Weights that are not trained (BatchNorm's statistics, the ranges of
quantization-aware training) stay at 32 bits, and integers do not travel. 32 bits means no compression.

Stochastic rounding takes the level above with a chance equal to the distance from the level below, measured in steps,
so that the mean over seeds is the value itself.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from models.model_spec import ModelSpec
from tff_algos.protocol import Weights
from tff_algos.settings.compression import CompressionConfig
from tff_algos.weights import compute_model_bytes

RANGE_BYTES = 8  # the smallest and the largest value of a tensor


def find_compressed(model_spec: ModelSpec) -> tuple[bool, ...]:
    """Whether each weight, in the order of `keras_model.weights`, is compressed: those that are trained."""
    model = model_spec.build()
    trained = {variable.ref() for variable in model.trainable_variables}
    return tuple(variable.ref() in trained for variable in model.weights)


def quantize_uniform(values: tf.Tensor, bits: int, seed: tf.Tensor | None = None, num_batch_axes: int = 0) -> tf.Tensor:
    """Rounds to 2^bits levels from the smallest to the largest value, at most half a step away (stochastic: a step).

    Args:
      values: float32, finite.
      bits: 2 to 16.
      seed: int32, shape (2,), for stochastic rounding; None rounds to the nearest level, ties to the even one.
      num_batch_axes: leading axes along which the tensors are stacked; each has a range of its own.
    """
    axes = list(range(num_batch_axes, len(values.shape)))
    low = tf.reduce_min(values, axes, keepdims=True)
    step = (tf.reduce_max(values, axes, keepdims=True) - low) / (2**bits - 1)
    levels = tf.math.divide_no_nan(values - low, step)  # a tensor of equal values has a step of 0
    if seed is None:
        levels = tf.round(levels)
    else:
        levels = tf.floor(levels + tf.random.stateless_uniform(tf.shape(levels), seed))
    # Rounding errors can put the largest value a level too high.
    return low + tf.minimum(levels, float(2**bits - 1)) * step


def compress(
    tensors: Sequence[tf.Tensor],
    is_compressed: Sequence[bool],
    config: CompressionConfig,
    seed: tf.Tensor,
    num_batch_axes: int = 0,
) -> tuple[tf.Tensor, ...]:
    """The tensors as the other side receives them.

    Args:
      tensors: a model's weights or an update, or several stacked along leading axes.
      is_compressed: one a tensor, see `find_compressed`.
      config: bits and rounding.
      seed: int32, shape (2,); each tensor's is derived from it.
      num_batch_axes: see `quantize_uniform`.
    """
    if not config.is_active:
        return tuple(tensors)
    received = []
    for place, (tensor, is_rounded) in enumerate(zip(tensors, is_compressed, strict=True)):
        own_seed = None
        if config.rounding == "stochastic":
            own_seed = tf.random.experimental.stateless_fold_in(seed, -1 - place)  # training folds in 0, 1, ...
        received.append(quantize_uniform(tensor, config.bits, own_seed, num_batch_axes) if is_rounded else tensor)
    return tuple(received)


def compress_models(
    stacked: Weights, is_compressed: Sequence[bool], config: CompressionConfig, seed: np.ndarray
) -> Weights:
    """Models stacked along axis 0 as the clients receive them; each tensor of each model has a range of its own."""
    if not config.is_active:
        return stacked
    return tuple(np.asarray(array) for array in compress(stacked, is_compressed, config, seed, num_batch_axes=1))


def compute_sent_bytes(weights: Weights, is_compressed: Sequence[bool], config: CompressionConfig) -> int:
    """Bytes of one model or update on the wire, by the rules of the module's docstring."""
    if not config.is_active:
        return compute_model_bytes(weights)
    rounded = tuple(array for array, is_rounded in zip(weights, is_compressed, strict=True) if is_rounded)
    others = tuple(array for array, is_rounded in zip(weights, is_compressed, strict=True) if not is_rounded)
    return compute_model_bytes(rounded, config.bits) + RANGE_BYTES * len(rounded) + compute_model_bytes(others)
