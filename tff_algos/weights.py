"""Model weights as tuples of arrays: first values, TFF types, bytes, stacking, and the one way to add an update.

The order is that of `keras_model.weights`. Only floating-point weights are trained, sent and averaged; integer weights
(step counters of quantization-aware training) keep the server's value.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from models.model_spec import ModelSpec
from tff_algos.protocol import Weights
from tff_algos.seeds import derive_seed

Tensors = Sequence[tf.Tensor | np.ndarray]


def initialize_weights(model_spec: ModelSpec, seed: int, purpose: str = "initial weights") -> Weights:
    """The first weights of a model, a function of (model, seed, purpose) alone; sets the global seeds of TensorFlow."""
    # Keras's initializers draw from the global generators, so these are seeded right before the model is built.
    tf.keras.utils.set_random_seed(int(derive_seed(seed, purpose)[0]) & 0x7FFFFFFF)
    return tuple(variable.numpy() for variable in model_spec.build().weights)


def is_float(array: np.ndarray | tf.Tensor | tf.Variable) -> bool:
    """Whether this weight is trained, sent and averaged."""
    return tf.as_dtype(array.dtype).is_floating


def add_deltas(weights: Tensors, deltas: Iterable[tf.Tensor | np.ndarray], rate: float | tf.Tensor = 1.0) -> tuple:
    """weights + rate * deltas, in any graph or in NumPy; integer weights stay as they are.

    Args:
      weights: one array a weight, in the order of `keras_model.weights`.
      deltas: one for each floating-point weight, NumPy arrays if the weights are; shapes broadcast.
      rate: scalar.

    Returns:
      One array a weight, each of the dtype of its weight.
    """
    remaining = iter(deltas)
    return tuple(_add(array, rate * next(remaining)) if is_float(array) else array for array in weights)


def keep_finite(is_finite: tf.Tensor, new: Iterable[tf.Tensor], old: Iterable[tf.Tensor]) -> tuple[tf.Tensor, ...]:
    """The new weights, or all of the old ones unless `is_finite`; what a client keeps after its training."""
    return tuple(tf.where(is_finite, *pair) for pair in zip(new, old, strict=True))


def _add(array, delta):
    total = array + delta
    # Where an array has no axes, NumPy 1 lets a Python float or a float64 rate turn float32 into float64, and makes the
    # sum a number.
    return total if tf.is_tensor(total) else np.asarray(total, array.dtype)


def stack_models(models: Sequence[Weights]) -> Weights:
    """Models of one architecture, stacked along a new axis 0 of every weight."""
    return tuple(np.stack(arrays) for arrays in zip(*models, strict=True))


def take_model(stacked: Weights, index: int) -> Weights:
    """One of the stacked models."""
    return tuple(np.asarray(array[index]) for array in stacked)


def build_stacked_type(weights: Weights, num_models: int) -> tff.StructWithPythonType:
    """The TFF type of `num_models` stacked models of the shapes and dtypes of `weights`."""
    return tff.StructWithPythonType(
        [tff.TensorType(array.dtype.type, (num_models, *array.shape)) for array in weights], tuple
    )


def build_type(value: Any) -> tff.Type:
    """The TFF type of nested arrays, numbers of NumPy and texts; a NamedTuple keeps its class and its names."""
    if isinstance(value, str):
        return tff.TensorType(np.str_)
    if not isinstance(value, tuple | list):
        return tff.TensorType(value.dtype.type, value.shape)
    # With its class, so that what a computation returns is that NamedTuple again, and not a struct of TFF.
    names = getattr(value, "_fields", None)
    parts = [build_type(part) for part in value]
    return tff.StructWithPythonType(zip(names, parts, strict=True) if names else parts, type(value))


def compute_model_bytes(weights: Weights, bits: int = 32) -> int:
    """Bytes of one model on the wire: its floating-point weights at `bits` bits each; integer weights never travel."""
    # Each tensor is rounded up alone, as it travels alone.
    return sum((array.size * bits + 7) // 8 for array in weights if array.dtype.kind == "f")
