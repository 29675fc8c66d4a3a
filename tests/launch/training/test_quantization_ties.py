"""Why quantization-aware training differs between the runtimes: a near tie, which one bit decides.

A kernel's range is that of its own weights, channel by channel, so that the largest weight of a channel lies at the
very end of the range. TensorFlow computes that end anew from a rounded step; it comes out as the weight itself, or as
the next float below. In the second case the weight counts as clipped and gets no gradient in that step. After Adam's
next step, the weight and the whole channel's range differ by a part in a hundred or so.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

from launch.runtimes.in_process import run_in_process
from launch.settings.run_config import build_run_config
from launch.training.federation import build_spec, load_federated_data
from launch.training.run_runtime import open_run_runtime
from launch.training.training_run import build_process

VALUES = {"algo": "fedavg", "num_clients": 6, "rounds": 3, "epochs": 1, "quantize": "qat"}
LAST_BIT = 2.0**-23  # relative
LEVELS_8_BITS = 255


class Quantized(NamedTuple):
    """One tensor that was rounded: which level each element got, whether it lies in the range, and how far off its end.

    `from_end` is relative to the nearer end of the range.
    """

    levels: np.ndarray
    is_inside: np.ndarray
    from_end: np.ndarray


def find_range(low: np.ndarray, high: np.ndarray, lowest_level: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The step and the ends of the range as TensorFlow moves them so that 0 is a level, in float32 as it does.

    Source: `Nudge` in tensorflow/core/kernels/fake_quant_ops_functor.h.
    """
    low, high, first, last = (np.float32(value) for value in (low, high, lowest_level, LEVELS_8_BITS))
    step = (high - low) / (last - first)
    zero_level = np.floor(np.clip(first - low / step, first, last) + np.float32(0.5))
    return step, (first - zero_level) * step, (last - zero_level) * step


@pytest.fixture
def quantized(monkeypatch) -> list[Quantized]:
    """What the models that are built from now on round, in the order in which one thread of `in_process` does it."""
    import tensorflow as tf

    noted = []

    def watch(original):
        def quantize(inputs, low, high, num_bits=8, narrow_range=False):
            def note(inputs, outputs, low, high):
                step, start, end = find_range(low, high, int(narrow_range))
                with np.errstate(divide="ignore", invalid="ignore"):
                    from_end = np.fmin(np.abs(inputs / start - 1), np.abs(inputs / end - 1))
                noted.append(Quantized(np.rint(outputs / step), (inputs >= start) & (inputs <= end), from_end))
                return np.int32(0)

            outputs = original(inputs, low, high, num_bits=num_bits, narrow_range=narrow_range)
            done = tf.numpy_function(note, [inputs, outputs, low, high], tf.int32)
            with tf.control_dependencies([done]):
                return tf.identity(outputs)

        return quantize

    for name in ("fake_quant_with_min_max_vars", "fake_quant_with_min_max_vars_per_channel"):
        monkeypatch.setattr(tf.quantization, name, watch(getattr(tf.quantization, name)))
    return noted


def make_process(runtime: str, folder) -> Any:
    config = build_run_config({**VALUES, "runtime": runtime, "client_dir": str(folder)})
    data = load_federated_data(config)
    return build_process(config, build_spec(config, data.format), data)


def run_two_rounds(runtime: str, folder) -> Any:
    config = build_run_config({**VALUES, "runtime": runtime, "client_dir": str(folder)})
    with open_run_runtime(config, str(folder / f"{runtime}.log")):
        process = make_process(runtime, folder)
        state = process.initialize()
        for _ in range(2):
            state = process.next(state).state
    return state


def find_first_difference(ours: list[Quantized], theirs: list[Quantized]) -> tuple[Quantized, Quantized]:
    return next(
        pair
        for pair in zip(ours, theirs, strict=True)
        if any(np.any(getattr(pair[0], name) != getattr(pair[1], name)) for name in ("levels", "is_inside"))
    )


@pytest.mark.usefixtures("can_close")
@pytest.mark.slow
def test_the_first_decision_that_differs_is_a_tie_to_the_last_bit(tmp_path, request):
    states = [run_two_rounds(runtime, tmp_path) for runtime in ("tff", "in_process")]
    quantized = request.getfixturevalue("quantized")
    noted = []
    with run_in_process(str(tmp_path / "log"), num_threads=1):
        process = make_process("in_process", tmp_path)
        for state in states:  # the third round of both by one runtime: only where it starts from differs
            quantized.clear()
            process.next(state)
            noted.append(quantized.copy())
    ours, theirs = find_first_difference(*noted)
    np.testing.assert_array_equal(ours.levels, theirs.levels)
    differs = ours.is_inside != theirs.is_inside
    assert np.all(ours.from_end[differs] <= LAST_BIT) and np.all(theirs.from_end[differs] <= LAST_BIT)
    print("the first of", len(noted[0]), "tensors that differs:", ours.levels.shape, np.argwhere(differs).tolist())
