"""Model weights as tuples of arrays: first values, types, stacking.

The order is that of `keras_model.weights`. Only floating-point weights are trained, sent and averaged; integer weights
(step counters of quantization-aware training) keep the server's value.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from models.model_spec import ModelSpec
from tff_algos.protocol import Weights
from tff_algos.seeds import derive_seed


def initialize_weights(model_spec: ModelSpec, seed: int, purpose: str = "initial weights") -> Weights:
    """The first weights of a model, a function of (model, seed, purpose) alone; sets the global seeds of TensorFlow."""
    tf.keras.utils.set_random_seed(int(derive_seed(seed, purpose)[0]) & 0x7FFFFFFF)
    return tuple(variable.numpy() for variable in model_spec.build().weights)


def is_float(array: np.ndarray | tf.Tensor | tf.Variable) -> bool:
    """Whether this weight is trained, sent and averaged."""
    return tf.as_dtype(array.dtype).is_floating


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
