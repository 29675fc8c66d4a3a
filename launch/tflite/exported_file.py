"""Runs a TFLite file on this machine: its inputs and outputs, its outputs, its latency, its signatures."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

WARM_UP_RUNS = 20
TIMED_RUNS = 200
MOST_TIMING_S, LEAST_RUNS = 5.0, 11  # a slow model is timed less often: long loops can take seconds on a busy machine


class TensorForm(NamedTuple):
    """The form of an input or output.

    Attributes:
      shape: with the batch axis, which is 1.
      dtype: "float32", "int8", or "int32" of tokens.
      scale: of int8, real value = (stored - zero_point) * scale; None of others.
      zero_point: of int8; None of others.
    """

    shape: tuple[int, ...]
    dtype: str
    scale: float | None
    zero_point: int | None


class Latency(NamedTuple):
    """How long one example takes, in milliseconds: the median and the quartiles over at most `TIMED_RUNS`."""

    median_ms: float
    lower_quartile_ms: float
    upper_quartile_ms: float


class ExportedFile:
    """A TFLite file with one input and one output, ready to run.

    Attributes:
      input: the form of its input, a preprocessed example.
      output: the form of its output, logits for example.
    """

    def __init__(self, content: bytes, num_threads: int = 1):
        self._interpreter = tf.lite.Interpreter(model_content=content, num_threads=num_threads)
        self._interpreter.allocate_tensors()
        [self._input], [self._output] = self._interpreter.get_input_details(), self._interpreter.get_output_details()
        self.input, self.output = _describe_tensor(self._input), _describe_tensor(self._output)

    def compute_outputs(self, x: np.ndarray) -> np.ndarray:
        """Preprocessed examples, (n, *input_shape), to outputs, float32 (n, *output_shape), one by one."""
        outputs = np.empty((len(x), *self.output.shape[1:]), np.float32)
        for row, example in zip(outputs, quantize(x, self.input), strict=True):
            self._interpreter.set_tensor(self._input["index"], example[None])
            self._interpreter.invoke()
            row[:] = dequantize(self._interpreter.get_tensor(self._output["index"])[0], self.output)
        return outputs

    def measure_latency(self, example: np.ndarray) -> Latency:
        """Times one preprocessed example, (*input_shape), after warm-up; it varies from run to run."""
        self._interpreter.set_tensor(self._input["index"], quantize(example[None], self.input))
        seconds, num_runs = [], WARM_UP_RUNS + TIMED_RUNS
        while len(seconds) < num_runs and (len(seconds) < LEAST_RUNS or sum(seconds) < MOST_TIMING_S):
            start_s = time.perf_counter()
            self._interpreter.invoke()
            seconds.append(time.perf_counter() - start_s)
        warm_up = len(seconds) * WARM_UP_RUNS // num_runs
        return summarize_times(seconds[warm_up:])


def summarize_times(seconds: Sequence[float]) -> Latency:
    """The latency of at least five runs; how long the longest of them takes changes nothing."""
    lower, median, upper = np.percentile(seconds, [25, 50, 75])
    return Latency(1000 * median, 1000 * lower, 1000 * upper)


def _describe_tensor(details: dict) -> TensorForm:
    scale, zero_point = details["quantization"]
    is_quantized = scale != 0
    shape = tuple(int(size) for size in details["shape"])
    dtype = np.dtype(details["dtype"]).name
    return TensorForm(shape, dtype, float(scale) if is_quantized else None, int(zero_point) if is_quantized else None)


def quantize(values: np.ndarray, form: TensorForm) -> np.ndarray:
    """Real values, float32, as a tensor of this form stores them: rounded, and clipped to the range of its dtype."""
    if form.scale is None:
        return values
    limits = np.iinfo(form.dtype)
    return np.clip(np.rint(values / np.float32(form.scale)) + form.zero_point, limits.min, limits.max).astype(
        form.dtype
    )


def dequantize(stored: np.ndarray, form: TensorForm) -> np.ndarray:
    """The inverse of `quantize`, as float32."""
    if form.scale is None:
        return stored
    return (stored.astype(np.float32) - form.zero_point) * np.float32(form.scale)


def describe_signatures(content: bytes) -> dict[str, dict[str, dict[str, dict]]]:
    """The inputs and outputs of each signature of a file: {signature: {"inputs": {name: {"shape", "dtype"}}, ...}}."""
    interpreter = tf.lite.Interpreter(model_content=content)

    def describe(tensors: dict[str, dict]) -> dict[str, dict]:
        texts = (np.bytes_, np.str_, object)
        return {
            name: {
                "shape": form["shape"].tolist(),
                "dtype": "string" if form["dtype"] in texts else np.dtype(form["dtype"]).name,
            }
            for name, form in sorted(tensors.items())
        }

    described = {}
    for name in sorted(interpreter.get_signature_list()):
        runner = interpreter.get_signature_runner(name)
        inputs, outputs = runner.get_input_details(), runner.get_output_details()
        described[name] = {"inputs": describe(inputs), "outputs": describe(outputs)}
    return described


def compute_in_two_orders(content: bytes, x: np.ndarray) -> np.ndarray:
    """What one interpreter answers to the examples, first in their order, then in the opposite one.

    A file that keeps nothing from call to call answers alike.

    Args:
      content: a file with one input and one output, or one for on-device training, whose "infer" is run.
      x: preprocessed examples, (n, *input_shape).

    Returns:
      float32 (2, n, *output_shape), both in the order of `x`.
    """
    if "infer" in tf.lite.Interpreter(model_content=content).get_signature_list():
        infer = tf.lite.Interpreter(model_content=content).get_signature_runner("infer")

        def compute(examples: np.ndarray) -> np.ndarray:
            return np.concatenate([infer(x=example[None])["logits"] for example in examples])
    else:
        compute = ExportedFile(content).compute_outputs
    return np.stack([compute(x), compute(x[::-1])[::-1]])
