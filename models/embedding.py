"""A classifier in two parts: its head, which is the last layer, and the embedding, which is what goes into that."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from models.model_names import ModelError
from models.model_spec import ModelSpec


class Head(NamedTuple):
    """Where a model's head is: where its kernel and its bias are among the weights, and the embedding's width."""

    kernel: int
    bias: int
    width: int

    def replace(self, weights: tuple[np.ndarray, ...], kernel: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, ...]:
        """The model's weights with another kernel, shape (width, classes), and bias, shape (classes,)."""
        given = {self.kernel: kernel, self.bias: bias}
        return tuple(given.get(position, array) for position, array in enumerate(weights))


def find_head(spec: ModelSpec) -> Head:
    """Looks at a model once.

    Raises:
      ModelError: it does not end in a dense layer of its own logits, or its parts cannot be told apart; or its training
        is quantization-aware.
    """
    if spec.quantization is not None:
        raise ModelError("--quantize=qat: expected none, since embeddings are of float models; export with int8")
    model = spec.build()
    layer = model.layers[-1] if model.inputs and model.layers else None  # a subclass has layers, but says no order
    is_dense = isinstance(layer, tf.keras.layers.Dense) and layer.units == spec.task.num_outputs and layer.use_bias
    is_last = is_dense and layer.activation is tf.keras.activations.linear and layer.output is model.output
    if not is_last or len(layer.input.shape) != 2:
        expected = f"a last layer tf.keras.layers.Dense({spec.task.num_outputs}) with a bias and without an activation"
        found = "a model of a class of its own" if layer is None else f"{type(layer).__name__} {layer.name}"
        raise ModelError(f"{spec.name}: expected {expected}, which gets one row an example, found {found}")
    positions = {id(weight): position for position, weight in enumerate(model.weights)}
    if [id(weight) for weight in _expose(model).weights] != list(positions):
        raise ModelError(f"{spec.name}: expected a model that is called layer by layer; give Sequential or Functional")
    return Head(positions[id(layer.kernel)], positions[id(layer.bias)], int(layer.input.shape[1]))


def expose_embedding(spec: ModelSpec) -> ModelSpec:
    """The same model, weights and task, but what `build` gives puts out logits and embedding, side by side.

    Its outputs are float32, shape (batch, classes + width), see `split_outputs`. Only for models with a `Head`.
    """
    return dataclasses.replace(spec, build=functools.partial(_build_exposed, spec.build), peers=())


def split_outputs(outputs: tf.Tensor, num_classes: int) -> tuple[tf.Tensor, tf.Tensor]:
    """(logits (batch, classes), embedding (batch, width)) of a model of `expose_embedding`, in any graph."""
    return outputs[:, :num_classes], outputs[:, num_classes:]


def _build_exposed(build: Callable[[], tf.keras.Model]) -> tf.keras.Model:
    return _expose(build())


def _expose(model: tf.keras.Model) -> tf.keras.Model:
    # Of float32 whatever the policy: an embedding in bfloat16 is cast.
    join = tf.keras.layers.Concatenate(dtype="float32", name="logits_and_embedding")
    return tf.keras.Model(model.inputs, join([model.output, model.layers[-1].input]))
