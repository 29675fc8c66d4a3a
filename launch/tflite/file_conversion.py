"""Makes the files of a model, each checked against Keras before it is measured or written."""

from typing import Any, NamedTuple

import numpy as np

from datasets.federated_data import ClientFiles
from launch.tflite.export_job import ExportJob, LoadedModel
from launch.tflite.export_measurement import compute_keras_outputs, preprocess
from launch.tflite.export_plan import INTEGER_FORMATS, ModelExport
from launch.tflite.export_report import LayerError, read_layers
from launch.tflite.file_check import NUM_CHECKED, check_alone, check_answers
from launch.tflite.phone_training import PhoneTraining
from launch.tflite.representatives import choose_evenly, find_representative_clients, read_representative_examples
from models.layer_numbers import number_layers_anew
from models.local_step import LocalStep
from models.model_cost import count_multiply_accumulates, count_parameters
from models.model_names import ModelError, is_own_model
from models.model_spec import ModelSpec
from models.saved_models import load_weights
from models.tflite_export import (
    Converter,
    TrainingFile,
    convert_model,
    convert_training_module,
    debug_quantization,
    find_reference,
    say_who_fails,
)
from tff_algos.protocol import Weights


class ConvertedModel(NamedTuple):
    """A file's content, and whose examples set its ranges, as its JSON says it."""

    content: bytes
    representative: dict[str, Any]


def read_weights(job: ExportJob, source: str, spec: ModelSpec) -> Weights:
    """Those of a saved model of the run. Raises ModelError if it cannot be read."""
    return load_weights(spec, job.run.find_model_folders()[source])


def measure_model(job: ExportJob, spec: ModelSpec, weights: Weights) -> LoadedModel:
    """A model with its cost, and its float32 file if that can be made. Raises ModelError if no file can be."""
    parameters = say_who_fails(spec.name, lambda: count_parameters(spec))
    with number_layers_anew():  # so that an error calls a layer as the user does
        cost = parameters, say_who_fails(spec.name, lambda: count_multiply_accumulates(spec))
    try:
        return LoadedModel(
            spec, weights, *cost, convert_model(spec, weights, "float32", converter=_find_converter(job))
        )
    except ModelError as error:
        return LoadedModel(spec, weights, *cost, b"", str(error))


def compute_reference(job: ExportJob, model: LoadedModel, export_format: str) -> np.ndarray:
    """The outputs on the test set of the Keras model that such a file is made of, float32 (examples, *output_shape).

    Raises:
      ModelError: a layer of the user's fails, or answers otherwise for one example than for the same in a batch.
    """
    spec, weights = find_reference(model.spec, model.weights, export_format)

    def compute() -> np.ndarray:
        reference = compute_keras_outputs(spec, weights, job.data.test_x)
        if is_own_model(spec.name):
            x = choose_evenly(job.data.test_x, NUM_CHECKED)
            alone = compute_keras_outputs(spec, weights, np.concatenate([x, x[::-1]]), batch_size=1)
            check_alone(np.stack([alone[: len(x)], alone[len(x) :][::-1]]), choose_evenly(reference, NUM_CHECKED))
        return reference

    return say_who_fails(spec.name, compute)


def run_first(job: ExportJob, spec: ModelSpec, content: bytes) -> np.ndarray:
    """What a file answers to some examples of the test set, asked in the process of the converter in two orders.

    Raises:
      ModelError: TFLite's interpreter cannot run it, or crashes.
    """
    return job.converter.run_file(content, preprocess(spec, choose_evenly(job.data.test_x, NUM_CHECKED)))


def _find_converter(job: ExportJob) -> Converter:
    return Converter(job.converter.convert, str(job.converter.folder))


def convert_file(
    job: ExportJob, export: ModelExport, model: LoadedModel, export_format: str, reference: np.ndarray
) -> ConvertedModel:
    """A model in one format.

    Args:
      job: the export.
      export: the model.
      model: the same, read.
      export_format: of EXPORT_FORMATS.
      reference: outputs of its Keras model on the test set, float32 (examples, *output_shape).

    Raises:
      ModelError: the converter cannot make it, or it answers otherwise than Keras; one line.
      FlagError: the representative client has no train examples.
      OSError: what is needed meanwhile cannot be written.
    """
    converted = _convert(job, export, model, export_format)
    _check_file(job, model.spec, converted.content, reference, export_format, f"{export_format} of {model.spec.name}")
    return converted


def _convert(job: ExportJob, export: ModelExport, model: LoadedModel, export_format: str) -> ConvertedModel:
    unused = dict.fromkeys(("representative_client", "representative_clients", "representative_examples"))
    if export_format == "float32":
        if not model.float32:
            raise ModelError(model.reason)
        return ConvertedModel(model.float32, unused)
    io = job.request.io if export_format in INTEGER_FORMATS else "float32"
    converter = _find_converter(job)
    if export_format != "int8":
        return ConvertedModel(convert_model(model.spec, model.weights, export_format, io, None, converter), unused)
    clients, examples = _read_representatives(job, export)
    content = convert_model(model.spec, model.weights, export_format, io, examples, converter)
    used = {
        "representative_client": clients[0].name if len(clients) == 1 else None,
        "representative_clients": len(clients),
        "representative_examples": len(examples),
    }
    return ConvertedModel(content, used)


def _read_representatives(job: ExportJob, export: ModelExport) -> tuple[list[ClientFiles], np.ndarray]:
    clients = find_representative_clients(export, job.data, job.request.representative_client)
    return clients, read_representative_examples(
        job.data, clients, job.request.representative_examples, job.run.task.kind.is_labelled_by_class
    )


def measure_layers(job: ExportJob, export: ModelExport, model: LoadedModel) -> list[LayerError]:
    """What int8 does to each layer of a model. Raises ModelError if it cannot be measured, and as `convert_file`."""
    _, examples = _read_representatives(job, export)
    compared = choose_evenly(job.data.test_x, job.request.representative_examples)
    return read_layers(debug_quantization(model.spec, model.weights, examples, compared, _find_converter(job)))


def convert_training_file(
    job: ExportJob, model: LoadedModel, training: PhoneTraining, reference: np.ndarray
) -> TrainingFile:
    """The file of a model that trains on the phone.

    Args:
      job: the export, which says what of the model is trained.
      model: the model.
      training: how the run's clients trained it.
      reference: outputs of its float model on the test set, float32 (examples, *output_shape).

    Raises:
      ModelError: as for `convert_file`, or the head of a model that does not end in dense layers.
      OSError: as for `convert_file`.
    """
    examples = choose_evenly(job.data.test_x, NUM_CHECKED)
    batch_size, part = job.run.config.batch_size, job.request.on_device_training
    step = LocalStep(training.optimizer, training.momentum, training.weight_decay, training.proximal_weight)
    converter = _find_converter(job)
    file = convert_training_module(model.spec, model.weights, batch_size, part, examples, converter, step)
    _check_file(job, model.spec, file.content, reference, "training", f"on-device training of {model.spec.name}")
    return file


def _check_file(
    job: ExportJob, spec: ModelSpec, content: bytes, reference: np.ndarray, export_format: str, label: str
) -> None:
    """Runs a file for the first time, in the process of the converter, on some examples of the test set."""
    try:
        check_answers(run_first(job, spec, content), choose_evenly(reference, NUM_CHECKED), export_format)
    except ModelError as error:
        raise ModelError(f"{label}: {error}") from None
