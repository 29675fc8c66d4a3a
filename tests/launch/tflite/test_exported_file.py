"""A TFLite file of one dense layer against its arithmetic by hand."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from launch.tflite.export_measurement import (
    ExportedFile,
    TensorType,
    dequantize,
    describe_signatures,
    quantize,
    summarize_times,
)
from models.tflite_export import convert_model, convert_training_module

X = np.array([[0, 0, 0, 0], [1, 2, 3, 4], [-1, 0, 0.5, 1]], np.float32)


@pytest.fixture(scope="module")
def weights():
    return np.arange(12, dtype=np.float32).reshape(4, 3) / 12, np.array([0.5, 0, -0.5], np.float32)


@pytest.fixture(scope="module")
def float_file(linear_spec, weights):
    return ExportedFile(convert_model(linear_spec, weights, "float32"))


def test_logits_of_a_float_file(float_file, weights):
    assert float_file.input == TensorType((1, 4), "float32", None, None)
    assert float_file.output == TensorType((1, 3), "float32", None, None)
    np.testing.assert_allclose(float_file.compute_outputs(X), X @ weights[0] + weights[1], atol=1e-5)
    assert float_file.compute_outputs(X[:0]).shape == (0, 3)


def test_logits_of_an_integer_file_are_real_numbers(linear_spec, weights):
    file = ExportedFile(convert_model(linear_spec, weights, "int8", "int8", representative=X))
    assert (file.input.dtype, file.output.dtype) == ("int8", "int8")
    assert file.input.scale == pytest.approx(5 / 255, rel=1e-3)  # the examples lie between -1 and 4
    assert -1.02 <= (-128 - file.input.zero_point) * file.input.scale <= -0.98
    np.testing.assert_allclose(file.compute_outputs(X), X @ weights[0] + weights[1], atol=0.1)


def test_values_are_rounded_and_cut_off():
    tensor = TensorType((1, 5), "int8", 0.5, 10)
    values = np.array([[0, 0.26, -0.5, 1000, -1000]], np.float32)
    stored = quantize(values, tensor)
    assert (stored.dtype, stored.tolist()) == (np.int8, [[10, 11, 9, 127, -128]])
    np.testing.assert_array_equal(dequantize(stored, tensor), [[0, 0.5, -0.5, 58.5, -69]])


def test_latency_by_hand(float_file):
    """1 to 5 ms: the quartiles are the second and the fourth; of a file it is a time."""
    assert summarize_times([0.001, 0.002, 0.003, 0.004, 0.005]) == pytest.approx((3, 2, 4))
    latency = float_file.measure_latency(X[1])
    assert 0 < latency.lower_quartile_ms <= latency.median_ms <= latency.upper_quartile_ms < 1000


@given(st.lists(st.floats(1e-6, 1e-2), min_size=4, max_size=50), st.floats(1, 1e6), st.floats(1, 1e6))
def test_how_long_an_outlier_takes_changes_no_latency(seconds, outlier, longer):
    assert summarize_times([*seconds, outlier]) == summarize_times([*seconds, longer])


def build_softsign():
    """A model whose training takes TensorFlow's select operators, and signatures with a path, which is a string."""
    layers = tf.keras.layers
    return tf.keras.Sequential([tf.keras.Input((4,)), layers.Dense(5, activation="softsign"), layers.Dense(3)])


def test_signatures_of_a_training_file(linear_spec):
    spec = dataclasses.replace(linear_spec, build=build_softsign)
    signatures = describe_signatures(convert_training_module(spec, tuple(build_softsign().get_weights()), 8).content)
    assert {"get_weights", "infer", "set_weights", "train", "save"} <= signatures.keys()
    assert list(signatures) == sorted(signatures)
    kernel = {"shape": [4, 5], "dtype": "float32"}
    assert signatures["get_weights"]["outputs"]["weight_0"] == signatures["set_weights"]["inputs"]["weight_0"] == kernel
    assert signatures["train"]["inputs"] == {
        "learning_rate": {"shape": [], "dtype": "float32"},
        "x": {"shape": [8, 4], "dtype": "float32"},
        "y": {"shape": [8], "dtype": "int32"},
    }
    assert signatures["save"]["inputs"] == {"path": {"shape": [], "dtype": "string"}}
