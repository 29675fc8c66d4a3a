"""Quantization, layer by layer: the rows of TFLite's QuantizationDebugger, and what the report says of the worst.

Imports no TensorFlow.
"""

import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.runs.tables import format_cell, write_table

NUM_WORST = 3
EXPLANATION = (
    "TFLite's QuantizationDebugger ran examples of the global test set through a copy of each `int8` model in which "
    "every layer is computed twice from the same input: in integers and in floats. The error of a layer is the root of "
    "its mean squared difference, in steps of its output's scale. Rounding the output makes 0.29 (1 / sqrt(12)), and "
    "rounded weights add a little. A layer far above that loses more, most often because values lie outside of the "
    "range that the representative examples set. `<model>.int8.layers.csv` has all layers."
)
NOT_OF_QAT = (
    "The debugger cannot look into `qat_int8`: its ranges come from the training, so the converter makes the integers "
    "at once, without the float copy that it compares with."
)


class LayerError(NamedTuple):
    """What quantization does to the output of one layer; its fields are the columns of `<model>.int8.layers.csv`.

    Attributes:
      layer: its name, as far as the converter kept it.
      operator: such as "CONV_2D".
      error_in_steps: root of the mean squared error, divided by `scale`.
      elements: numbers in the output.
      mean_error: of the output in integers, as real numbers, minus that in floats; means over the examples.
      standard_deviation: of that.
      largest_error: of its absolute values, the mean over the examples.
      mean_squared_error: of the same.
      scale: the step of the output.
      zero_point: of the output.
      tensor: the converter's whole name of the output.
    """

    layer: str
    operator: str
    error_in_steps: float
    elements: int
    mean_error: float
    standard_deviation: float
    largest_error: float
    mean_squared_error: float
    scale: float
    zero_point: int
    tensor: str


def read_layers(rows: Iterable[Mapping[str, str]]) -> list[LayerError]:
    """Reads rows as `models.tflite_export.debug_quantization` returns them, in the order of the layers."""
    return [_read_layer(row) for row in rows]


def _read_layer(row: Mapping[str, str]) -> LayerError:
    mean_squared_error, scale = float(row["mean_squared_error"]), float(row["scale"])
    return LayerError(
        layer=_name_layer(row["tensor_name"]),
        operator=row["op_name"],
        error_in_steps=math.sqrt(mean_squared_error) / scale if scale else math.nan,
        elements=round(float(row["num_elements"])),
        mean_error=float(row["mean_error"]),
        standard_deviation=float(row["stddev"]),
        largest_error=float(row["max_abs_error"]),
        mean_squared_error=mean_squared_error,
        scale=scale,
        zero_point=round(float(row["zero_point"])),
        tensor=row["tensor_name"],
    )


def _name_layer(tensor: str) -> str:
    """The layer in a name like "sequential/convolution_1/BiasAdd;sequential/convolution_1/Conv2D"."""
    parts = tensor.partition(";")[0].split("/")
    if len(parts) == 1:  # the converter calls the last tensor after the signature
        return "output"
    return "/".join(parts[1:-1]) or parts[0]


def write_layers(path: pathlib.Path, layers: Sequence[LayerError]) -> None:
    """Writes a CSV file with a row a layer."""
    write_table(path, LayerError._fields, [[format_cell(value) for value in layer] for layer in layers])


def list_worst(layers: Sequence[LayerError]) -> list[LayerError]:
    """The layers with the largest errors in steps, the worst first."""
    known = [layer for layer in layers if math.isfinite(layer.error_in_steps)]
    return sorted(known, key=lambda layer: -layer.error_in_steps)[:NUM_WORST]


def tabulate_worst(layers: Mapping[str, Sequence[LayerError]]) -> list[tuple[str, ...]]:
    """The worst layers of each file, by the file's name, under their headings."""
    rows = [("file", "worst layers", "operator", "error in steps", "largest error")]
    for file, of_file in layers.items():
        rows += [
            (file, layer.layer, layer.operator, f"{layer.error_in_steps:.2f}", f"{layer.largest_error:.2g}")
            for layer in list_worst(of_file)
        ]
    return rows
