"""A Flower app of a run's model: its clients train the file for on-device training, its server is Flower's.

The app's modules are in `flower/`, complete as they are; what is written beside them is what they read. Its clients
read examples and train as those of live rounds do, by a copy of `launch/live/join.py`. Imports no TensorFlow.
"""

import base64
import dataclasses
import io
import json
import os
import pathlib
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from datasets.errors import DatasetError
from datasets.federated_data import FederatedData
from files.reading import explain_errors
from files.writing import replace_folder
from launch.console.progress import say
from launch.live.description import TABLE, describe_arrays, describe_examples
from launch.live.training_file import list_lacking
from launch.pages.templates import render
from launch.runs.file_names import encode_name
from launch.runs.tables import format_json, write_json
from launch.settings.data_flags import CLIENT, NONE
from launch.settings.errors import FlagError
from launch.settings.run_config import RunConfig
from launch.tflite.export_plan import NO_TRAINING, ExportJob, ExportRequest, ModelExport
from launch.tflite.phone_training import find_local_training, find_phone_training
from launch.training.finished_run import FinishedRun
from models.model_names import ModelError
from tff_algos.protocol import Weights
from tff_algos.settings.config_fields import ConfigError

SOURCES = pathlib.Path(__file__).with_name("flower")
JOIN = pathlib.Path(__file__).parents[1] / "live" / "join.py"
PACKAGE, DEMO = "federated_app", "demo"
NUM_DEMO_NODES = 4
MOST_BYTES = 10 * 2**20 - 2**17  # packed, which Flower sends to a node as an app; the rest is for the modules
USUAL_RATE = 0.01  # of a run that has none


def ask_for_training(request: ExportRequest) -> ExportRequest:
    """The request with a file that trains: an app has one."""
    if not request.flower_app or request.on_device_training != NO_TRAINING:
        return request
    return dataclasses.replace(request, on_device_training="full")


def check_folder(folder: str) -> None:
    """Raises FlagError if an app cannot be written there, before the run is looked at."""
    path = pathlib.Path(os.path.expanduser(folder))
    if path.is_dir() and any(path.iterdir()):
        raise FlagError(f"--flower_app={folder}: is not empty; name a new folder, or an empty one")
    if path.exists() and not path.is_dir():
        raise FlagError(f"--flower_app={folder}: is a file; name a new folder, or an empty one")


def check_models(run: FinishedRun, exports: Sequence[ModelExport]) -> None:
    """Raises FlagError if there can be no app of such models of a run; its data are not read yet."""
    expected = ""
    if not run.task.is_classification:
        expected = f"of classification, and the run's task is {run.task.kind.name}"
    elif run.format.takes_tokens:
        expected = "that takes numbers, and the run's takes tokens"
    elif run.config.standardize == CLIENT:
        expected = f"whose features all clients scale alike, and the run has --standardize={CLIENT}"
    elif len(exports) > 1:
        names = ", ".join(export.name for export in exports[:8])
        raise FlagError(f"--flower_app: an app trains one model, but the run has {names}; choose one with --model")
    if expected:
        raise FlagError(f"--flower_app: an app trains a model {expected}; leave it out")


def write_flower_app(job: ExportJob, export: ModelExport, weights: Weights) -> None:
    """Writes the app of a model whose training file is in the folder of the export.

    Args:
      job: the export, as it suits the model.
      export: the model.
      weights: of the model, as the file begins with them.

    Raises:
      ModelError: the model trains by operators that LiteRT lacks, or is larger than Flower sends.
      FlagError: the app's folder cannot be written.
    """
    file = (job.folder / f"{encode_name(export.name)}.training.tflite").read_bytes()
    told = json.loads((job.folder / f"{encode_name(export.name)}.training.json").read_text(encoding="utf-8"))
    if lacking := list_lacking(told["select_operators"]):
        raise ModelError(
            f"flower_app: training {export.name} takes TensorFlow's {', '.join(lacking)}, which LiteRT alone lacks; "
            "train a model of other layers"
        )
    start = {name: np.asarray(weights[int(name.removeprefix("weight_"))], np.float32) for name in told["weights"]}
    np.savez(stream := io.BytesIO(), **start)
    described = describe(job.run.config, job.data)
    model = {
        "weights": list(start),
        "batch_size": told["batch_size"],
        "num_classes": job.data.format.num_classes,
        **described,
        "training_file": base64.b64encode(file).decode(),
        "start": base64.b64encode(stream.getvalue()).decode(),
    }
    size_bytes = len(zlib.compress(format_json(model).encode()))
    if size_bytes > MOST_BYTES:
        raise ModelError(
            f"flower_app: {export.name} takes {size_bytes / 2**20:.1f} MB, file and weights, and Flower sends apps of "
            f"at most {MOST_BYTES / 2**20:.1f} MB; train a smaller model"
        )
    target = job.request.flower_app
    unwritable = explain_errors(f"--flower_app={target}", FlagError, "cannot be written")
    with unwritable, replace_folder(os.path.expanduser(target)) as folder:
        package = folder / PACKAGE
        package.mkdir()
        for source in (*SOURCES.glob("*.py"), JOIN):
            (package / source.name).write_bytes(source.read_bytes())
        write_json(package / "model.json", model)
        for name, text in render_texts(job, export, has_table=TABLE in described).items():
            (folder / name).write_text(text, encoding="utf-8")
        write_demo(folder / DEMO, job.data)
    say(f"app      {target}: see its README.md")


def describe(config: RunConfig, data: FederatedData) -> dict[str, Any]:
    """How nodes read their examples: `arrays`, and `table` if the run read one whose columns can be told."""
    described = {"arrays": describe_arrays(data)}
    try:
        # What standardizes features is in the file.
        found = describe_examples(dataclasses.replace(config, standardize=NONE), data)
    except (ConfigError, DatasetError):
        return described
    return described | {TABLE: found} if found["kind"] == TABLE else described


def render_texts(job: ExportJob, export: ModelExport, has_table: bool) -> dict[str, str]:
    """The app's pyproject.toml and README.md."""
    training, step = find_local_training(job.run, export), find_phone_training(job.run, export)
    counts = [client.num_train for client in job.data.clients]
    settings = {
        "learning_rate": step.learning_rate or USUAL_RATE,
        "epochs": training.epochs if training else 1,
        "steps": training.steps if training else 0,
        "most_examples": max(1000, *counts),
    }
    about = {
        "title": f"{export.name} of {job.run.path.name}",
        "optimizer": step.optimizer,
        "not_in_file": step.not_in_file,
        "shape": " x ".join(map(str, job.data.format.input_shape)),
        "dtype": job.data.format.input_dtype,
        "num_classes": job.data.format.num_classes,
        "has_table": has_table,
        "num_demo": NUM_DEMO_NODES,
    }
    return {name: render(f"tflite/flower/{name}.j2", **settings, **about) for name in ("pyproject.toml", "README.md")}


def write_demo(folder: pathlib.Path, data: FederatedData) -> None:
    """Deals the test examples among some nodes, as stored: clients' own are not given away."""
    folder.mkdir()
    for node in range(NUM_DEMO_NODES):
        mine = slice(node, None, NUM_DEMO_NODES)
        np.savez_compressed(folder / f"node_{node + 1}.npz", x=data.test_x[mine], y=data.test_y[mine])
