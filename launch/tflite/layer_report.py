"""Quantization, layer by layer: the rows of TFLite's QuantizationDebugger, and the worst of them.

Imports no TensorFlow.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

NUM_WORST = 3


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
    layers = []
    for row in rows:
        mean_squared_error, scale = float(row["mean_squared_error"]), float(row["scale"])
        # A tensor is called such as "sequential/convolution_1/BiasAdd;sequential/convolution_1/Conv2D".
        parts = row["tensor_name"].partition(";")[0].split("/")
        # The converter calls the last tensor after the signature.
        name = "output" if len(parts) == 1 else "/".join(parts[1:-1]) or parts[0]
        layers.append(
            LayerError(
                layer=name,
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
        )
    return layers


def list_worst(layers: Sequence[LayerError]) -> list[LayerError]:
    """The layers with the largest errors in steps, the worst first."""
    known = [layer for layer in layers if math.isfinite(layer.error_in_steps)]
    return sorted(known, key=lambda layer: -layer.error_in_steps)[:NUM_WORST]
