"""Quantization-aware training of a Keras model with TF-MOT: which layers it can treat, and the wrapped model.

The wrapped model computes with weights and activations rounded to 8-bit integers, so that training can compensate for
the rounding. Besides the float model's weights it has range variables (the smallest and largest value of each rounded
tensor, float32, not trainable) and integer step counters. In a federated round the ranges are aggregated like
BatchNorm's statistics: the server's is the mean of the clients', with the weights of their updates. The counters stay.

TF-MOT tracks the ranges of activations by a moving average that starts from -6 and 6 with a decay of 0.999, which suits
tens of thousands of steps. A client takes only tens of steps in a round, so our decay is `RANGE_DECAY`. (On digits,
after 5 rounds of 5 epochs, the range of the logits was 17 with 0.9 but 6.4 with 0.999, which clipped the logits.)
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import tensorflow as tf
import tensorflow_model_optimization as tfmot
from tensorflow_model_optimization.python.core.quantization.keras.default_8bit import (
    default_8bit_quantize_configs,
    default_8bit_quantize_registry,
)

from models.model_names import ModelError
from models.model_spec import ModelSpec, Quantization
from models.stateless_dropout import StatelessDropout

RANGE_DECAY = 0.9
BY_DEFAULT, BY_OUR_CONFIG, UNSUPPORTED = "by default", "by our config", "unsupported"

_BITS = 8
_LAYERS = tf.keras.layers
_REGISTRY = default_8bit_quantize_registry.Default8BitQuantizeRegistry()
_BATCH_NORM_HOSTS = (_LAYERS.Conv2D, _LAYERS.DepthwiseConv2D, _LAYERS.Dense)
_NO_ROUNDING = "as it is, since it does not change the values' range"
_PUT_BATCH_NORM = "put it right after a Conv2D, DepthwiseConv2D or Dense layer without activation"
_TAKE_RELU = "take ReLU or LeakyReLU"

_REWRITES = {
    _LAYERS.BatchNormalization: _PUT_BATCH_NORM,
    _LAYERS.GroupNormalization: f"take BatchNormalization and {_PUT_BATCH_NORM}",
    _LAYERS.LayerNormalization: f"take BatchNormalization and {_PUT_BATCH_NORM}",
    _LAYERS.ELU: _TAKE_RELU,
    _LAYERS.PReLU: _TAKE_RELU,
    _LAYERS.Rescaling: "leave it to the data set's preprocessing",
    _LAYERS.SeparableConv1D: "write it as Conv1D layers",
    _LAYERS.SeparableConv2D: "write it as DepthwiseConv2D and a 1x1 Conv2D",
    _LAYERS.LSTM: "take Conv1D layers",
    _LAYERS.GRU: "take Conv1D layers",
    _LAYERS.Lambda: "write it as layers of Keras",
    tf.keras.Model: "put its layers into the outer model, one by one",
}


class LayerPlan(NamedTuple):
    """What quantization does to a layer: its name, its class, one of three treatments, and a remark.

    The remark of an unsupported layer says what to use in its place.
    """

    layer: str
    kind: str
    treatment: str
    remark: str


class MovingRange(tfmot.quantization.keras.quantizers.MovingAverageQuantizer):
    """Rounds activations to the moving average of their range, which always contains 0, with decay `RANGE_DECAY`."""

    def __call__(self, inputs: tf.Tensor, training: bool, weights: dict, **kwargs) -> tf.Tensor:
        low, high = weights["min_var"], weights["max_var"]
        if training:
            smallest, largest = tf.minimum(tf.reduce_min(inputs), 0.0), tf.maximum(tf.reduce_max(inputs), 0.0)
            low.assign(RANGE_DECAY * low + (1 - RANGE_DECAY) * smallest)
            high.assign(RANGE_DECAY * high + (1 - RANGE_DECAY) * largest)
        return tf.quantization.fake_quant_with_min_max_vars(inputs, low, high, num_bits=_BITS)


def plan_quantization(model: tf.keras.Model) -> list[LayerPlan]:
    """What quantization would do to each layer of a Sequential or functional model, in the model's order."""
    return [_plan_layer(layer) for layer in model.layers if not isinstance(layer, _LAYERS.InputLayer)]


def build_quantized_spec(spec: ModelSpec, flag: str = "model") -> ModelSpec:
    """The specification of the same model, trained for 8-bit integers; its teacher stays a float model.

    With the same random seed, its first weights are those of the float model.

    Raises:
      ModelError: a layer cannot be quantized; the message names it and what to use in its place.
    """
    label = f"quantize=qat with {flag}={spec.name}"
    model = spec.build()
    if not isinstance(model, tf.keras.Sequential) and not model._is_graph_network:
        raise ModelError(f"{label}: expected a Sequential or functional model, got {type(model).__name__}")
    unsupported = [plan for plan in plan_quantization(model) if plan.treatment == UNSUPPORTED]
    if unsupported:
        fixes = "; ".join(f"{plan.layer} ({plan.kind}): {plan.remark}" for plan in unsupported)
        raise ModelError(f"{label}: cannot be quantized: {fixes}")
    if spec.input_dtype:
        raise ModelError(
            f"{label}: its Input has dtype {spec.input_dtype}, but TF-MOT rounds floats; start with "
            f"tf.keras.Input({spec.model_input_shape}), or train with --quantize=none and export int8"
        )
    # Single frozen weights of a layer that is trained would be trained by the copies that TF-MOT makes
    for layer in model.layers:
        moving = [getattr(layer, name, None) for name in ("moving_mean", "moving_variance")]  # of BatchNorm
        frozen = [weight for weight in layer.non_trainable_weights if all(weight is not each for each in moving)]
        if layer.trainable and frozen:
            name = frozen[0].name.split(":")[0]
            raise ModelError(
                f"{label}: {name} alone is frozen, in layer {layer.name} ({type(layer).__name__}) that is trained; "
                "freeze the whole layer (trainable=False), or train with --quantize=none"
            )
    try:
        float_model, quantized = _wrap_layers(spec.build)
    except (ValueError, RuntimeError, NotImplementedError, TypeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"{label}: cannot be quantized: {reason}") from error
    names = [variable.name for variable in quantized.weights]
    if any(names.count(variable.name) != 1 for variable in float_model.weights):
        raise ModelError(f"{label}: expected weights with names of their own, one name a layer")
    positions = tuple(names.index(variable.name) for variable in float_model.weights)
    build = functools.partial(build_quantized_model, spec.build)
    return dataclasses.replace(spec, build=build, quantization=Quantization(spec, positions))


def build_quantized_model(build: Callable[[], tf.keras.Model]) -> tf.keras.Model:
    """The model that `build` returns, wrapped for quantization-aware training, in any graph."""
    return _wrap_layers(build)[1]


@contextlib.contextmanager
def list_weights_as_loaded(model: tf.keras.Model) -> Iterator[None]:
    """In the block, each wrapped layer lists its weights as TF-MOT's own do that were read from a file.

    A file has a layer's weights by their position in its list. Of a layer that was wrapped when it was built already,
    the list has all trainable weights, then those that are rounded a second time; of one from a file, the latter alone.
    """
    wrappers = _list_wrappers(model)
    listed = [(layer, layer._trainable_weights) for wrapper in wrappers for layer in (wrapper, wrapper.layer)]
    for wrapper in wrappers:
        rounded = [weight for weight, _, _ in wrapper._weight_vars]
        wrapper._trainable_weights = rounded
        inner = wrapper.layer  # lists them, too, if it is frozen
        inner._trainable_weights = [each for each in inner._trainable_weights if all(each is not w for w in rounded)]
    try:
        yield
    finally:
        for layer, weights in listed:
            layer._trainable_weights = weights


def _list_wrappers(model: tf.keras.Model) -> list[tf.keras.layers.Layer]:
    return [layer for layer in model.layers if hasattr(layer, "_weight_vars")]


def _plan_layer(layer: tf.keras.layers.Layer) -> LayerPlan:
    def plan(treatment: str, remark: str) -> LayerPlan:
        return LayerPlan(layer.name, type(layer).__name__, treatment, remark)

    own = _find_own_config(layer)
    if own is not None:
        return plan(BY_OUR_CONFIG, own[1])
    if isinstance(layer, _LAYERS.BatchNormalization) and layer.inbound_nodes:
        host = layer.inbound_nodes[0].inbound_layers  # whose output it normalizes; TF-MOT knows it without activation
        if isinstance(host, _BATCH_NORM_HOSTS) and host.activation is tf.keras.activations.linear:
            stays_float = isinstance(host, _LAYERS.Dense)
            return plan(
                BY_DEFAULT, "in float, with the layer before" if stays_float else "folded into the layer before"
            )
    rewrites = [rewrite for kind, rewrite in _REWRITES.items() if isinstance(layer, kind)]
    if not rewrites and _REGISTRY.supports(layer):
        return plan(BY_DEFAULT, "")
    return plan(UNSUPPORTED, (rewrites or ["take a layer that can, or train with --quantize=none"])[0])


def _find_own_config(layer: tf.keras.layers.Layer):
    """Our quantize config for a layer that TF-MOT has none for, with what it does; None if it is left to TF-MOT."""
    if isinstance(layer, StatelessDropout | _LAYERS.MaxPooling1D):
        return default_8bit_quantize_configs.NoOpQuantizeConfig(), _NO_ROUNDING
    if type(layer) is _LAYERS.Conv1D:
        config = default_8bit_quantize_registry.Default8BitQuantizeConfig(["kernel"], ["activation"], False)
        return config, "its kernel with one scale; as a Conv2D over (1, steps) it has one a channel"
    return None


def _wrap_layers(build: Callable[[], tf.keras.Model]) -> tuple[tf.keras.Model, tf.keras.Model]:
    """(float model, the same wrapped), with the same values if built eagerly."""
    keras_api = tfmot.quantization.keras

    def annotate(layer):
        own = _find_own_config(layer)
        return keras_api.quantize_annotate_layer(layer, own[0] if own else None)

    float_model = build()
    annotated = tf.keras.models.clone_model(float_model, clone_function=annotate)
    # Cloning draws new weights. In a graph they have no values to copy, and the caller sets its own.
    if tf.executing_eagerly():
        annotated.set_weights(float_model.get_weights())
    with keras_api.quantize_scope():
        quantized = keras_api.quantize_apply(annotated)
    # Replaces TF-MOT's moving averages, whose decay is fixed, by `MovingRange`
    ours = MovingRange(_BITS, per_axis=False, symmetric=False, narrow_range=False)
    slow = tfmot.quantization.keras.quantizers.MovingAverageQuantizer
    for layer in quantized.layers:
        for activation in getattr(layer, "_quantize_activations", ()):
            if isinstance(activation.quantizer, slow):
                activation.quantizer = ours
        outputs = getattr(layer, "_output_quantizers", ())
        if outputs and isinstance(outputs[0], slow):
            layer._output_quantizers = [ours]
    # Lets no weight of a frozen layer be trained: TF-MOT's wrapper lists those that it rounds as its own to train. They
    # go back to their layer, before its others: so the order of `quantized.weights` stays, in which runs keep them
    for wrapper in _list_wrappers(quantized):
        if not wrapper.trainable:
            wrapper.layer._trainable_weights = [*wrapper._trainable_weights, *wrapper.layer._trainable_weights]
            wrapper._trainable_weights = []
    return float_model, quantized
