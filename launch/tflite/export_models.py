"""Converts the models of a run to TFLite, measures each file, and writes the files and a report into a folder."""

import hashlib
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from launch.plots.confusion_plots import draw_confusions
from launch.progress import say
from launch.runs.columns import LABELS_FILE, ROUND, TEST_ACCURACY, TEST_SET_FILE
from launch.runs.tables import write_json, write_text
from launch.settings.run_config import find_algorithm, flag_values
from launch.settings.run_titles import describe_run
from launch.tflite.embedded_card import MODEL_SHA256, embed_card
from launch.tflite.export_measurement import (
    Measurement,
    compute_accuracy,
    compute_keras_logits,
    measure_clients,
    measure_file,
)
from launch.tflite.export_plan import (
    INTEGER_FORMATS,
    ModelExport,
    choose_evenly,
    choose_representative_client,
    read_representative_examples,
)
from launch.tflite.export_report import ClientRow, ExportReport, FileRow, SizeRow, TrainingRow, write_report
from launch.tflite.exported_file import TIMED_RUNS, count_threads, describe_signatures
from launch.tflite.layer_report import LayerError, read_layers
from launch.tflite.model_card import build_card, count_confusions, describe_file, format_card, write_cards
from launch.tflite.training_flag import NONE
from launch.tflite.web_page import write_web_page
from launch.training.evaluation import compute_worst_tenth
from launch.training.finished_run import FinishedRun
from models.model_cost import count_multiply_accumulates, count_parameters
from models.model_spec import ModelSpec
from models.saved_models import load_weights
from models.tflite_export import convert_model, convert_training_module, debug_quantization, find_reference
from models.tflite_operators import list_operators
from tff_algos.protocol import Weights

CONFUSIONS_SUFFIX = ".confusions.png"
FORMULA = "float32(x) * scale + offset"


class ExportJob(NamedTuple):
    """What all files of one export share.

    Attributes:
      run: the run.
      data: its clients and test set.
      io: of EXPORT_IO, for the integer formats.
      representative_client: the client asked for; "" for each model's own choice.
      representative_examples: how many to take of it at most.
      on_device_training: what of each model can be trained on the phone, of TRAINED_PARTS; NONE writes no such file.
      save_test_set: whether the test set is written, with each file's predictions.
      folder: where the files go.
      personal_weights: the weights of the personal models to be exported, by the client's name.
      debug_quantization: whether the layers of each int8 file are measured.
      web_page: whether a page with the files is written.
      page_formats: the formats in that page; empty for its own choice.
    """

    run: FinishedRun
    data: FederatedData
    io: str
    representative_client: str
    representative_examples: int
    on_device_training: str
    save_test_set: bool
    folder: pathlib.Path
    personal_weights: Mapping[str, Weights] = {}
    debug_quantization: bool = False
    web_page: bool = False
    page_formats: tuple[str, ...] = ()


class LoadedModel(NamedTuple):
    """A saved model.

    Attributes:
      spec: its specification.
      weights: in the order of `spec.build().weights`.
      parameters: as in `FileRow`.
      multiply_accumulates: as in `FileRow`.
      float32: its float32 file, which may be exported or not.
    """

    spec: ModelSpec
    weights: tuple[np.ndarray, ...]
    parameters: int
    multiply_accumulates: int
    float32: bytes


class ConvertedModel(NamedTuple):
    """A file's content, whose examples set its ranges, as its JSON says it, and its layers if they were measured."""

    content: bytes
    representative: dict[str, Any]
    layers: Sequence[LayerError] = ()


class WrittenFile(NamedTuple):
    """A file that was written, as the report shows it. `predictions` are its classes on the test set, (examples,)."""

    row: FileRow
    clients: list[ClientRow]
    predictions: np.ndarray
    layers: Sequence[LayerError] = ()


class WrittenModel(NamedTuple):
    """A model's files, its rows beside its teacher's, and the row of its training file if there is one."""

    files: list[WrittenFile]
    sizes: list[SizeRow]
    training_files: list[TrainingRow]


def export_models(job: ExportJob, exports: Sequence[ModelExport]) -> ExportReport:
    """Writes everything into `job.folder` and returns what the report says.

    Raises:
      ModelError: a saved model cannot be read, or the converter refuses it.
      FlagError: the representative client has no examples.
    """
    spec = job.run.build_spec("float32")  # the weights are float32, and so is what a file is compared with
    models = [_export_model(job, export, spec.teacher if export.is_teacher else spec) for export in exports]
    students = [row for model in models for row in model.sizes]
    files = [file for model in models for file in model.files]
    report = ExportReport(
        title=describe_run(flag_values(job.run.config), job.data.dataset),
        rounds=job.run.rounds,
        num_test=len(job.data.test_y),
        timed_runs=TIMED_RUNS,
        threads=count_threads(),
        files=[file.row for file in files],
        clients=[row for file in files for row in file.clients],
        sizes=_set_beside_teachers(job, spec.teacher, students) if job.run.teachers and students else [],
        training_files=[row for model in models for row in model.training_files],
        layers={file.row.file: file.layers for file in files if file.layers},
    )
    write_report(report, job.folder)
    for file in files:
        counts = count_confusions(job.data.test_y, file.predictions, job.data.num_classes)
        path = (job.folder / file.row.file).with_suffix(CONFUSIONS_SUFFIX)
        draw_confusions(counts, job.data.class_names, f"{file.row.file}: {report.title}", path)
    write_cards(job.folder, [*(file.row.file for file in files), *(row.file for row in report.training_files)])
    write_text(job.folder / LABELS_FILE, "".join(f"{name}\n" for name in job.data.class_names))
    predictions = {file.row.file: file.predictions for file in files}
    if job.save_test_set:
        np.savez_compressed(job.folder / TEST_SET_FILE, x=job.data.test_x, y=job.data.test_y, **predictions)
    if job.web_page:
        write_web_page(job.folder, report, job.data, predictions, job.page_formats)
    return report


def _load_model(job: ExportJob, source: str, spec: ModelSpec) -> LoadedModel:
    return _measure_model(spec, load_weights(spec, job.run.models / source))


def _measure_model(spec: ModelSpec, weights: Weights) -> LoadedModel:
    float32 = convert_model(spec, weights, "float32")
    return LoadedModel(spec, weights, count_parameters(spec), count_multiply_accumulates(spec), float32)


def _export_model(job: ExportJob, export: ModelExport, spec: ModelSpec) -> WrittenModel:
    if export.is_personal:
        model = _measure_model(spec, job.personal_weights[export.name])
    else:
        model = _load_model(job, export.source, spec)
    references = _compute_references(job, export, model)
    files = [_export_file(job, export, model, name, logits) for name, logits in references.items()]
    sizes = [_take_size(file.row) for file in files]
    if "float32" not in export.formats:
        sizes.insert(0, _measure_size(job, export.name, model))
    training_files = [] if job.on_device_training == NONE else [_write_training_file(job, export, model)]
    return WrittenModel(files, [] if export.is_teacher else sizes, training_files)


def _compute_references(job: ExportJob, export: ModelExport, model: LoadedModel) -> dict[str, np.ndarray]:
    """For each format, the logits on the test set of the Keras model from which the file is converted."""
    kinds = {name == "qat_int8": name for name in export.formats}  # all but qat_int8 have the same reference
    logits = {
        kind: compute_keras_logits(*find_reference(model.spec, model.weights, name), job.data.test_x)
        for kind, name in kinds.items()
    }
    return {name: logits[name == "qat_int8"] for name in export.formats}


def _export_file(
    job: ExportJob, export: ModelExport, model: LoadedModel, export_format: str, reference: np.ndarray
) -> WrittenFile:
    """Converts a model to one format, measures the file, and writes it with its JSON."""
    converted = _convert(job, export, model, export_format)
    name = f"{export.name}.{export_format}.tflite"
    measured = measure_file(converted.content, job.data)
    results = measure_clients(converted.content, job.data, export.clients)
    row = FileRow(
        file=name,
        model=export.name,
        format=export_format,
        input_dtype=measured.input.dtype,
        representative_client=converted.representative["representative_client"] or "",
        client_test_accuracy=float(np.mean([result.accuracy for result in results])) if results else None,
        num_clients=len(results),
        **_describe_cost(model, converted.content),
        **_compare_logits(measured.logits, reference, job.data.test_y),
        **_describe_latency(measured),
    )
    predictions = measured.logits.argmax(axis=1).astype(np.int32)
    clients = [ClientRow(name, *result) for result in results]
    worst_tenth = compute_worst_tenth(np.array([result.accuracy for result in results]))
    confusions = count_confusions(job.data.test_y, predictions, job.data.num_classes)
    forms = {"input": measured.input._asdict(), "output": measured.output._asdict()}
    own = {"format": export_format, **forms, **converted.representative}
    facts = describe_file(row, clients, worst_tenth, confusions)
    size_bytes = _write_file(job, export, name, converted.content, own, facts)
    row = row._replace(size_bytes=size_bytes, card_bytes=size_bytes - row.size_bytes)
    say(f"{name}  {row.size_bytes:,} bytes, test accuracy {row.test_accuracy:.4f}")
    return WrittenFile(row, clients, predictions, converted.layers)


def _convert(job: ExportJob, export: ModelExport, model: LoadedModel, export_format: str) -> ConvertedModel:
    unused = {"representative_client": None, "representative_examples": None}
    if export_format == "float32":
        return ConvertedModel(model.float32, unused)
    io = job.io if export_format in INTEGER_FORMATS else "float32"
    if export_format != "int8":
        return ConvertedModel(convert_model(model.spec, model.weights, export_format, io), unused)
    client = choose_representative_client(export, job.data, job.representative_client)
    examples = read_representative_examples(job.data, client, job.representative_examples)
    content = convert_model(model.spec, model.weights, export_format, io, examples)
    used = {"representative_client": client.name, "representative_examples": len(examples)}
    layers = []
    if job.debug_quantization:
        compared = choose_evenly(job.data.test_x, job.representative_examples)
        layers = read_layers(debug_quantization(model.spec, model.weights, examples, compared))
    return ConvertedModel(content, used, layers)


def _describe_cost(model: LoadedModel, content: bytes) -> dict[str, Any]:
    return {
        "size_bytes": len(content),
        "card_bytes": 0,
        "share_of_float32": len(content) / len(model.float32),
        "parameters": model.parameters,
        "multiply_accumulates": model.multiply_accumulates,
        "operators": _describe_operators(content),
    }


def _describe_operators(content: bytes) -> str:
    return ", ".join(f"{name} {number}" for name, number in list_operators(content).items())


def _compare_logits(logits: np.ndarray, reference: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    return {
        TEST_ACCURACY: compute_accuracy(logits, labels),
        "keras_test_accuracy": compute_accuracy(reference, labels),
        "top1_agreement": compute_accuracy(logits, reference.argmax(axis=1)),
        "largest_logit_difference": float(np.abs(logits - reference).max()),
    }


def _describe_latency(measured: Measurement) -> dict[str, float]:
    one, all_threads = measured.latency, measured.latency_all_threads
    return {
        "median_ms_1_thread": one.median_ms,
        "p95_ms_1_thread": one.p95_ms,
        "median_ms_all_threads": all_threads.median_ms,
        "p95_ms_all_threads": all_threads.p95_ms,
    }


def _write_training_file(job: ExportJob, export: ModelExport, model: LoadedModel) -> TrainingRow:
    batch_size, part = job.run.config.batch_size, job.on_device_training
    file = convert_training_module(model.spec, model.weights, batch_size, part)
    name = f"{export.name}.training.tflite"
    own = {
        "format": "training",
        "trained": part,
        "batch_size": batch_size,
        "weights": file.weight_names,
        "select_operators": file.select_operators,
        "signatures": describe_signatures(file.content),
    }
    size_bytes = _write_file(job, export, name, file.content, own)
    say(f"{name}  {size_bytes:,} bytes")
    lacking = ", ".join(file.select_operators)
    if lacking:
        say(f"{name}  needs the select operators of TensorFlow, for {lacking}")
    return TrainingRow(name, part, size_bytes, lacking, _describe_operators(file.content))


def _write_file(
    job: ExportJob,
    export: ModelExport,
    name: str,
    model: bytes,
    own: Mapping[str, Any],
    facts: Mapping[str, Any] | None = None,
) -> int:
    """Writes a file with its card inside, and the JSON with what a phone needs to know of it; returns the file's size.

    Args:
      job: the export.
      export: the model.
      name: of the file.
      model: as converted.
      own: what the JSON says of this file alone, among it its format.
      facts: what was measured, for the card.
    """
    identity = {"file": name, "model": export.name, "source_model": export.source, "format": own["format"]}
    digests = {"model_bytes": len(model), MODEL_SHA256: hashlib.sha256(model).hexdigest()}
    content = embed_card(model, format_card(build_card(job.run, job.data, [{**identity, **digests, **(facts or {})}])))
    (job.folder / name).write_bytes(content)
    preprocessing = job.data.preprocessing
    common = {
        "size_bytes": len(content),
        "card_bytes": len(content) - len(model),
        "sha256": hashlib.sha256(content).hexdigest(),
        "dataset": job.data.dataset,
        "algorithm": find_algorithm(job.run.config.algo).name,
        ROUND: job.run.rounds,
        "source_model": export.source,
        "preprocessing": {
            "formula": FORMULA,
            "scale": preprocessing.scale,
            "offset": preprocessing.offset,
            "stored_dtype": job.data.input_dtype,
        },
        "labels": list(job.data.class_names),
    }
    write_json((job.folder / name).with_suffix(".json"), {"file": name, **own, **common})
    return len(content)


def _set_beside_teachers(job: ExportJob, spec: ModelSpec, students: Sequence[SizeRow]) -> list[SizeRow]:
    """A row for each teacher's float32 file, then the students' rows, set beside the first teacher's size."""
    teachers = [_measure_size(job, name, _load_model(job, name, spec)) for name in sorted(job.run.teachers)]
    first_bytes = teachers[0].size_bytes
    return [row._replace(times_smaller=first_bytes / row.size_bytes) for row in (*teachers, *students)]


def _measure_size(job: ExportJob, name: str, model: LoadedModel) -> SizeRow:
    """The row of a model's float32 file."""
    measured = measure_file(model.float32, job.data)
    accuracy = compute_accuracy(measured.logits, job.data.test_y)
    cost = (model.parameters, model.multiply_accumulates, len(model.float32))
    return SizeRow(name, "float32", *cost, accuracy, measured.latency.median_ms)


def _take_size(row: FileRow) -> SizeRow:
    cost = (row.parameters, row.multiply_accumulates, row.size_bytes - row.card_bytes)
    return SizeRow(row.model, row.format, *cost, row.test_accuracy, row.median_ms_1_thread)
