"""Whether XLA may compile what a model does, and whether that pays. Measured in docs/speed.md.

Compiled training pads the last batch of an epoch and takes the padding out of the loss. So a model can be compiled if
what it puts out for an example does not depend on the rest of the batch. It pays for small dense models, which spend
most of a step on starting operations. Convolutions and recurrent loops are slower compiled than not, on a CPU.
"""

import dataclasses

import tensorflow as tf

from models.model_spec import ModelSpec
from models.training_terms import find_training_terms

MOST_WEIGHTS = 10_000  # above, the arithmetic takes longer than starting operations, and XLA's is slower
_LAYERS = tf.keras.layers
_SMALL_PARTS = frozenset(
    {
        _LAYERS.Activation, _LAYERS.Add, _LAYERS.Concatenate, _LAYERS.Dense, _LAYERS.Flatten, _LAYERS.InputLayer,
        _LAYERS.LeakyReLU, _LAYERS.ReLU, _LAYERS.Reshape, tf.keras.Model, tf.keras.Sequential,
    }
)  # fmt: skip


def pays(spec: ModelSpec) -> bool:
    """Whether compiled steps are quicker: of dense layers alone, and with at most `MOST_WEIGHTS` weights."""
    model = spec.build()
    parts = {type(part) for part in model._flatten_layers(recursive=True)}  # the version is locked
    functional = {part for part in parts if issubclass(part, tf.keras.Model) and part.__name__ == "Functional"}
    is_small = parts - functional <= _SMALL_PARTS and model.count_params() <= MOST_WEIGHTS
    return is_small and spec.precision == "float32" and not find_obstacle(spec)


def find_obstacle(spec: ModelSpec) -> str:
    """Why the model's training cannot be compiled; "" if it can."""
    if spec.quantization is not None:
        return "quantization-aware training follows the values of whole batches"
    if spec.augment is not None:
        return "examples are augmented"
    model = spec.build()
    if model.non_trainable_weights:
        return "it has weights that are not trained, such as BatchNorm's statistics of whole batches"
    if "losses of its own" in find_training_terms(model, spec.model_input_shape, spec.model_input_dtype):
        return "it has losses of its own, which may be those of whole batches"
    return ""


def compile_spec(spec: ModelSpec) -> ModelSpec:
    """The same with compiled training; its teacher's and its peers' is compiled where that pays."""
    teacher = spec.teacher and dataclasses.replace(spec.teacher, compiled=pays(spec.teacher))
    peers = tuple(dataclasses.replace(peer, compiled=pays(peer)) for peer in spec.peers)
    return dataclasses.replace(spec, compiled=True, teacher=teacher, peers=peers)
