"""What is measured of an exported file: its logits, its accuracy on each client's test split, its latency."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from datasets.federated_data import FederatedData
from launch.tflite.exported_file import ExportedFile, Latency, TensorForm, count_threads
from models.model_spec import ModelSpec


class Measurement(NamedTuple):
    """The result of a file on the global test set.

    Attributes:
      input: the form of its input.
      output: the form of its output.
      logits: float32 (examples, classes).
      latency: on 1 thread.
      latency_all_threads: on all cores.
    """

    input: TensorForm
    output: TensorForm
    logits: np.ndarray
    latency: Latency
    latency_all_threads: Latency


class ClientAccuracy(NamedTuple):
    """The result of a file on one client's own test split."""

    client: str
    examples: int
    accuracy: float


def preprocess(data: FederatedData, x: np.ndarray) -> np.ndarray:
    """Stored examples to inputs of the model, float32, computed as on a phone."""
    scale, offset = np.float32(data.preprocessing.scale), np.float32(data.preprocessing.offset)
    return x.astype(np.float32) * scale + offset


def compute_accuracy(logits: np.ndarray, labels: np.ndarray) -> float:
    """Share of the examples whose largest logit is that of the label."""
    return float(np.mean(logits.argmax(axis=1) == labels))


def measure_file(content: bytes, data: FederatedData) -> Measurement:
    """Runs a file on the global test set, example by example on 1 thread, and times it on 1 and on all threads."""
    file, x = ExportedFile(content), preprocess(data, data.test_x)
    on_all_threads = ExportedFile(content, count_threads())
    logits = file.compute_logits(x)
    return Measurement(
        file.input, file.output, logits, file.measure_latency(x[0]), on_all_threads.measure_latency(x[0])
    )


def measure_clients(content: bytes, data: FederatedData, names: tuple[str, ...]) -> list[ClientAccuracy]:
    """Runs a file on the own test split of each of these clients that has one."""
    file, results = ExportedFile(content), []
    for client in data.clients:
        if client.name in names and client.num_test:
            x, y = data.read_split(client, "test")
            accuracy = compute_accuracy(file.compute_logits(preprocess(data, x)), y)
            results.append(ClientAccuracy(client.name, client.num_test, accuracy))
    return results


def compute_keras_logits(
    spec: ModelSpec, weights: tuple[np.ndarray, ...], x: np.ndarray, batch_size: int = 1000
) -> np.ndarray:
    """The logits of a Keras model for examples as stored, float32 (n, num_classes)."""
    model = spec.build()
    model.set_weights(weights)
    infer = tf.function(lambda batch: model(spec.preprocess(batch), training=False))
    starts = range(0, len(x), batch_size)
    return np.concatenate([infer(tf.constant(x[start : start + batch_size])).numpy() for start in starts])
