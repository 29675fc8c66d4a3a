"""What TFLite's QuantizationDebugger measures of a dense layer, where the errors are known."""

import numpy as np
import pytest

from models.tflite_export import debug_quantization


@pytest.fixture(scope="module")
def examples():
    return np.random.default_rng(0).uniform(-1, 1, (100, 4)).astype(np.float32)


@pytest.fixture
def measure(linear_spec, examples):
    """(representative examples) -> root mean squared error of the one layer, in steps of its scale."""
    weights = np.arange(12, dtype=np.float32).reshape(4, 3) / 12, np.array([0.5, 0, -0.5], np.float32)

    def run(representative):
        [row] = debug_quantization(linear_spec, weights, representative, examples)
        assert (row["op_name"], float(row["num_elements"])) == ("FULLY_CONNECTED", 3)
        return np.sqrt(float(row["mean_squared_error"])) / float(row["scale"])

    return run


def test_with_ranges_that_fit_there_is_rounding_alone(measure, examples):
    # Rounding the output to a step makes an error of 1 / sqrt(12) = 0.29 steps; the rounded weights add to that.
    assert 0.25 < measure(examples) < 0.6


def test_values_outside_of_the_ranges_are_cut_off(measure, examples):
    assert measure(examples / 4) > 10
