"""Converts the models of a run to TFLite, measures each file, and writes the files and a report into a folder."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from files.writing import write_text
from launch.console.progress import say
from launch.pages.plots.confusion_plots import draw_confusions
from launch.runs.columns import LABELS_FILE, TEST_SET_FILE
from launch.runs.file_names import encode_name
from launch.runtimes.processor import count_cores
from launch.settings.run_config import flag_values
from launch.settings.run_titles import describe_run
from launch.tflite.export_measurement import (
    TIMED_RUNS,
    ExportedFile,
    compute_metric,
    preprocess,
    warn_of_no_numbers,
)
from launch.tflite.export_plan import NO_TRAINING, ExportJob, LoadedModel, ModelExport
from launch.tflite.export_report import (
    ExportReport,
    FailedFile,
    SizeRow,
    TrainingRow,
    write_report,
)
from launch.tflite.model_card import count_confusions, format_names, write_cards
from launch.tflite.web_page import write_web_page
from launch.tflite.written_files import (
    WrittenFile,
    compute_reference,
    export_file,
    measure_layers,
    measure_model,
    read_weights,
    run_first,
    write_training_file,
)
from models.model_names import ModelError
from models.model_spec import ModelSpec

CONFUSIONS_SUFFIX = ".confusions.png"


class WrittenModel(NamedTuple):
    """A model's files, its rows beside its teacher's, the row of its training file if there is one, what failed."""

    files: list[WrittenFile]
    sizes: list[SizeRow]
    training_files: list[TrainingRow]
    failed: list[FailedFile]


def export_models(job: ExportJob, exports: Sequence[ModelExport]) -> ExportReport:
    """Writes everything into `job.folder` and returns what the report says, also of the files that cannot be made.

    Raises:
      ModelError: a saved model cannot be read, or not one file can be made.
      FlagError: the representative client has no examples.
      OSError: a file cannot be written.
    """
    trains = job.request.on_device_training != NO_TRAINING  # by the loss of the run
    spec = job.run.build_spec("float32", trains)  # the weights are float32, and so is what a file is compared with
    specs = [job.run.choose_spec(spec, export.source) for export in exports]
    page_data = _find_page_data(job, exports, specs)
    models = [_export_model(job.suit(own), export, own) for export, own in zip(exports, specs, strict=True)]
    failed = [row for model in models for row in model.failed]
    if not any(model.files or model.training_files for model in models):
        first, *others = failed
        names = f"; nor can {', '.join(row.file for row in others)} be made" if others else ""
        raise ModelError(f"{first.file}: {first.reason}{names}")
    students = [row for model in models for row in model.sizes]
    files = [file for model in models for file in model.files]
    report = ExportReport(
        title=describe_run(flag_values(job.run.config), job.data.dataset),
        rounds=job.run.rounds,
        num_test=len(job.data.test_y),
        timed_runs=TIMED_RUNS,
        threads=count_cores(),
        files=[file.row for file in files],
        clients=[row for file in files for row in file.clients],
        sizes=_set_beside_teachers(job, spec.teacher, students) if job.run.teachers and students else [],
        training_files=[row for model in models for row in model.training_files],
        layers={file.row.file: file.layers for file in files if file.layers},
        failed=failed,
        task=job.run.task,
    )
    write_report(report, job.folder)
    for file in files if job.run.task.kind.is_labelled_by_class else ():
        counts = count_confusions(job.data.test_y, file.predictions, job.data.format.num_classes)
        path = (job.folder / file.row.file).with_suffix(CONFUSIONS_SUFFIX)
        draw_confusions(counts, job.data.format.class_names, f"{file.row.file}: {report.title}", path)
    write_cards(job.folder, [*(file.row.file for file in files), *(row.file for row in report.training_files)])
    if job.data.format.class_names:
        write_text(job.folder / LABELS_FILE, format_names(job.data.format.class_names))
    predictions = {file.row.file: file.predictions for file in files}
    if job.request.save_test_set:
        np.savez_compressed(job.folder / TEST_SET_FILE, x=job.data.test_x, y=job.data.test_y, **predictions)
    if job.request.web_page:
        write_web_page(job.folder, report, page_data, predictions, job.request.formats, job.run.data)
    return report


def _find_page_data(job: ExportJob, exports: Sequence[ModelExport], specs: Sequence[ModelSpec]) -> FederatedData:
    """The data as the models of a web page get them. Raises ModelError if these do not get them alike."""
    suited = [job.suit(spec).data for spec in specs]
    unlike = [each.format.preprocessing != suited[0].format.preprocessing for each in suited]
    if job.request.web_page and any(unlike):
        names = exports[0].name, exports[unlike.index(True)].name
        raise ModelError(
            f"web_page: models {' and '.join(names)} get examples of unlike scale; choose one with --model"
        )
    return suited[0]


def _export_model(job: ExportJob, export: ModelExport, spec: ModelSpec) -> WrittenModel:
    personal = job.personal_weights[export.name] if export.is_personal else None
    weights = read_weights(job, export.source, spec) if personal is None else personal
    has_training_file = job.request.on_device_training != NO_TRAINING
    failed = []

    def note(ending: str, error: ModelError) -> None:
        name = f"{encode_name(export.name)}.{ending}"
        failed.append(FailedFile(name, ending.partition(".")[0], str(error)))
        say(f"warning  {name} cannot be made: {error}")

    def attempt(ending: str, make: Callable) -> list:
        """What `make()` returns, in a list; nothing, and a line that says why, if the model cannot have that file."""
        try:
            return [make()]
        except ModelError as error:
            note(ending, error)
            return []

    endings = [f"{name}.tflite" for name in export.formats] + ["training.tflite"] * has_training_file
    try:
        model = measure_model(job, spec, weights)
        # The outputs on the test set of the Keras models that files are converted from, by whether it is for qat_int8
        kinds = {name == "qat_int8": name for name in export.formats}  # all but qat_int8 have the same reference
        if job.request.on_device_training != NO_TRAINING:
            kinds.setdefault(False, "float32")
        references = {kind: compute_reference(job, model, name) for kind, name in kinds.items()}
        if problem := next(filter(None, map(warn_of_no_numbers, references.values())), ""):
            say(f"warning  {export.name} {problem}")
    except ModelError as error:
        for ending in endings:
            note(ending, error)
        return WrittenModel([], [], [], failed)
    files = []
    for name in export.formats:
        reference = references[name == "qat_int8"]
        made = attempt(f"{name}.tflite", functools.partial(export_file, job, export, model, name, reference))
        if made and name == "int8" and job.request.debug_quantization:
            measured = attempt("int8.layers.csv", functools.partial(measure_layers, job, export, model))
            made = [made[0]._replace(layers=layers) for layers in measured] or made
        files += made
    rows = [file.row for file in files]
    sizes = [
        SizeRow(
            row.model,
            row.format,
            row.parameters,
            row.multiply_accumulates,
            row.size_bytes - row.card_bytes,
            row.test,
            row.median_ms_1_thread,
        )
        for row in rows
    ]
    if "float32" not in export.formats:
        sizes = _measure_size(job, export.name, model) + sizes
    training_files = []
    if has_training_file:
        make = functools.partial(write_training_file, job, export, model, references.get(False))
        training_files += attempt("training.tflite", make)
    return WrittenModel(files, [] if export.is_teacher else sizes, training_files, failed)


def _set_beside_teachers(job: ExportJob, spec: ModelSpec, students: Sequence[SizeRow]) -> list[SizeRow]:
    """A row for each teacher's float32 file, then the students' rows, set beside the first teacher's size."""
    teachers = []
    for name in sorted(job.run.teachers):
        weights = read_weights(job, name, spec)
        try:
            teachers += _measure_size(job, name, measure_model(job, spec, weights))
        except ModelError as error:
            say(f"warning  {name} is not set beside its student: {error}")
    if not teachers:
        return []
    first_bytes = teachers[0].size_bytes
    return [row._replace(times_smaller=first_bytes / row.size_bytes) for row in (*teachers, *students)]


def _measure_size(job: ExportJob, name: str, model: LoadedModel) -> list[SizeRow]:
    """The row of a model's float32 file; none, and a line that says why, if it cannot be made or run."""
    if not model.float32:
        return []
    try:
        run_first(job, model.spec, model.float32)
    except ModelError as error:
        say(f"warning  {name} has no row of its float32 file: {error}")
        return []
    file, x = ExportedFile(model.float32), preprocess(model.spec, job.data.test_x)
    reached = compute_metric(model.spec.task, job.data.test_y, file.compute_outputs(x))
    cost = (model.parameters, model.multiply_accumulates, len(model.float32))
    return [SizeRow(name, "float32", *cost, reached, file.measure_latency(x[0]).median_ms)]
