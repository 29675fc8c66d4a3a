"""What is measured of an exported file: its outputs, its main metric on each client's test split, its latency.

Outputs are compared with the labels and with Keras's model, by the task.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from datasets.federated_data import FederatedData
from launch.runs.task_columns import TaskColumns
from launch.tflite.export_report import ClientRow
from models.model_spec import ModelSpec
from models.task import Task

# Runs a TFLite file on this machine: its inputs and outputs, its outputs, its latency, its signatures.

WARM_UP_RUNS = 20
TIMED_RUNS = 200
MOST_TIMING_S, LEAST_RUNS = 5.0, 11  # a slow model is timed less often: long loops can take seconds on a busy machine


class TensorType(NamedTuple):
    """How an input or output is stored.

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
      input: how its input is stored, a preprocessed example.
      output: how its output is stored, logits for example.
    """

    def __init__(self, content: bytes, num_threads: int = 1):
        self._interpreter = tf.lite.Interpreter(model_content=content, num_threads=num_threads)
        self._interpreter.allocate_tensors()
        [self._input], [self._output] = self._interpreter.get_input_details(), self._interpreter.get_output_details()
        self.input, self.output = _describe_tensor(self._input), _describe_tensor(self._output)

    def compute_outputs(self, x: np.ndarray) -> np.ndarray:
        """Preprocessed examples, (n, *input_shape), to outputs, float32 (n, *output_shape), one by one."""
        outputs = np.empty((len(x), *self.output.shape[1:]), np.float32)
        # The batch axis of a file is 1.
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
        # Of a slow model, which is run less often, the same share is no measurement.
        warm_up = len(seconds) * WARM_UP_RUNS // num_runs
        return summarize_times(seconds[warm_up:])


def summarize_times(seconds: Sequence[float]) -> Latency:
    """The latency of at least five runs; how long the longest of them takes changes nothing."""
    lower, median, upper = np.percentile(seconds, [25, 50, 75])
    return Latency(1000 * median, 1000 * lower, 1000 * upper)


def _describe_tensor(details: dict) -> TensorType:
    scale, zero_point = details["quantization"]
    is_quantized = scale != 0
    shape = tuple(int(size) for size in details["shape"])
    dtype = np.dtype(details["dtype"]).name
    return TensorType(shape, dtype, float(scale) if is_quantized else None, int(zero_point) if is_quantized else None)


def quantize(values: np.ndarray, tensor: TensorType) -> np.ndarray:
    """Real values, float32, as such a tensor stores them: rounded, and clipped to the range of its dtype."""
    if tensor.scale is None:
        return values
    limits = np.iinfo(tensor.dtype)
    return np.clip(np.rint(values / np.float32(tensor.scale)) + tensor.zero_point, limits.min, limits.max).astype(
        tensor.dtype
    )


def dequantize(stored: np.ndarray, tensor: TensorType) -> np.ndarray:
    """The inverse of `quantize`, as float32."""
    if tensor.scale is None:
        return stored
    return (stored.astype(np.float32) - tensor.zero_point) * np.float32(tensor.scale)


def describe_signatures(content: bytes) -> dict[str, dict[str, dict[str, dict]]]:
    """The inputs and outputs of each signature of a file: {signature: {"inputs": {name: {"shape", "dtype"}}, ...}}."""
    interpreter = tf.lite.Interpreter(model_content=content)

    def describe(tensors: dict[str, dict]) -> dict[str, dict]:
        texts = (np.bytes_, np.str_, object)
        return {
            name: {
                "shape": details["shape"].tolist(),
                "dtype": "string" if details["dtype"] in texts else np.dtype(details["dtype"]).name,
            }
            for name, details in sorted(tensors.items())
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


GROUP_SIZE = 1000  # examples that are summed at a time
MOST_CLIENTS = 1000  # whose test splits a file is run on, one example after the other


def preprocess(spec: ModelSpec, x: np.ndarray) -> np.ndarray:
    """Stored examples to inputs of the model, computed as on a phone: tokens as int32, all else as float32."""
    shaped = x if spec.has_channel_axis else x[..., 0]
    if spec.format.takes_tokens:
        return shaped.astype(np.int32)
    preprocessing = spec.format.preprocessing
    # In float32 as on a phone: float64 would round some inputs otherwise.
    return shaped.astype(np.float32) * np.float32(preprocessing.scale) + np.float32(preprocessing.offset)


def measure_clients(
    name: str, file: ExportedFile, spec: ModelSpec, data: FederatedData, names: tuple[str, ...]
) -> list[ClientRow]:
    """Runs a file on the own test split of each of these clients that has one, and whose split tells the metric.

    Of more than `MOST_CLIENTS` evenly spaced ones are taken.
    """
    results, wanted = [], set(names)
    tested = [client for client in data.clients if client.name in wanted and data.count(client, "test")]
    for client in tested[:: -(-len(tested) // MOST_CLIENTS) or 1]:
        x, y = data.read_split(client, "test")
        reached = compute_metric(spec.task, y, file.compute_outputs(preprocess(spec, x)))
        results.append(ClientRow(name, client.name, client.num_test, reached))
    return [result for result in results if not np.isnan(result.test)]


def compute_keras_outputs(
    spec: ModelSpec, weights: tuple[np.ndarray, ...], x: np.ndarray, batch_size: int = 1000
) -> np.ndarray:
    """The outputs of a Keras model for examples as stored, float32 (n, *output_shape)."""
    model = spec.build()
    model.set_weights(weights)
    infer = tf.function(lambda batch: model(spec.preprocess(batch), training=False))
    starts = range(0, len(x), batch_size)
    return np.concatenate([infer(tf.constant(x[start : start + batch_size])).numpy() for start in starts])


def compute_metric(task: Task, labels: np.ndarray, outputs: np.ndarray) -> float:
    """The task's main metric: of classification the share of the examples whose largest logit is that of the label.

    Args:
      task: of the model.
      labels: as stored, (examples, *label_shape).
      outputs: float32, (examples, *output_shape).
    """
    sums = np.zeros(task.kind.num_sums(task.num_outputs))
    for start in range(0, len(labels), GROUP_SIZE):
        rows = slice(start, start + GROUP_SIZE)
        own = labels[rows].astype(task.label_dtype)
        sums += task.compute_sums(tf.constant(own), tf.constant(outputs[rows], tf.float32)).numpy()
    return task.kind.finish(sums)[task.kind.main_metric.name]


def classify(outputs: np.ndarray) -> np.ndarray:
    """The class that is chosen, int32 (examples,): the largest of several logits, or whether the only one is above 0.

    Args:
      outputs: float32, (examples, classes), or (examples, 1) of two classes.
    """
    if outputs.shape[1] == 1:
        # One output tells two classes apart by its sign.
        return (outputs[:, 0] > 0).astype(np.int32)
    return outputs.argmax(axis=1).astype(np.int32)


def predict(task: Task, outputs: np.ndarray) -> np.ndarray:
    """What a user of the file reads from its outputs.

    Classes, int32 (examples,), where the labels are classes; the tokens that follow, int32 (examples, positions), of
    next_token; the outputs of a regression in the unit of the labels; other outputs as they are.
    """
    if task.kind.name == "next_token":
        return outputs.argmax(axis=-1).astype(np.int32)
    return classify(outputs) if task.kind.is_labelled_by_class else np.asarray(task.restore(outputs), np.float32)


def compute_agreement(task: Task, outputs: np.ndarray, reference: np.ndarray) -> float | None:
    """Share of the examples for which both choose the same class; None where the labels are no classes.

    Outputs with a NaN choose none.
    """
    if not task.kind.is_labelled_by_class:
        return None
    # The largest of NaNs is the first, so that a file of NaNs would agree wherever Keras chooses class 0.
    are_numbers = ~(np.isnan(outputs) | np.isnan(reference)).any(axis=1)
    return float(np.mean((classify(outputs) == classify(reference)) & are_numbers))


def compute_alike(task: Task, labels: np.ndarray, outputs: np.ndarray, reference: np.ndarray) -> float | None:
    """Share of the answers that are the reference's too: None of numbers, and where there is nothing to compare.

    Answers are classes; tokens, without padding; of labels that an example can have, those that either gives, since
    nearly all of many labels are given by neither. Outputs with a NaN answer nothing; where the reference's have one,
    no file can be blamed.

    Args:
      task: of the model.
      labels: as stored, (examples, *label_shape).
      outputs: float32, (examples, *output_shape).
      reference: likewise.
    """
    if task.kind.is_labelled_by_class:
        known = ~np.isnan(reference).any(axis=1)
        return compute_agreement(task, outputs[known], reference[known]) if known.any() else None
    are_numbers = ~(np.isnan(outputs) | np.isnan(reference))
    if task.kind.name == "next_token":
        same = (outputs.argmax(axis=-1) == reference.argmax(axis=-1)) & are_numbers.all(axis=-1)
        counted = (labels >= 0) & (labels != task.padding_label) & ~np.isnan(reference).any(axis=-1)
    elif task.kind.name == "multi_label":
        same = ((outputs > 0) == (reference > 0)) & are_numbers
        counted = ((outputs > 0) | (reference > 0) | ~are_numbers) & ~np.isnan(reference)
    else:
        return None
    return float(same[counted].mean()) if counted.any() else None


def warn_of_no_numbers(reference: np.ndarray) -> str:
    """What to say of a Keras model that has no answer for some examples of the test set; "" if it has for all."""
    unknown = int(np.isnan(reference.reshape(len(reference), -1)).any(axis=1).sum()) if len(reference) else 0
    if not unknown:
        return ""
    return (
        f"has no answer but NaN for {unknown:,} of {len(reference):,} test examples, in Keras as in its "
        "files; look for a logarithm, a root or a division in the model"
    )


def compute_lost(task: Task, reached: float, reference: float) -> float:
    """How much worse a file is than Keras's model: the difference of two shares, or else relative to Keras's value."""
    worse = TaskColumns(task.kind).sign * (reference - reached)
    # Relative to an error of 0, any other is infinitely worse.
    return worse if task.kind.main_metric.unit == "%" or not reference else worse / abs(reference)
