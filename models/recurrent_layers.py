"""Recurrent layers as TFLite files can hold them: as loops, or written out step by step.

The converter makes one operator of Keras's fused LSTM, and that operator keeps its state from call to call: the answer
for an example would depend on the one before. So no layer is left fused. In a loop, a layer answers as in Keras, for
sequences of any length. The converter cannot quantize loops, and has no gradients for them without TensorFlow's
operators; for these, the steps are written out.
"""

import re
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from models.model_names import ModelError

MAX_STEPS = 1000  # of all recurrent layers together; 500 of a small LSTM take 15 s, 1 GB and, as int8, a file of 7 MB
MAX_TRAINED_STEPS = 200  # the same with their gradients; 100 of a small LSTM take 20 s
_SAME = 1e-3  # differences of logits below this share of the largest one are rounding


def use_loops(model: tf.keras.Model) -> None:
    """Has every recurrent layer compute in a loop.

    Raises:
      ModelError: a layer is stateful.
    """
    for layer in _find_recurrent(model):
        if layer.stateful:
            raise ModelError(f"layer {layer.name} is stateful, but a file keeps nothing between examples; leave it out")
        layer.unroll = False
        layer._could_use_gpu_kernel = False  # of LSTM and GRU: their fused operation, which Keras takes on CPUs, too


def write_out_steps(model: tf.keras.Model, inputs: np.ndarray, max_steps: int = MAX_STEPS) -> list[str]:
    """Has every recurrent layer written out step by step, where that changes no answer and there are not too many.

    Where outputs are masked, Keras computes some layers otherwise when they are written out.

    Args:
      model: in which every recurrent layer computes in a loop.
      inputs: preprocessed examples whose answers must stay, float32 (n, *input_shape).
      max_steps: of all layers together.

    Returns:
      Why the others are left as loops, one text for each layer.
    """
    left, total = [], 0
    # After the examples the same as sequences of half the length, padded with zeros, which may be masked.
    halves, expected = inputs.copy(), None
    halves[:, inputs.shape[1] // 2 :] = 0
    checked = np.concatenate([inputs, halves])
    for layer in _find_recurrent(model):
        # How long the layer's sequences are; as long as the examples where it was built for any length
        built = (layer.get_build_config() or {}).get("input_shape") or ()
        known = built[1] if len(built) > 1 and isinstance(built[1], int) else None
        steps = known or inputs.shape[1]
        if total + steps > max_steps:
            left.append(f"{layer.name} has {steps:,} steps, {max_steps:,} in all can be written out")
            continue
        expected = model(checked, training=False).numpy() if expected is None else expected
        layer.unroll = True
        if not np.abs(model(checked, training=False).numpy() - expected).max() <= _SAME * np.abs(expected).max():
            layer.unroll = False
            left.append(f"{layer.name} with masked steps cannot be written out")
            continue
        total += steps
    return left


def find_loops(function: tf.types.experimental.ConcreteFunction) -> list[str]:
    """The names of the layers, as far as they are known, that a traced function computes in loops."""
    return find_operations(function, r"(Stateless)?While")


def list_nodes(function: tf.types.experimental.ConcreteFunction) -> list[tf.compat.v1.NodeDef]:
    """The operations of a traced function and of those that it calls."""
    graph = function.graph.as_graph_def()
    return [*graph.node, *(node for part in graph.library.function for node in part.node_def)]


def find_operations(function: tf.types.experimental.ConcreteFunction, kinds: str) -> list[str]:
    """The names of the layers, as far as they are known, that have operations of these kinds, a regular expression."""
    names = [node.name for node in list_nodes(function) if re.fullmatch(kinds, node.op)]
    # The name of an operation in a function of the graph says nothing of the layer that calls it.
    return list(dict.fromkeys("/".join(name.split("/")[1:-1]) or name for name in names))


def _find_recurrent(model: tf.keras.Model) -> Iterator[tf.keras.layers.RNN]:
    """At any depth, those inside Bidirectional and of subclassed models too."""
    parts = (part for part in model.submodules if isinstance(part, tf.keras.layers.RNN))
    return (part for part in parts if part.built)  # Bidirectional also keeps the layer that its two are made after
