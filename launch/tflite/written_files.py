"""Makes one file of a model: converts it, measures it, and writes it with its card inside and its JSON beside it."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.example_format import GROUPS
from datasets.federated_data import FederatedData
from launch.console.progress import say
from launch.runs.columns import ROUND
from launch.runs.file_names import encode_name
from launch.runs.tables import write_json
from launch.runs.task_columns import CLASSIFICATION, TASK
from launch.settings.run_config import RunConfig, find_algorithm
from launch.tflite.card_page import FEATURES, LOCAL_TRAINING, describe_local_training
from launch.tflite.embedded_card import MODEL_SHA256, embed_card
from launch.tflite.export_job import ExportJob, LoadedModel
from launch.tflite.export_measurement import (
    compute_agreement,
    compute_alike,
    compute_lost,
    compute_metric,
    measure_clients,
    measure_file,
    predict,
)
from launch.tflite.export_plan import ModelExport, has_qat
from launch.tflite.export_report import (
    ClientRow,
    FileRow,
    LayerError,
    TrainingRow,
)
from launch.tflite.exported_file import describe_signatures
from launch.tflite.file_check import (
    ALIKE,
    CLASSES_ALIKE,
    TAKE_QAT,
    TRAIN_QAT,
    Ranges,
    find_way_out,
    warn_of_difference,
    warn_of_loss,
)
from launch.tflite.file_conversion import (
    convert_file,
    convert_training_file,
)
from launch.tflite.file_notes import describe_model, describe_training_model, list_associated
from launch.tflite.model_card import build_card, count_confusions, describe_file, format_card
from launch.tflite.phone_training import find_phone_training
from launch.tflite.standard_metadata import add_metadata
from models.local_step import ADAM, BETA_1, BETA_2, EPSILON
from models.model_names import UNQUANTIZED, ModelError, is_own_model
from models.model_spec import ModelSpec
from models.task import Task
from models.tflite_operators import list_operators

FORMULA = "float32(x) * scale + offset"


class WrittenFile(NamedTuple):
    """A file that was written, as the report shows it. `predictions`, as from `predict`, are of the test set."""

    row: FileRow
    clients: list[ClientRow]
    predictions: np.ndarray
    layers: Sequence[LayerError] = ()


def export_file(
    job: ExportJob, export: ModelExport, model: LoadedModel, export_format: str, reference: np.ndarray
) -> WrittenFile:
    """Converts a model to one format, measures the file, and writes it with its JSON."""
    converted = convert_file(job, export, model, export_format, reference)
    name = f"{encode_name(export.name)}.{export_format}.tflite"
    note = describe_model(*_introduce(job, export), job.run.data, model.spec.has_channel_axis)
    content = add_metadata(converted.content, note)  # before it is measured: as it is written
    measured = measure_file(content, model.spec, job.data)
    results = measure_clients(content, model.spec, job.data, export.clients)
    task = job.run.task
    row = FileRow(
        file=name,
        model=export.name,
        format=export_format,
        input_dtype=measured.input.dtype,
        representative_client=converted.representative["representative_client"] or "",
        representative_clients=converted.representative["representative_clients"] or 0,
        client_test=float(np.mean([result.test for result in results])) if results else None,
        num_clients=len(results),
        size_bytes=len(converted.content),
        card_bytes=0,
        share_of_float32=len(converted.content) / len(model.float32) if model.float32 else None,
        parameters=model.parameters,
        multiply_accumulates=model.multiply_accumulates,
        operators=_describe_operators(converted.content),
        **_compare_outputs(model.spec.task, measured.outputs, reference, job.data.test_y),
        **{f"{name}_1_thread": value for name, value in measured.latency._asdict().items()},
        **{f"{name}_all_threads": value for name, value in measured.latency_all_threads._asdict().items()},
    )
    lost = compute_lost(model.spec.task, row.test, row.keras_test)
    alike = compute_alike(model.spec.task, job.data.test_y, measured.outputs, reference)
    loss = (export_format, alike, lost, row.share_of_float32, task.title)
    kinds, way_out = ALIKE.get(task.kind.name, CLASSES_ALIKE), ""
    if warn_of_loss(*loss):  # looked for only where it is told
        used = converted.representative["representative_examples"]
        way_out = _find_way_out(job, export, model.spec, export_format, used)
    warnings = (
        warn_of_difference(export_format, measured.outputs, reference),
        warn_of_loss(*loss, way_out, kinds),
    )
    row = row._replace(warning="; it ".join(filter(None, warnings)))
    predictions = predict(model.spec.task, measured.outputs)
    clients = [ClientRow(name, *result) for result in results]
    worst_tenth = task.compute_worst_tenth(np.array([result.test for result in results]))
    confusions = None
    if task.kind.is_labelled_by_class:
        confusions = count_confusions(job.data.test_y, predictions, job.data.format.num_classes)
    forms = {"input": measured.input._asdict(), "output": measured.output._asdict()}
    own = {"format": export_format, **forms, **converted.representative, **_describe_labels(model.spec.task)}
    facts = describe_file(row, clients, worst_tenth, len(job.data.test_y), confusions, task)
    size_bytes = _write_file(job, export, name, content, row.size_bytes, own, facts)
    row = row._replace(size_bytes=size_bytes, card_bytes=size_bytes - row.size_bytes)
    say(f"{name}  {row.size_bytes:,} bytes, test {task.title} {task.format(row.test)}")
    if row.warning:
        say(f"warning  {name} {row.warning}")
    return WrittenFile(row, clients, predictions)


def _find_way_out(job: ExportJob, export: ModelExport, spec: ModelSpec, export_format: str, used: int | None) -> str:
    """What to try if a file has lost too much, by what this run and this export have done already."""
    if used is None:
        return ""
    if job.run.config.quantize == "qat":
        training = TAKE_QAT if has_qat(job.run, export.is_teacher) else ""
    else:
        training = TRAIN_QAT if not export.is_teacher and can_train_quantized(job.run.config, spec) else ""
    asked = job.request.representative_examples
    return find_way_out(export_format, Ranges(used, asked, bool(job.request.representative_client)), training)


def can_train_quantized(config: RunConfig, spec: ModelSpec) -> bool:
    """Whether a run with these settings and this float model could begin with --quantize=qat, which is advised then."""
    privacy = getattr(config.algorithm, "privacy", None)
    is_private = privacy is not None and privacy.is_active
    if find_algorithm(config.algo).takes_floats_alone or config.precision != "float32" or is_private:
        return False
    if not is_own_model(spec.name):
        return spec.name not in UNQUANTIZED
    from models.quantization import build_quantized_spec  # TF-MOT takes seconds to import

    try:
        build_quantized_spec(spec)
    except ModelError:
        return False
    return True


def _introduce(job: ExportJob, export: ModelExport) -> tuple[dict[str, Any], str, FederatedData]:
    """What a file's metadata are about: the run, as its card has it; the model's own name; the examples."""
    return build_card(job.run, job.data, []), export.name if export.is_personal else export.source, job.data


def _describe_operators(content: bytes) -> str:
    return ", ".join(f"{name} {number}" for name, number in list_operators(content).items())


def _compare_outputs(
    task: Task, outputs: np.ndarray, reference: np.ndarray, labels: np.ndarray
) -> dict[str, float | None]:
    difference = task.restore(outputs) - np.asarray(task.restore(reference))  # of a regression in the labels' unit
    return {
        "test": compute_metric(task, labels, outputs),
        "keras_test": compute_metric(task, labels, reference),
        "agreement": compute_agreement(task, outputs, reference),
        "largest_difference": float(np.abs(difference).max()),
    }


def _describe_labels(task: Task) -> dict[str, Any]:
    """How an app reads the outputs, for the file's JSON; nothing of classification, where the largest is the class."""
    if task.kind.name == CLASSIFICATION:
        return {}
    described = {TASK: task.kind.name, "activation": task.kind.activation}
    if task.label_offset or task.label_scale:
        ones = [1.0] * task.num_outputs
        described["label_formula"] = "output * label_scale + label_offset"
        described["label_scale"] = list(task.label_scale) or ones
        described["label_offset"] = list(task.label_offset) or [0.0] * task.num_outputs
    return described


def write_training_file(job: ExportJob, export: ModelExport, model: LoadedModel, reference: np.ndarray) -> TrainingRow:
    """Converts a model to its file for on-device training, and writes that with its JSON.

    Raises:
      ModelError: the model cannot have one.
    """
    batch_size, part = job.run.config.batch_size, job.request.on_device_training
    training = find_phone_training(job.run, export)
    file = convert_training_file(job, model, training, reference)
    name = f"{encode_name(export.name)}.training.tflite"
    constants = {"beta_1": BETA_1, "beta_2": BETA_2, "epsilon": EPSILON} if training.optimizer == ADAM else {}
    step = {LOCAL_TRAINING: {**training._asdict(), **constants}}
    own = {
        "format": "training",
        "trained": part,
        "batch_size": batch_size,
        **step,
        "weights": file.weight_names,
        "select_operators": file.select_operators,
        "signatures": describe_signatures(file.content),
    }
    content = add_metadata(file.content, describe_training_model(*_introduce(job, export)))
    size_bytes = _write_file(job, export, name, content, len(file.content), own, step)
    described = describe_local_training(step[LOCAL_TRAINING])
    say(f"{name}  {size_bytes:,} bytes, trains by {described}")
    lacking = ", ".join(file.select_operators)
    if lacking:
        say(f"{name}  needs the select operators of TensorFlow, for {lacking}")
    return TrainingRow(name, part, size_bytes, lacking, _describe_operators(file.content), described)


def _write_file(
    job: ExportJob,
    export: ModelExport,
    name: str,
    model: bytes,
    model_bytes: int,
    own: Mapping[str, Any],
    facts: Mapping[str, Any] | None = None,
) -> int:
    """Writes a file with its card inside, and the JSON with what a phone needs to know of it; returns the file's size.

    Args:
      job: the export.
      export: the model.
      name: of the file.
      model: with its metadata.
      model_bytes: its size without these.
      own: what the JSON says of this file alone, among it its format.
      facts: what was measured, or how it trains, for the card.
    """
    identity = {"file": name, "model": export.name, "source_model": export.source, "format": own["format"]}
    digests = {"model_bytes": model_bytes, MODEL_SHA256: hashlib.sha256(model).hexdigest()}
    card = build_card(job.run, job.data, [{**identity, **digests, **(facts or {})}])
    content = embed_card(model, format_card(card), list_associated(job.data, job.run.data))
    (job.folder / name).write_bytes(content)
    preprocessing = job.data.format.preprocessing
    common = {
        "size_bytes": len(content),
        "card_bytes": len(content) - model_bytes,
        "sha256": hashlib.sha256(content).hexdigest(),
        "dataset": job.data.dataset,
        "algorithm": find_algorithm(job.run.config.algo).name,
        ROUND: job.run.rounds,
        "source_model": export.source,
        "preprocessing": {
            "formula": FORMULA,
            "scale": preprocessing.scale,
            "offset": preprocessing.offset,
            "stored_dtype": job.data.format.input_dtype,
        },
        "labels": list(job.data.format.class_names),
        FEATURES: card.get(FEATURES, []),
        GROUPS: card.get(GROUPS, []),
    }
    write_json((job.folder / name).with_suffix(".json"), {"file": name, **own, **common})
    return len(content)
