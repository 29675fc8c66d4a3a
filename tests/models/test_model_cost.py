"""Parameters and multiply-accumulates against hand counts: outputs x inputs of each, layer by layer."""

import logging.handlers

import pytest
import tensorflow as tf
from small_formats import make_format, make_spec

from models.model_cost import count_multiply_accumulates, count_parameters
from models.model_spec import ModelSpec

IMAGE = 14 * 14 * 32 * 9 * 1 + 7 * 7 * 16 * 9 * 32 + 4 * 4 * 16 * 9 * 16 + 2 * 2 * 64 * 9 * 16 + 256 * 10
SENSOR = 64 * 64 * 3 * 9 + 32 * 256 * 3 * 64 + 32 * 256 * 128 + 128 * 6
PERCEPTRON = 20 * 64 + 64 * 64 + 64 * 3


def test_nothing_is_printed(capfd):
    """The first test here, since TensorFlow gives each of its warnings once."""
    records = logging.handlers.BufferingHandler(1000)
    logger = tf.get_logger()
    level = logger.level
    logger.addHandler(records)
    count_multiply_accumulates(make_spec("auto", (8, 8, 1)))
    logger.removeHandler(records)
    assert not records.buffer
    assert logger.level == level
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("input_shape", "num_classes", "multiply_accumulates", "parameters"),
    [
        ((28, 28, 1), 10, IMAGE, 19_114),
        ((128, 9), 6, SENSOR, 1_100_678),
        ((20,), 3, PERCEPTRON, 5_699),
    ],
    ids=["image_student", "sensor_student", "perceptron"],
)
@pytest.mark.parametrize("quantize", ["none", "qat"])
def test_students(input_shape, num_classes, multiply_accumulates, parameters, quantize):
    """The quantization-aware model has more weights, but on a phone it is the same model."""
    spec = make_spec("auto", input_shape, "float32", num_classes, quantize=quantize)
    assert count_multiply_accumulates(spec) == multiply_accumulates
    assert count_parameters(spec) == parameters


LAYERS = tf.keras.layers


@pytest.mark.parametrize(
    ("input_shape", "layers", "multiply_accumulates", "parameters"),
    [
        ((10, 3), lambda: [LAYERS.Conv1D(4, 3), LAYERS.Flatten()], 8 * 4 * 3 * 3, 40),
        ((6, 6, 3), lambda: [LAYERS.DepthwiseConv2D(3), LAYERS.Flatten()], 4 * 4 * 3 * 9, 30),
        ((6, 6, 2), lambda: [LAYERS.Conv2D(4, 3, groups=2), LAYERS.Flatten()], 4 * 4 * 4 * 9 * 1, 40),
        ((5,), lambda: [LAYERS.Dense(4, use_bias=False), LAYERS.BatchNormalization(), LAYERS.ReLU()], 5 * 4, 20 + 16),
    ],
    ids=["conv1d", "depthwise", "grouped", "batch_norm"],
)
def test_layers(input_shape, layers, multiply_accumulates, parameters):
    spec = ModelSpec(
        "own",
        lambda: tf.keras.Sequential([tf.keras.Input(input_shape), *layers()]),
        make_format(input_shape, "float32", 4),
    )
    assert count_multiply_accumulates(spec) == multiply_accumulates
    assert count_parameters(spec) == parameters
