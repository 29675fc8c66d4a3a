"""The one module that uses the TFLite converter: from a saved model in a folder to a file in the same folder.

A job is made of plain values and files, so that it can be done in another process: some models crash the converter, or
make it take all memory.
"""

import csv
import io
import pathlib
import re
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from models.model_names import ModelError

# What GroupNorm, LayerNorm and the weights of attention are made of. In integers, sums of squares lose what tells
# groups apart, and the -1e9 that hides a position leaves one value for all scores.
NORMALIZING = (
    *("SUM", "MEAN", "SQUARE", "SQUARED_DIFFERENCE", "DIV", "RSQRT", "SOFTMAX"),
    *("ADD", "SUB", "MUL", "BROADCAST_TO", "RESHAPE"),
)
# Beside these, where a number such as -1e9 hides scores: what puts it in their place, and the product that scores are.
# (While ranges are measured, the sum is computed in the place of its input, whose range is then that of the sum.)
HIDING = ("SELECT", "SELECT_V2", "BATCH_MATMUL")
# What leads from the input to whole numbers, such as a row of an Embedding: in 8 bits, a 6 becomes 5.99, and that a 5.
LOOKING_UP = (
    *("STRIDED_SLICE", "SLICE", "SPLIT", "SPLIT_V", "UNPACK", "RESHAPE", "TRANSPOSE"),
    *("ADD", "SUB", "MUL", "DIV", "ABS", "NEG", "FLOOR", "CEIL", "ROUND", "MAXIMUM", "MINIMUM"),
)
TRAINING, TRAINING_WITH_SELECT, LAYERS = "training", "training_with_select", "int8_layers"
SAVED_MODEL, RESULT = "saved_model", "result"
REPRESENTATIVE, COMPARED = "representative.npy", "compared.npy"

_LOCATION = re.compile(r"^.*?: error: (loc\((.*?)\): )?")  # of an operation, in the converter's errors
_NO_OPERATION = re.compile(r"'tf\.(\w+)' op is neither a custom op nor a flex op")
_BINCOUNT = re.compile(r"\w*Bincount")
_PATH = re.compile(r'"([^"@:]+/[^"@:]+)')  # in a location: the name of an operation, which begins with its layers'


class ConverterJob(NamedTuple):
    """One call of the converter.

    Attributes:
      folder: has the model in SAVED_MODEL and gets RESULT. For int8, REPRESENTATIVE has preprocessed examples, float32
        (n, *input_shape); for LAYERS, COMPARED has others.
      signatures: the functions of the model that go into the file.
      export_format: of EXPORT_FORMATS, or TRAINING or TRAINING_WITH_SELECT for a file that trains; LAYERS for the
        table of the quantization debugger, as CSV, in place of a file.
      io: of EXPORT_IO.
      float_operators: TFLite's operators that stay in floats in an int8 file, by name; only with float inputs.
    """

    folder: str
    signatures: tuple[str, ...]
    export_format: str
    io: str = "float32"
    float_operators: tuple[str, ...] = ()


def run_converter(job: ConverterJob) -> None:
    """Does a job.

    Raises:
      ModelError: the converter refuses the model; one line, with the layer if the converter names it.
      OSError: the result cannot be written.
    """
    folder = pathlib.Path(job.folder)
    try:
        saved = str(folder / SAVED_MODEL)
        converter = tf.lite.TFLiteConverter.from_saved_model(saved, signature_keys=list(job.signatures))
        _configure(converter, job)
        if job.export_format == LAYERS:
            debugger, table = _build_debugger(converter, folder / COMPARED, job.float_operators), io.StringIO()
            debugger.run()
            debugger.layer_statistics_dump(table)
            result = table.getvalue().encode()
        elif job.float_operators:  # the debugger is TensorFlow's way to leave operators out of quantization
            debugger = _build_debugger(converter, folder / REPRESENTATIVE, job.float_operators)
            result = debugger.get_nondebug_quantized_model()
        else:
            result = converter.convert()
    except OSError:
        raise
    except Exception as error:  # ConverterError, which has no public name, ValueError, RuntimeError
        raise ModelError(describe_refusal(str(error).strip() or type(error).__name__)) from error
    (folder / RESULT).write_bytes(result)


def _configure(converter: tf.lite.TFLiteConverter, job: ConverterJob) -> None:
    operators = tf.lite.OpsSet
    if job.export_format in (TRAINING, TRAINING_WITH_SELECT):
        converter.experimental_enable_resource_variables = True
        if job.export_format == TRAINING_WITH_SELECT:
            converter.target_spec.supported_ops = [operators.TFLITE_BUILTINS, operators.SELECT_TF_OPS]
        return
    if job.export_format != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if job.export_format == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if job.export_format in ("int8", LAYERS):
        inputs = np.load(pathlib.Path(job.folder) / REPRESENTATIVE)
        converter.representative_dataset = lambda: ([x[None]] for x in inputs)
    if job.export_format == "int8" and not job.float_operators:
        converter.target_spec.supported_ops = [operators.TFLITE_BUILTINS_INT8]
    if job.io == "int8":
        converter.inference_input_type = converter.inference_output_type = tf.int8


def _build_debugger(
    converter: tf.lite.TFLiteConverter, compared: pathlib.Path, float_operators: tuple[str, ...]
) -> tf.lite.experimental.QuantizationDebugger:
    examples = np.load(compared)
    options = tf.lite.experimental.QuantizationDebugOptions(denylisted_ops=list(float_operators))
    return tf.lite.experimental.QuantizationDebugger(
        converter=converter, debug_dataset=lambda: ([x[None]] for x in examples), debug_options=options
    )


def read_measured_layers(result: bytes) -> list[dict[str, str]]:
    """The table that a job for LAYERS makes, a row a layer."""
    return list(csv.DictReader(io.StringIO(result.decode())))


def describe_refusal(text: str) -> str:
    """An error of the converter in one line, with the layer if it names one, and the way out if there is one."""
    first = text.splitlines()[0]
    found = _LOCATION.match(first)
    named = _PATH.search(found[2] or "") if found else None
    layers = "/".join(named[1].split("/")[1:-1]) if named else ""
    where = f" layer {layers}" if layers else ""
    lacking, advice = _NO_OPERATION.search(first), ""
    if lacking:
        advice = "; write it with other operations, in float32, or do it before the model"
        if _BINCOUNT.fullmatch(lacking[1]):
            advice = "; take tf.one_hot in place of CategoryEncoding or tf.math.bincount"
    return f"the TFLite converter refuses{where}: {_LOCATION.sub('', first)}{advice}"
