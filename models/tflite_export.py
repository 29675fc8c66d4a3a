"""Keras models to TFLite files: the one module that uses the TFLite converter.

    float32   as it is
    float16   weights in float16, computation in float32
    dynamic   weights in int8, activations rounded while it runs ("dynamic range"); arrays below 1,024 values stay float
    int8      weights and activations in int8, the activations' ranges taken from representative examples
    qat_int8  the same with the weights and ranges of quantization-aware training

All but qat_int8 start from the float model, if need be the one inside a quantization-aware model. A file takes one
preprocessed example, shape (1, *input_shape), as "x" and gives "logits", shape (1, num_classes). The batch size is
fixed because reshaping layers would otherwise add operations that look it up.
"""

import csv
import io
import re
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from models.model_names import EXPORT_FORMATS, EXPORT_IO, ModelError
from models.model_spec import ModelSpec
from models.on_device_training import FILE_SIGNATURES, SIGNATURES, build_training_module
from models.tflite_operators import find_select_operators

_INTEGER_FORMATS = ("int8", "qat_int8")
_LOCATION = re.compile(r"^.*?: error: (loc\(.*\): )?")  # of an operation, in the converter's errors


def convert_model(
    spec: ModelSpec,
    weights: tuple[np.ndarray, ...],
    export_format: str,
    io: str = "float32",
    representative: np.ndarray | None = None,
) -> bytes:
    """A TFLite file that maps one preprocessed example to its logits.

    Args:
      spec: the specification that has these weights, float or quantization-aware (`ModelSpec.of_weights`).
      weights: in the order of `spec.build().weights`.
      export_format: one of EXPORT_FORMATS.
      io: "float32", or "int8" for inputs and outputs in int8, whose scales and zero points stand in the file.
      representative: for int8 only, examples as stored, shape (n, *input_shape), which set the activations' ranges.

    Raises:
      ModelError: qat_int8 of a float model, int8 inputs of another format than int8 and qat_int8, int8 without
        representative examples, weights that are not finite, or a model that the converter refuses.
    """
    source, source_weights = find_reference(spec, weights, export_format)
    if io not in EXPORT_IO:
        raise ModelError(f"io={io}: expected one of {', '.join(EXPORT_IO)}")
    if io == "int8" and export_format not in _INTEGER_FORMATS:
        raise ModelError(f"io=int8 with {export_format}: only {' and '.join(_INTEGER_FORMATS)} compute in integers")
    if export_format == "int8" and (representative is None or len(representative) == 0):
        raise ModelError("int8: expected representative examples, got none; take some of a client's training examples")

    def configure(converter: tf.lite.TFLiteConverter) -> None:
        if export_format != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if export_format == "float16":
            converter.target_spec.supported_types = [tf.float16]
        if export_format == "int8":
            inputs = source.preprocess(representative).numpy()
            converter.representative_dataset = lambda: ([x[None]] for x in inputs)
            converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        if io == "int8":
            converter.inference_input_type = converter.inference_output_type = tf.int8

    module = _build_inference_module(source, source_weights)
    return _convert(module, ["serving_default"], configure, f"{export_format} of {source.name}")


def debug_quantization(
    spec: ModelSpec, weights: tuple[np.ndarray, ...], representative: np.ndarray, examples: np.ndarray
) -> list[dict[str, str]]:
    """What TFLite's QuantizationDebugger measures of the int8 file that `convert_model` makes, a row a layer.

    It computes each layer in integers and in floats from the same input and compares the outputs. There is nothing of
    the kind for qat_int8, whose ranges are in the model: the converter makes the integer model at once and leaves no
    float layers to compare with.

    Args:
      spec: as for `convert_model`, like the next two.
      weights: see there.
      representative: see there; these set the activations' ranges.
      examples: those that the layers are compared on, as stored, (n, *input_shape). Others than the representative
        ones also show what lies outside of the ranges and is cut off.

    Raises:
      ModelError: as `convert_model`.
    """
    source, source_weights = find_reference(spec, weights, "int8")
    inputs, compared = source.preprocess(representative).numpy(), source.preprocess(examples).numpy()

    def configure(converter: tf.lite.TFLiteConverter) -> None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([x[None]] for x in inputs)

    def debug(converter: tf.lite.TFLiteConverter) -> list[dict[str, str]]:
        debugger = tf.lite.experimental.QuantizationDebugger(
            converter=converter, debug_dataset=lambda: ([x[None]] for x in compared)
        )
        debugger.run()
        table = io.StringIO()
        debugger.layer_statistics_dump(table)
        return list(csv.DictReader(io.StringIO(table.getvalue())))

    module = _build_inference_module(source, source_weights)
    return _convert(module, ["serving_default"], configure, f"int8 of {source.name}", debug)


def find_reference(
    spec: ModelSpec, weights: tuple[np.ndarray, ...], export_format: str
) -> tuple[ModelSpec, tuple[np.ndarray, ...]]:
    """The Keras model that a file of this format is converted from, and should agree with, and its weights.

    Raises:
      ModelError: an unknown format, or qat_int8 of a float model.
    """
    if export_format not in EXPORT_FORMATS:
        raise ModelError(f"format {export_format}: expected one of {', '.join(EXPORT_FORMATS)}")
    if export_format == "qat_int8":
        if spec.quantization is None:
            raise ModelError(f"qat_int8: {spec.name} is a float model; train it with --quantize=qat, or take int8")
        return spec, weights
    if spec.quantization is None:
        return spec, weights
    return spec.quantization.float_spec, spec.quantization.strip(weights)


class TrainingFile(NamedTuple):
    """A file for on-device training.

    Attributes:
      content: of the file.
      weight_names: Keras's name of each weight that `get_weights` gives, {"weight_<i>": name}.
      select_operators: the operators of TensorFlow that it needs; with none, TFLite's own are enough.
    """

    content: bytes
    weight_names: dict[str, str]
    select_operators: tuple[str, ...]


def convert_training_module(
    spec: ModelSpec, weights: tuple[np.ndarray, ...], batch_size: int, part: str = "full"
) -> TrainingFile:
    """A TFLite file with the signatures train, infer, get_weights and set_weights of `models.on_device_training`.

    Where TFLite's own operators are not enough for a model, the file needs a runtime with the select operators of
    TensorFlow, and has the signatures save and restore as well.

    Args:
      spec: the specification that has these weights; of a quantization-aware one, the float model inside is taken.
      weights: in the order of `spec.build().weights`.
      batch_size: number of examples in one training step.
      part: what is trained, of TRAINED_PARTS.

    Raises:
      ModelError: a batch size below 1, the head of a model that does not end in dense layers, weights that are not
        finite, or a model that the converter refuses.
    """

    def configure(converter: tf.lite.TFLiteConverter) -> None:
        converter.experimental_enable_resource_variables = True

    def configure_with_select(converter: tf.lite.TFLiteConverter) -> None:
        configure(converter)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]

    module = build_training_module(spec, weights, batch_size, part)
    label = f"on-device training of {spec.name}"
    try:
        content = _convert(module, SIGNATURES, configure, label)
    except ModelError:
        content = _convert(module, (*SIGNATURES, *FILE_SIGNATURES), configure_with_select, label)
    return TrainingFile(content, module.weight_names, find_select_operators(content))


def _build_inference_module(spec: ModelSpec, weights: tuple[np.ndarray, ...]) -> tf.Module:
    model = spec.build()
    model.set_weights(weights)
    x = tf.TensorSpec((1, *spec.input_shape), tf.float32, name="x")
    module = tf.Module()
    module.weights = model.weights  # not the model itself: Keras would trace every layer of it for the saved model
    module.serving_default = tf.function(lambda x: {"logits": model(x, training=False)}, input_signature=[x])
    return module


def _convert(
    module: tf.Module,
    signatures: Sequence[str],
    configure: Callable[[tf.lite.TFLiteConverter], None],
    label: str,
    finish: Callable[[tf.lite.TFLiteConverter], Any] = lambda converter: converter.convert(),
) -> Any:
    """The file with these functions of the module, made from a saved model because that keeps their names.

    `finish` gets the converter while the saved model is there, and may return something else than the file.
    """
    if not all(np.isfinite(weight.numpy()).all() for weight in module.weights):
        # The converter turns NaN into a number, and infinite scales make the interpreter abort the process.
        raise ModelError(f"{label}: expected finite weights; the training diverged, take an earlier or another model")
    with tempfile.TemporaryDirectory(prefix="tflite_export_") as folder:
        # The converter differentiates nothing, so there is no need to keep gradients of our own.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        tf.saved_model.save(module, folder, {name: getattr(module, name) for name in signatures}, options)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=list(signatures))
        configure(converter)
        try:
            return finish(converter)
        except Exception as error:  # ConverterError, which has no public name, ValueError, RuntimeError
            reason = _LOCATION.sub("", (str(error).strip().splitlines() or [type(error).__name__])[0])
            raise ModelError(f"{label}: the TFLite converter refuses: {reason}") from error
