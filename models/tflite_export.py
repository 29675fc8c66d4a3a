"""Keras models to TFLite files: what of a model goes into which file, for the converter to make.

    float32   as it is
    float16   weights in float16, computation in float32
    dynamic   weights in int8, activations rounded while it runs ("dynamic range"); arrays below 1,024 values stay float
    int8      weights and activations in int8, the activations' ranges taken from representative examples; in models
              with GroupNorm, attention or a softmax with a mask, what normalizes stays in floats, and in those that
              make whole numbers of their input, to look something up, what leads to these
    qat_int8  the same with the weights and ranges of quantization-aware training

All but qat_int8 start from the float model, if need be the one inside a quantization-aware model. A file takes one
preprocessed example, shape (1, *input_shape), as "x" and gives "logits", shape (1, num_classes). The batch size is
fixed because reshaping layers would otherwise add operations that look it up. Where a model's inputs are standardized,
the file does that first, in float32 in every format: rounded to 16 or 8 bits, means and inputs of features with unlike
scales would lose all that tells examples apart.
"""

import collections
import functools
import pathlib
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

from datasets.own_objects import describe_failure
from models.input_dtypes import takes_whole_numbers
from models.layer_numbers import number_layers_anew
from models.model_names import EXPORT_FORMATS, EXPORT_IO, ModelError
from models.model_spec import ModelSpec
from models.on_device_training import FILE_SIGNATURES, PLAIN, SIGNATURES, LocalStep, build_training_module
from models.recurrent_layers import find_loops, find_operations, list_nodes, use_loops, write_out_steps
from models.tflite_converter import (
    COMPARED,
    HIDING,
    LAYERS,
    LOOKING_UP,
    NORMALIZING,
    REPRESENTATIVE,
    RESULT,
    SAVED_MODEL,
    TRAINING,
    TRAINING_WITH_SELECT,
    ConverterJob,
    read_measured_layers,
    run_converter,
)

_INTEGER_FORMATS = ("int8", "qat_int8")
_TABLES = r"(Lookup|(Mutable)?Hash)Table\w*"  # operations of StringLookup, IntegerLookup, TextVectorization, tf.lookup
_FAILED_LAYER = re.compile(r"Exception encountered when calling layer '([^']+)' \(type (\w+)\)\.?")
_NORMALIZING_LAYERS = (tf.keras.layers.GroupNormalization, tf.keras.layers.MultiHeadAttention)
_LEAST_HIDING = 1e3  # far beyond scores; usual are 1e4 and 1e9


class Converter(NamedTuple):
    """What does the jobs of the converter.

    Attributes:
      run: does one; raises ModelError, one line, if it cannot be done.
      folder: where the files of the jobs lie meanwhile; None for the system's temporary folder.
    """

    run: Callable[[ConverterJob], None] = run_converter
    folder: str | None = None


HERE = Converter()  # in this process


def convert_model(
    spec: ModelSpec,
    weights: tuple[np.ndarray, ...],
    export_format: str,
    io: str = "float32",
    representative: np.ndarray | None = None,
    converter: Converter = HERE,
) -> bytes:
    """A TFLite file that maps one preprocessed example to its logits.

    Args:
      spec: the specification that has these weights, float or quantization-aware (`ModelSpec.of_weights`).
      weights: in the order of `spec.build().weights`.
      export_format: one of EXPORT_FORMATS.
      io: "float32", or "int8" for inputs and outputs in int8, whose scales and zero points stand in the file.
      representative: for int8 only, examples as stored, shape (n, *input_shape), which set the activations' ranges.
      converter: does the conversion.

    Raises:
      ModelError: qat_int8 of a float model, int8 inputs of another format than int8 and qat_int8, of standardized
        features or of whole numbers that are cast inside, int8 without representative examples, weights that are not
        finite, a model with a stateful layer, int8 of one that computes in loops, or a model that the converter cannot
        convert.
      OSError: the files of the conversion cannot be written.
    """
    source, source_weights = find_reference(spec, weights, export_format)
    if io not in EXPORT_IO:
        raise ModelError(f"io={io}: expected one of {', '.join(EXPORT_IO)}")
    if io == "int8" and export_format not in _INTEGER_FORMATS:
        raise ModelError(f"io=int8 with {export_format}: only {' and '.join(_INTEGER_FORMATS)} compute in integers")
    if io == "int8" and source.standardization is not None:
        raise ModelError(
            f"io=int8 with {export_format}: one scale of 8 bits for features that are standardized; expected io=float32"
        )
    if export_format == "int8" and (representative is None or len(representative) == 0):
        raise ModelError("int8: expected representative examples, got none; take some of a client's training examples")

    label = f"{export_format} of {source.name}"
    arrays = {REPRESENTATIVE: source.preprocess(representative).numpy()} if export_format == "int8" else {}
    if io == "int8" and takes_whole_numbers(source.input_dtype) and np.ptp([0, *arrays[REPRESENTATIVE].flat]) != 255:
        problem = f"its Input has dtype {source.input_dtype}, whose whole numbers 8 bits with a scale do not keep"
        raise ModelError(f"io=int8 with {label}: {problem}; expected io=float32")
    module = say_who_fails(label, lambda: _build_inference_module(source, source_weights, arrays.get(REPRESENTATIVE)))
    if io == "int8" and module.float_operators:
        what = "normalizes" if set(NORMALIZING) <= set(module.float_operators) else "leads to whole numbers"
        raise ModelError(f"{label}: what {what} stays in floats, and so do inputs and outputs; leave io=int8 out")
    content = _convert(module, ("serving_default",), export_format, label, converter, arrays, io)
    if source.standardization is None:
        return content
    # Not converted with the model: in float16 a mean of 1e6 would be infinite. In int8 the input gets one scale for all
    # features, so that those of scale 1 vanish beside one of 1e6, and the factors are multiplied into the first layer's
    # weights, which then have unlike scales themselves.
    scaling = _build_module(source, lambda x: {"scaled": source.standardize(x)})
    return _put_first(_convert(scaling, ("serving_default",), "float32", label, converter), content)


def debug_quantization(
    spec: ModelSpec,
    weights: tuple[np.ndarray, ...],
    representative: np.ndarray,
    examples: np.ndarray,
    converter: Converter = HERE,
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
      converter: does the conversion.

    Raises:
      ModelError: as `convert_model`.
    """
    source, source_weights = find_reference(spec, weights, "int8")
    arrays = {
        REPRESENTATIVE: source.preprocess(representative).numpy(),
        COMPARED: source.preprocess(examples).numpy(),
    }
    label = f"the layers of int8 of {source.name}"
    module = say_who_fails(label, lambda: _build_inference_module(source, source_weights, arrays[REPRESENTATIVE]))
    return read_measured_layers(_convert(module, ("serving_default",), LAYERS, label, converter, arrays))


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
    spec: ModelSpec,
    weights: tuple[np.ndarray, ...],
    batch_size: int,
    part: str = "full",
    examples: np.ndarray | None = None,
    converter: Converter = HERE,
    step: LocalStep = PLAIN,
) -> TrainingFile:
    """A TFLite file with the signatures train, infer, get_weights and set_weights of `models.on_device_training`.

    Where TFLite's own operators are not enough for a model, the file needs a runtime with the select operators of
    TensorFlow, and has the signatures save and restore as well.

    Args:
      spec: the specification that has these weights; of a quantization-aware one, the float model inside is taken.
      weights: in the order of `spec.build().weights`.
      batch_size: number of examples in one training step.
      part: what is trained, of TRAINED_PARTS.
      examples: as stored, (n, *input_shape); recurrent layers are written out step by step where that does not change
        the answers for these, and need no select operators then. None leaves them as loops.
      converter: does the conversion.
      step: what a step of `train` does with a gradient.

    Raises:
      ModelError: a batch size below 1, an unknown optimizer, the head of a model that does not end in dense layers,
        weights that are not finite, a model with a stateful layer, or one that the converter cannot convert.
      OSError: the files of the conversion cannot be written.
    """

    label = f"on-device training of {spec.name}"
    build = functools.partial(build_training_module, spec, weights, batch_size, part, examples, step)
    module = say_who_fails(label, build, False)
    try:
        content = _convert(module, SIGNATURES, TRAINING, label, converter)
    except ModelError:
        signatures = (*SIGNATURES, *FILE_SIGNATURES)
        content = _convert(module, signatures, TRAINING_WITH_SELECT, label, converter)
    return TrainingFile(content, module.weight_names, find_select_operators(content))


def _build_inference_module(
    spec: ModelSpec, weights: tuple[np.ndarray, ...], representative: np.ndarray | None
) -> tf.Module:
    """A module with the function that a file has; with `representative` examples, one that can be quantized."""
    with number_layers_anew():  # so that an error calls a layer as the user does
        model = spec.build()
    model.set_weights(weights)
    use_loops(model)
    left = [] if representative is None else write_out_steps(model, representative)
    module = _build_module(spec, lambda x: {"logits": model(x, training=False)})
    module.weights = model.weights  # not the model itself: Keras would trace every layer of it for the saved model
    if representative is None:
        return module
    function = module.serving_default.get_concrete_function()
    nodes = list_nodes(function)
    if any(isinstance(part, _NORMALIZING_LAYERS) for part in model.submodules):
        module.float_operators = NORMALIZING
    elif _hides_scores(function, nodes):
        module.float_operators = (*NORMALIZING, *HIDING)
    # What makes a whole number of what is none, as an Embedding does of a column of categories.
    casts = [[tf.as_dtype(node.attr[name].type) for name in ("SrcT", "DstT")] for node in nodes if node.op == "Cast"]
    if any(taken.is_floating and given.is_integer for taken, given in casts):
        module.float_operators = tuple(dict.fromkeys((*module.float_operators, *LOOKING_UP)))
    if loops := find_loops(function):
        # The converter would crash.
        reasons = f" ({'; '.join(left)})" if left else ""
        raise ModelError(
            f"layer {', '.join(loops)} computes in a loop, which cannot be quantized{reasons}; take dynamic"
        )
    return module


def _build_module(spec: ModelSpec, compute: Callable[[tf.Tensor], Mapping[str, tf.Tensor]]) -> tf.Module:
    """A module with the function that a file has, of one preprocessed example."""
    x = tf.TensorSpec((1, *spec.model_input_shape), spec.model_input_dtype, name="x")
    module = tf.Module()
    module.weights, module.float_operators = [], ()
    module.serving_default = tf.function(compute, input_signature=[x])
    return module


def _hides_scores(function: tf.types.experimental.ConcreteFunction, nodes: Sequence[tf.compat.v1.NodeDef]) -> bool:
    """Whether a traced function has a softmax, and a number so large that it can only take a score out of it.

    Such are the masks of Keras's Attention, AdditiveAttention and Softmax, and of attention written by hand.
    """
    if not any(node.op == "Softmax" for node in nodes):
        return False
    numbers = [tf.make_ndarray(node.attr["value"].tensor) for node in nodes if node.op == "Const"]
    # What was computed before the function was traced, such as a causal mask, comes in beside the weights.
    numbers += [each.numpy() for each in function.captured_inputs if each.dtype.is_floating]
    return any(each.dtype.kind == "f" and np.abs(each).max(initial=0.0) >= _LEAST_HIDING for each in numbers)


def _convert(
    module: tf.Module,
    signatures: Sequence[str],
    export_format: str,
    label: str,
    converter: Converter,
    arrays: Mapping[str, np.ndarray] = {},
    io: str = "float32",
) -> bytes:
    """The result of a job with these functions of the module, saved as a model because that keeps their names."""
    if not all(np.isfinite(weight.numpy()).all() for weight in module.weights):
        # The converter turns NaN into a number, and infinite scales make the interpreter abort the process.
        raise ModelError(f"{label}: expected finite weights; the training diverged, take an earlier or another model")
    with tempfile.TemporaryDirectory(prefix="tflite_export_", dir=converter.folder) as name:
        folder = pathlib.Path(name)
        say_who_fails(label, lambda: _save(module, signatures, folder / SAVED_MODEL))
        for file, array in arrays.items():
            np.save(folder / file, array)
        floats = tuple(getattr(module, "float_operators", ()))
        job = ConverterJob(name, tuple(signatures), export_format, io, floats)
        say_who_fails(label, lambda: converter.run(job))
        return (folder / RESULT).read_bytes()


def _save(module: tf.Module, signatures: Sequence[str], folder: pathlib.Path) -> None:
    functions = [getattr(module, name).get_concrete_function() for name in signatures]
    tables = [name for function in functions for name in find_operations(function, _TABLES)]
    if tables:
        layer = tables[0].removesuffix("/None_Lookup")
        problem = "looks up in a table, which a TFLite file of numbers cannot hold"
        raise ModelError(f"layer {layer} {problem}; look up before the model, and give it the numbers")
    # Those that a layer keeps where Keras does not look for weights, too.
    module.captured = [variable for function in functions for variable in function.graph.variables]
    # The converter differentiates nothing, so there is no need to keep gradients of our own.
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    try:
        tf.saved_model.save(module, str(folder), {name: getattr(module, name) for name in signatures}, options)
    except tf.errors.OpError as error:  # TensorFlow's own word for a full disk
        raise OSError(f"{folder.parent}: cannot write there: {error.message.splitlines()[0]}") from error


def say_who_fails(label: str, act: Callable, names_model: bool = True):
    """`act()`, whose errors become a ModelError of one line that begins with the label.

    The user's layers may raise anything when they are traced. OSErrors stay as they are.

    Args:
      label: the file and the model.
      act: traces, saves or converts.
      names_model: False if what it raises as a ModelError begins with a label of its own.
    """
    try:
        return act()
    except ModelError as error:
        raise (ModelError(f"{label}: {error}") if names_model else error) from error
    except OSError:
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(f"{label}: {describe_failed_call(error)}") from error


def describe_failed_call(error: BaseException) -> str:
    """An error of the user's layers in one line, with the innermost layer that Keras names, and the way out."""
    named = list(_FAILED_LAYER.finditer(str(error)))
    if not named:
        return f"failed with {describe_failure(error)}"
    kind = type(error).__name__
    after = [line.strip() for line in str(error)[named[-1].end() :].splitlines() if line.strip()]
    raised = [line for line in after if line.startswith(f"{kind}: ")] or [f"{kind}: {line}" for line in after]
    reason = (raised or [kind])[0].partition(" for '{{node ")[0]  # what follows is of the graph
    cause = f"layer {named[-1][1]} ({named[-1][2]}) fails as a file calls it: {reason}"
    if isinstance(error, tf.errors.OperatorNotAllowedInGraphError):
        return f"{cause.partition(' You can attempt')[0]}; write it with tf.where, tf.cond or tf.while_loop"
    return f"{cause}; a file takes one example at a time, so let the layer keep the batch axis"


# Which operators a TFLite file needs, read from the file itself and not from how an interpreter would run it.

_SELECT = "Flex"  # begins the names of TensorFlow's operators, which the select operators add to TFLite's
_NAMES = {number: name for name, number in vars(schema.BuiltinOperator).items() if name.isupper()}


def list_operators(content: bytes) -> dict[str, int]:
    """How often each operator occurs in the functions of a file; one that TFLite lacks has the name of its own."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    names = [
        # Files of older writers have the number in a field of one byte, which newer ones fill, too.
        code.customCode.decode() if code.customCode else _NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)]
        for code in model.operatorCodes
    ]
    used = [names[operator.opcodeIndex] for subgraph in model.subgraphs for operator in subgraph.operators]
    return dict(sorted(collections.Counter(used).items()))


def find_select_operators(content: bytes) -> tuple[str, ...]:
    """The operators of TensorFlow that a file needs, by TensorFlow's names; none if TFLite's own are enough."""
    return tuple(name.removeprefix(_SELECT) for name in list_operators(content) if name.startswith(_SELECT))


def _put_first(first: bytes, content: bytes) -> bytes:
    """The file that computes `content` of what `first` gives; each has one function, of one input and one output."""
    added, model = (flatbuffer_utils.convert_bytearray_to_object(bytearray(each)) for each in (first, content))
    [before], [after] = added.subgraphs, model.subgraphs
    num_codes, num_tensors = len(model.operatorCodes), len(after.tensors)
    for tensor in before.tensors:
        model.buffers.append(added.buffers[tensor.buffer])  # the others are notes of the converter's
        tensor.name, tensor.buffer = b"standardization/" + tensor.name, len(model.buffers) - 1
    # What the first gives is what the second gets; a further input that an operator leaves out has the number -1.
    numbers = {-1: -1, **{number: number + num_tensors for number in range(len(before.tensors))}}
    numbers[int(before.outputs[0])] = int(after.inputs[0])
    for operator in before.operators:
        operator.opcodeIndex += num_codes
        operator.inputs, operator.outputs = (
            [numbers[int(each)] for each in taken] for taken in (operator.inputs, operator.outputs)
        )
    model.operatorCodes += added.operatorCodes
    after.tensors += before.tensors
    after.operators = [*before.operators, *after.operators]
    after.inputs = [numbers[int(before.inputs[0])]]
    for signature in model.signatureDefs:
        for named in signature.inputs:
            named.tensorIndex = after.inputs[0]
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))
