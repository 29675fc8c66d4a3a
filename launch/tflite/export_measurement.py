"""What is measured of an exported file: its outputs, its main metric on each client's test split, its latency."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from datasets.federated_data import FederatedData
from launch.runtimes.processor import count_cores
from launch.tflite.exported_file import ExportedFile, Latency, TensorForm
from launch.tflite.file_outputs import compute_metric
from models.model_spec import ModelSpec

MOST_CLIENTS = 1000  # whose test splits a file is run on, one example after the other


class Measurement(NamedTuple):
    """The result of a file on the global test set.

    Attributes:
      input: the form of its input.
      output: the form of its output.
      outputs: float32 (examples, *output_shape), logits for example.
      latency: on 1 thread.
      latency_all_threads: on all cores.
    """

    input: TensorForm
    output: TensorForm
    outputs: np.ndarray
    latency: Latency
    latency_all_threads: Latency


class ClientResult(NamedTuple):
    """The result of a file on one client's own test split: the task's main metric."""

    client: str
    examples: int
    test: float


def preprocess(spec: ModelSpec, x: np.ndarray) -> np.ndarray:
    """Stored examples to inputs of the model, computed as on a phone: tokens as int32, all else as float32."""
    shaped = x if spec.has_channel_axis else x[..., 0]
    if spec.format.takes_tokens:
        return shaped.astype(np.int32)
    preprocessing = spec.format.preprocessing
    return shaped.astype(np.float32) * np.float32(preprocessing.scale) + np.float32(preprocessing.offset)


def measure_file(content: bytes, spec: ModelSpec, data: FederatedData) -> Measurement:
    """Runs a file on the global test set, example by example on 1 thread, and times it on 1 and on all threads."""
    file, x = ExportedFile(content), preprocess(spec, data.test_x)
    on_all_threads = ExportedFile(content, count_cores())
    outputs = file.compute_outputs(x)
    return Measurement(
        file.input, file.output, outputs, file.measure_latency(x[0]), on_all_threads.measure_latency(x[0])
    )


def measure_clients(content: bytes, spec: ModelSpec, data: FederatedData, names: tuple[str, ...]) -> list[ClientResult]:
    """Runs a file on the own test split of each of these clients that has one, and whose split tells the metric.

    Of more than `MOST_CLIENTS` evenly spaced ones are taken.
    """
    file, results, wanted = ExportedFile(content), [], set(names)
    tested = [client for client in data.clients if client.name in wanted and client.num_test]
    for client in tested[:: -(-len(tested) // MOST_CLIENTS) or 1]:
        x, y = data.read_split(client, "test")
        reached = compute_metric(spec.task, y, file.compute_outputs(preprocess(spec, x)))
        results.append(ClientResult(client.name, client.num_test, reached))
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
