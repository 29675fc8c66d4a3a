"""The rows of the quantization debugger, against numbers by hand."""

import pytest

from launch.tflite.export_report import list_worst, read_layers


def make_row(tensor="sequential/conv/BiasAdd;sequential/conv/Conv2D", squared="0.04", scale="0.5"):
    return {
        "op_name": "CONV_2D",
        "tensor_idx": "7",
        "num_elements": "64.0",
        "stddev": "0.2",
        "mean_error": "-0.01",
        "max_abs_error": "0.3",
        "mean_squared_error": squared,
        "scale": scale,
        "zero_point": "-3",
        "tensor_name": tensor,
    }


def test_errors_are_in_steps_of_the_scale():
    [layer] = read_layers([make_row()])
    assert layer.error_in_steps == pytest.approx(0.4)  # 0.2 / 0.5
    assert (layer.layer, layer.operator, layer.elements, layer.zero_point) == ("conv", "CONV_2D", 64, -3)
    assert (layer.mean_error, layer.standard_deviation, layer.largest_error) == (-0.01, 0.2, 0.3)


@pytest.mark.parametrize(
    ("tensor", "name"),
    [
        ("StatefulPartitionedCall:0", "output"),
        ("model/block_1/conv/Relu", "block_1/conv"),
        ("sequential/flatten", "sequential"),
    ],
)
def test_layers_have_short_names(tensor, name):
    assert read_layers([make_row(tensor)])[0].layer == name


def test_the_worst_come_first_and_what_is_no_number_not_at_all():
    squares = ("0.01", "0.09", "0.04", "nan", "0.16")
    layers = read_layers([*(make_row(squared=squared) for squared in squares), make_row(scale="0")])
    assert [layer.mean_squared_error for layer in list_worst(layers)] == [0.16, 0.09, 0.04]
