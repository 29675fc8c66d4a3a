"""Makes each model of the table of models by format, and its files: `make_models.py build/litert_models`.

The built-in models, as small as they get, and those of `own_models.py` are trained for a few steps on made-up examples,
by a fixed seed, and converted as `launch.export` does it: in a process of its own, which may crash. The folder gets the
files; for each model an .npz file with the test examples and Keras's answers; and `models.json`, which says what there
is and, in one line each, why other files are not. `check_models.py` compares, with the runtime that phones use.

    --only   models, separated by commas; all without it

Exit codes: 0 made, 2 an argument is wrong.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import itertools
import json
import multiprocessing
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
from made_examples import KINDS, Examples, draw_examples

from launch.runtimes.processor import count_cores
from launch.tflite.converter_process import run_converter_process
from launch.tflite.export_measurement import compute_keras_outputs, preprocess
from launch.tflite.file_check import LEAST_AGREEMENT
from models.catalog import ModelOptions, build_model_spec
from models.model_names import EXPORT_FORMATS, ModelError
from models.model_spec import ModelSpec
from models.quantization import build_quantized_spec
from models.standardization import Standardization
from models.stateless_dropout import StatelessDropout
from models.tflite_export import Converter, convert_model, convert_training_module
from models.training_terms import add_own_losses
from tff_algos.protocol import Weights

BATCH_SIZE = 32
NUM_REPRESENTATIVE = 200
TRAINING_STEPS, TRAINING_RATE = 5, 0.003  # of a file that trains
TRAINING = "training"
MOST_PROCESSES = 4  # that make models side by side; each takes up to 2 GB


class Case(NamedTuple):
    """A model of the table: its name or function, the kind of its data, its options, its steps of training.

    `trains_further` says whether the file that trains is compared with Keras's training, which is traced for that.
    """

    model: str
    kind: str
    options: ModelOptions = ModelOptions(channel_axis=False)
    standardized: bool = False
    steps: int = 80
    rate: float = 0.01
    trains_further: bool = True


_NARROW = ModelOptions(width=0.25)
CASES = {
    "image_student": Case("image_student", "images"),
    "image_teacher": Case("image_teacher", "images", ModelOptions(activation="relu")),
    "image_cnn10": Case("image_cnn10", "images", ModelOptions(width=0.125)),
    "image_cnn10_gn": Case("image_cnn10_gn", "images", _NARROW),
    "sensor_student": Case("sensor_student", "sequences"),
    "sensor_teacher": Case("sensor_teacher", "sequences", standardized=True),
    "perceptron": Case("perceptron", "table", standardized=True),
    "perceptron_teacher": Case("perceptron_teacher", "images"),
    "perceptron_1nn": Case("perceptron_1nn", "switch"),
    "perceptron_2nn": Case("perceptron_2nn", "labels"),
    "logistic_regression": Case("logistic_regression", "table"),
    "emnist_cnn": Case("emnist_cnn", "images"),
    "fedavg_cnn": Case("fedavg_cnn", "images"),
    "lenet": Case("lenet", "pictures"),
    "resnet18_gn": Case("resnet18_gn", "images", steps=10, rate=0.001, trains_further=False),
    "mobilenet_v2": Case("mobilenet_v2", "large_pictures", _NARROW, steps=15, rate=0.002, trains_further=False),
    "char_lstm": Case("char_lstm", "texts", rate=0.003),
    "char_gru": Case("char_gru", "texts", rate=0.003),
    "char_transformer": Case("char_transformer", "texts", rate=0.001),
    "word_lstm": Case("word_lstm", "texts", rate=0.003),
    "text_mean": Case("text_mean", "words"),
    "text_mean_teacher": Case("text_mean_teacher", "words"),
    "dense_skips": Case("own_models:build_dense_skips", "table", standardized=True),
    "regularized": Case("own_models:build_regularized", "images"),
    "categories": Case("own_models:build_categories", "categories"),
    "sensor_convolutions": Case("own_models:build_sensor_convolutions", "sequences"),
    "image_convolutions": Case("own_models:build_image_convolutions", "images"),
    "residual": Case("own_models:build_residual", "images"),
    "upsampling": Case("own_models:build_upsampling", "images"),
    "masked_recurrent": Case("own_models:build_masked_recurrent", "padded"),
    "recurrent_cells": Case("own_models:build_recurrent_cells", "sequences"),
    "attention": Case("own_models:build_attention", "sequences"),
    "subclass": Case("own_models:build_subclass", "table"),
    "token_classes": Case("own_models:build_token_classes", "tokens"),
    "many_labels": Case("own_models:build_many_labels", "labels"),
    "regression": Case("own_models:build_regression", "numbers"),
}


@dataclasses.dataclass(frozen=True)
class Trained:
    """A model with its weights, and the quantization-aware one, or why there is none."""

    spec: ModelSpec
    weights: Weights
    quantized: ModelSpec | None
    quantized_weights: Weights | None
    reason: str


def train_case(case: Case, examples: Examples) -> Trained:
    """The model of a case after its steps of training, and the quantization-aware model after as many more."""
    tf.keras.utils.set_random_seed(0)
    tf.get_logger().setLevel("ERROR")  # of functions that are traced for each model
    spec = build_model_spec(case.model, KINDS[case.kind].format, case.options, to_train=False)
    if case.standardized:
        inputs = spec.preprocess(tf.constant(examples.train_x)).numpy()
        values = inputs.reshape(-1, inputs.shape[-1]) if inputs.shape[1:][-1] > 1 else inputs[..., 0]
        numbers = values.mean(0).tolist(), values.std(0).tolist()
        spec = spec.with_standardization(Standardization(*map(tuple, numbers)))
    rows = [
        np.arange(start, start + BATCH_SIZE) % len(examples.train_x)
        for start in range(0, case.steps * BATCH_SIZE, BATCH_SIZE)
    ]
    optimizer = functools.partial(tf.keras.optimizers.legacy.Adam, case.rate)
    weights = _train(spec, tuple(spec.build().get_weights()), optimizer(), examples, rows)
    try:
        quantized = build_quantized_spec(spec)
    except ModelError as error:
        return Trained(spec, weights, None, None, str(error))
    first = quantized.quantization.wrap(weights, tuple(quantized.build().get_weights()))
    return Trained(spec, weights, quantized, _train(quantized, first, optimizer(), examples, rows), "")


def train_further(trained: Trained, examples: Examples) -> np.ndarray | None:
    """Keras's outputs for the test examples after the steps that a file for training takes; None with dropout."""
    if any(isinstance(part, StatelessDropout) for part in trained.spec.build().submodules):
        return None
    optimizer = tf.keras.optimizers.legacy.SGD(TRAINING_RATE)
    rows = [np.arange(BATCH_SIZE)] * TRAINING_STEPS
    weights = _train(trained.spec, trained.weights, optimizer, examples, rows)
    return compute_keras_outputs(trained.spec, weights, examples.test_x)


def _train(
    spec: ModelSpec,
    weights: Weights,
    optimizer: tf.keras.optimizers.legacy.Optimizer,
    examples: Examples,
    rows: Sequence[np.ndarray],
) -> Weights:
    """The weights after a step on each of these rows of the train examples."""
    model = spec.build()
    model.set_weights(weights)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            outputs = model(spec.preprocess(x), training=True)
            loss = add_own_losses(tf.reduce_mean(spec.task.compute_losses(y, outputs)), model)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    for batch in rows:
        step(examples.train_x[batch], examples.train_y[batch])
    return tuple(model.get_weights())


def list_makers(
    trained: Trained, examples: Examples, converter: Converter
) -> Iterator[tuple[str, Callable[[], tuple[bytes, list[str]]]]]:
    """(format, what makes its file and lists the operators of TensorFlow that it needs), each format once."""
    for export_format in EXPORT_FORMATS:
        representative = examples.train_x[:NUM_REPRESENTATIVE] if export_format == "int8" else None

        def make(export_format=export_format, representative=representative):
            spec, weights = trained.spec, trained.weights
            if export_format == "qat_int8":
                if trained.quantized is None:
                    raise ModelError(trained.reason)
                spec, weights = trained.quantized, trained.quantized_weights
            return convert_model(spec, weights, export_format, "float32", representative, converter), []

        yield export_format, make

    def make_training():
        file = convert_training_module(
            trained.spec, trained.weights, BATCH_SIZE, "full", examples.test_x[:8], converter
        )
        return file.content, list(file.select_operators)

    yield TRAINING, make_training


def make_model(name: str, folder: pathlib.Path, converter: Converter) -> dict:
    """Writes all of a model into the folder, and returns what `models.json` says of it."""
    case = CASES[name]
    examples = draw_examples(case.kind)
    trained = train_case(case, examples)
    spec = trained.spec
    arrays = {
        "x": preprocess(spec, examples.test_x),
        "train_x": preprocess(spec, examples.train_x[:BATCH_SIZE]),
        "train_y": examples.train_y[:BATCH_SIZE],
        "outputs": compute_keras_outputs(spec, trained.weights, examples.test_x),
    }
    if trained.quantized is not None:
        arrays["qat_outputs"] = compute_keras_outputs(trained.quantized, trained.quantized_weights, examples.test_x)
    if case.trains_further and (further := train_further(trained, examples)) is not None:
        arrays["trained_outputs"] = further
    np.savez(folder / f"{name}.npz", **arrays)
    made = {}
    for export_format, make in list_makers(trained, examples, converter):
        start_s = time.perf_counter()
        made[export_format] = file = {"file": f"{name}.{export_format}.tflite"}
        try:
            content, file["select_operators"] = make()
            (folder / file["file"]).write_bytes(content)
        except ModelError as error:
            file["refused"] = str(error)
        except Exception as error:  # what a user must never see
            file["failed"] = f"{type(error).__name__}: {error}"
        file["seconds"] = time.perf_counter() - start_s
    known = {"training_steps": TRAINING_STEPS, "training_rate": TRAINING_RATE, "least_agreement": LEAST_AGREEMENT}
    return {"model": name, "task": spec.task.kind.name, **known, "files": made}


def main(arguments: list[str]) -> int:
    """Makes what the arguments name and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parsed = parser.parse_args(arguments)
    names = parsed.only.split(",") if parsed.only else list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        print(f"error: --only={unknown[0]}: expected some of {', '.join(CASES)}", file=sys.stderr)
        return 2
    parsed.folder.mkdir(parents=True, exist_ok=True)
    num_processes = min(MOST_PROCESSES, count_cores(), len(names))
    shares = [names[first::num_processes] for first in range(num_processes)]
    with concurrent.futures.ProcessPoolExecutor(len(shares), multiprocessing.get_context("spawn")) as processes:
        made = itertools.chain(*processes.map(make_share, shares, [parsed.folder] * len(shares)))
        described = sorted(made, key=lambda model: names.index(model["model"]))
    (parsed.folder / "models.json").write_text(json.dumps(described, indent=1), encoding="utf-8")
    return 0


def make_share(names: Sequence[str], folder: pathlib.Path) -> list[dict]:
    """Makes these models, in a process of its own beside that of the converter."""
    made = []
    with (
        tempfile.TemporaryDirectory() as meanwhile,
        run_converter_process(pathlib.Path(meanwhile), str(folder / "converter.log")) as process,
    ):
        for name in names:
            start_s = time.perf_counter()
            made.append(make_model(name, folder, Converter(process.convert, meanwhile)))
            print(f"{name}: made in {time.perf_counter() - start_s:.0f} s", flush=True)
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
