"""Makes one file of a model: converts it, measures it, and writes it with its card inside and its JSON beside it."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.example_format import GROUPS
from datasets.federated_data import ClientFiles, FederatedData
from launch.console.progress import say
from launch.runs.columns import ROUND
from launch.runs.file_names import encode_name
from launch.runs.tables import write_json
from launch.runs.task_columns import CLASSIFICATION, TASK
from launch.runtimes.processor import count_cores
from launch.settings.run_config import RunConfig, find_algorithm
from launch.tflite.card_page import FEATURES, LOCAL_TRAINING, describe_local_training
from launch.tflite.embedded_card import MODEL_SHA256, embed_card
from launch.tflite.export_measurement import (
    ExportedFile,
    compute_agreement,
    compute_alike,
    compute_keras_outputs,
    compute_lost,
    compute_metric,
    describe_signatures,
    measure_clients,
    predict,
    preprocess,
)
from launch.tflite.export_plan import INTEGER_FORMATS, ExportJob, LoadedModel, ModelExport, has_qat
from launch.tflite.export_report import ClientRow, FileRow, TrainingRow, read_layers
from launch.tflite.file_check import (
    ALIKE,
    CLASSES_ALIKE,
    NUM_CHECKED,
    TAKE_QAT,
    TRAIN_QAT,
    check_alone,
    check_answers,
    find_way_out,
    warn_of_difference,
    warn_of_loss,
)
from launch.tflite.model_card import (
    build_card,
    count_confusions,
    describe_file,
    describe_model,
    describe_training_model,
    format_card,
    list_associated,
)
from launch.tflite.phone_training import PhoneTraining, find_phone_training
from launch.tflite.representatives import choose_evenly, find_representative_clients, read_representative_examples
from launch.tflite.standard_metadata import add_metadata
from models.layer_numbers import number_layers_anew
from models.model_cost import count_multiply_accumulates, count_parameters
from models.model_names import ARCHITECTURES, ModelError, is_own_model
from models.model_spec import ModelSpec
from models.on_device_training import ADAM, BETA_1, BETA_2, EPSILON, LocalStep
from models.saved_models import load_weights
from models.task import Task
from models.tflite_export import (
    Converter,
    TrainingFile,
    convert_model,
    convert_training_module,
    debug_quantization,
    find_reference,
    list_operators,
    say_who_fails,
)
from tff_algos.protocol import Weights

FORMULA = "float32(x) * scale + offset"


class WrittenFile(NamedTuple):
    """A file that was written, as the report shows it.

    Attributes:
      row: what was measured.
      clients: the same of each client.
      predictions: of the test set, as from `predict`.
      confusions: as from `count_confusions`; None where the labels are no classes.
      layers: as from `read_layers`; () if they were not measured.
    """

    row: FileRow
    clients: list[ClientRow]
    predictions: np.ndarray
    confusions: np.ndarray | None
    layers: Sequence[Mapping[str, Any]] = ()


def export_file(
    job: ExportJob, export: ModelExport, model: LoadedModel, export_format: str, reference: np.ndarray
) -> WrittenFile:
    """Converts a model to one format, measures the file, and writes it with its JSON."""
    converted, representative = convert_file(job, export, model, export_format, reference)
    name = f"{encode_name(export.name)}.{export_format}.tflite"
    note = describe_model(*_introduce(job, export), job.run.data, model.spec.has_channel_axis)
    content = add_metadata(converted, note)  # before it is measured: as it is written
    file, x = ExportedFile(content), preprocess(model.spec, job.data.test_x)
    outputs, task, labels = file.compute_outputs(x), job.run.task, job.data.test_y
    clients = measure_clients(name, file, model.spec, job.data, export.clients)
    threads = {"1_thread": file, "all_threads": ExportedFile(content, count_cores())}
    latencies = {ending: each.measure_latency(x[0])._asdict() for ending, each in threads.items()}
    # Of a regression in the labels' unit.
    difference = model.spec.task.restore(outputs) - np.asarray(model.spec.task.restore(reference))
    row = FileRow(
        file=name,
        model=export.name,
        format=export_format,
        input_dtype=file.input.dtype,
        representative_client=representative["representative_client"] or "",
        representative_clients=representative["representative_clients"] or 0,
        client_test=float(np.mean([row.test for row in clients])) if clients else None,
        num_clients=len(clients),
        size_bytes=len(converted),
        card_bytes=0,
        share_of_float32=len(converted) / len(model.float32) if model.float32 else None,
        parameters=model.parameters,
        multiply_accumulates=model.multiply_accumulates,
        operators=_describe_operators(converted),
        test=compute_metric(model.spec.task, labels, outputs),
        keras_test=compute_metric(model.spec.task, labels, reference),
        agreement=compute_agreement(model.spec.task, outputs, reference),
        largest_difference=float(np.abs(difference).max()),
        **{f"{field}_{ending}": value for ending, each in latencies.items() for field, value in each.items()},
    )
    used = representative["representative_examples"]
    row = row._replace(warning=_find_warnings(job, export, model, row, outputs, reference, used))
    predictions = predict(model.spec.task, outputs)
    confusions = None
    if task.kind.is_labelled_by_class:
        confusions = count_confusions(labels, predictions, job.data.format.num_classes)
    tensors = {"input": file.input._asdict(), "output": file.output._asdict()}
    own = {"format": export_format, **tensors, **representative, **_describe_labels(model.spec.task)}
    facts = describe_file(row, clients, len(labels), confusions, task)
    size_bytes = _write_file(job, export, name, content, row.size_bytes, own, facts)
    row = row._replace(size_bytes=size_bytes, card_bytes=size_bytes - row.size_bytes)
    say(f"{name}  {row.size_bytes:,} bytes, test {task.title} {task.format(row.test)}")
    if row.warning:
        say(f"warning  {name} {row.warning}")
    return WrittenFile(row, clients, predictions, confusions)


def _find_warnings(
    job: ExportJob,
    export: ModelExport,
    model: LoadedModel,
    row: FileRow,
    outputs: np.ndarray,
    reference: np.ndarray,
    used: int | None,
) -> str:
    """How much a file has lost by its format, with the way out; "" of a good one.

    Args:
      job: the export.
      export: the model.
      model: the same, read.
      row: what was measured.
      outputs: of the file on the test set, float32 (examples, *output_shape).
      reference: Keras's.
      used: how many examples have set its ranges; None for formats without.
    """
    task, config, request = model.spec.task, job.run.config, job.request
    lost = compute_lost(task, row.test, row.keras_test)
    alike = compute_alike(task, job.data.test_y, outputs, reference)
    loss = (row.format, alike, lost, row.share_of_float32, job.run.task.title)
    way_out = ""
    # Whether TF-MOT can quantize a model takes seconds to find out.
    if used is not None and warn_of_loss(*loss):
        if config.quantize == "qat":
            training = TAKE_QAT if has_qat(job.run, export.is_teacher) else ""
        else:
            can_be_qat = not export.is_teacher and can_train_quantized(config, model.spec)
            training = TRAIN_QAT if can_be_qat else ""
        is_of_one = bool(request.representative_client)
        way_out = find_way_out(row.format, training, used, request.representative_examples, is_of_one)
    kinds = ALIKE.get(task.kind.name, CLASSES_ALIKE)
    warnings = warn_of_difference(row.format, outputs, reference), warn_of_loss(*loss, way_out, kinds)
    return "; it ".join(filter(None, warnings))


def can_train_quantized(config: RunConfig, spec: ModelSpec) -> bool:
    """Whether a run with these settings and this float model could begin with --quantize=qat, which is advised then."""
    privacy = getattr(config.algorithm, "privacy", None)
    is_private = privacy is not None and privacy.is_active
    # A run with one of these is refused, so that it would be no advice.
    if find_algorithm(config.algo).takes_floats_alone or config.precision != "float32" or is_private:
        return False
    if not is_own_model(spec.name):
        return not ARCHITECTURES[spec.name].unquantized
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
    # Of the model alone: no card can name a digest of the file that it is in.
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


# Makes the files of a model, each checked against Keras before it is measured or written.


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
        # Other formats may be possible all the same.
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
            # Forth and back, which shows a state as well.
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
) -> tuple[bytes, dict[str, Any]]:
    """A model in one format: the file's content, and whose examples set its ranges, as its JSON says it.

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
    used = dict.fromkeys(("representative_client", "representative_clients", "representative_examples"))
    io = job.request.io if export_format in INTEGER_FORMATS else "float32"
    if export_format == "float32":
        if not model.float32:
            raise ModelError(model.reason)
        content = model.float32
    elif export_format == "int8":
        clients, examples = _read_representatives(job, export)
        content = convert_model(model.spec, model.weights, export_format, io, examples, _find_converter(job))
        used = {
            "representative_client": clients[0].name if len(clients) == 1 else None,
            "representative_clients": len(clients),
            "representative_examples": len(examples),
        }
    else:
        content = convert_model(model.spec, model.weights, export_format, io, None, _find_converter(job))
    _check_file(job, model.spec, content, reference, export_format, f"{export_format} of {model.spec.name}")
    return content, used


def _read_representatives(job: ExportJob, export: ModelExport) -> tuple[list[ClientFiles], np.ndarray]:
    clients = find_representative_clients(export, job.data, job.request.representative_client)
    if not clients:
        say("note     int8: its ranges are of the test examples, on which it is measured, too; clients have theirs")
    return clients, read_representative_examples(
        job.data, clients, job.request.representative_examples, job.run.task.kind.is_labelled_by_class
    )


def measure_layers(job: ExportJob, export: ModelExport, model: LoadedModel) -> list[dict[str, Any]]:
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
