"""Converts the models of a run to TFLite, measures each file, and writes the files and a report into a folder."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from datasets.federated_data import FederatedData
from files.writing import write_text
from launch.console.progress import say
from launch.pages.plots.confusion_plots import draw_confusions
from launch.runs.columns import LABELS_FILE, TEST_SET_FILE, VOCABULARY_FILE
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
from launch.tflite.flower_app import write_flower_app
from launch.tflite.model_card import format_names, write_cards
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
from models.tflite_export import find_reference
from tff_algos.protocol import Weights

CONFUSIONS_SUFFIX = ".confusions.png"
Made = TypeVar("Made")


@dataclasses.dataclass
class Written:
    """What has been written of all models so far.

    Attributes:
      files: those that were measured.
      sizes: the rows of students that stand beside their teacher's.
      training_files: a row for each file for on-device training.
      failed: what cannot be made.
    """

    files: list[WrittenFile] = dataclasses.field(default_factory=list)
    sizes: list[SizeRow] = dataclasses.field(default_factory=list)
    training_files: list[TrainingRow] = dataclasses.field(default_factory=list)
    failed: list[FailedFile] = dataclasses.field(default_factory=list)

    def note_failure(self, export: ModelExport, ending: str, error: ModelError) -> None:
        """Says in a line, and keeps for the report, why a model cannot have a file."""
        name = f"{encode_name(export.name)}.{ending}"
        self.failed.append(FailedFile(name, ending.partition(".")[0], str(error)))
        say(f"warning  {name} cannot be made: {error}")

    def attempt(self, export: ModelExport, ending: str, make: Callable[..., Made], *arguments: Any) -> Made | None:
        """What `make(*arguments)` returns; None, and a line that says why, if the model cannot have that file."""
        try:
            return make(*arguments)
        except ModelError as error:
            self.note_failure(export, ending, error)
            return None


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
    written = Written()
    for export, own in zip(exports, specs, strict=True):
        _export_model(job.suit(own), export, own, written)
    files = written.files
    if job.request.flower_app and (lost := [row for row in written.failed if row.format == "training"]):
        raise ModelError(f"flower_app: {lost[0].file} cannot be made: {lost[0].reason}")
    if not files and not written.training_files:
        first, *others = written.failed
        names = f"; nor can {', '.join(row.file for row in others)} be made" if others else ""
        raise ModelError(f"{first.file}: {first.reason}{names}")
    report = ExportReport(
        title=describe_run(flag_values(job.run.config), job.data.dataset, job.run.devices),
        rounds=job.run.rounds,
        num_test=len(job.data.test_y),
        timed_runs=TIMED_RUNS,
        threads=count_cores(),
        files=[file.row for file in files],
        clients=[row for file in files for row in file.clients],
        sizes=_set_beside_teachers(job, spec.teacher, written.sizes) if job.run.teachers and written.sizes else [],
        training_files=written.training_files,
        layers={file.row.file: file.layers for file in files if file.layers},
        failed=written.failed,
        task=job.run.task,
    )
    write_report(report, job.folder)
    for file in files:
        if file.confusions is not None:
            path = (job.folder / file.row.file).with_suffix(CONFUSIONS_SUFFIX)
            draw_confusions(file.confusions, job.data.format.class_names, f"{file.row.file}: {report.title}", path)
    # After the files, whose own cards it joins, so that both say the same.
    write_cards(job.folder, [row.file for row in (*report.files, *report.training_files)])
    if job.data.format.class_names:
        write_text(job.folder / LABELS_FILE, format_names(job.data.format.class_names))
    if job.data.format.text:
        write_text(job.folder / VOCABULARY_FILE, format_names(job.data.format.text.vocabulary))
    predictions = {file.row.file: file.predictions for file in files}
    if job.request.save_test_set:
        np.savez_compressed(job.folder / TEST_SET_FILE, x=job.data.test_x, y=job.data.test_y, **predictions)
    if job.request.web_page:
        write_web_page(job.folder, report, page_data, predictions, job.request.formats, job.run.data)
    if job.request.flower_app:
        _, weights = find_reference(specs[0], _find_weights(job, exports[0], specs[0]), "float32")
        write_flower_app(job.suit(specs[0]), exports[0], weights)
    return report


def _find_page_data(job: ExportJob, exports: Sequence[ModelExport], specs: Sequence[ModelSpec]) -> FederatedData:
    """The data as the models of a web page get them. Raises ModelError if these do not get them alike."""
    # A page has one preprocessing for all its models.
    suited = [job.suit(spec).data for spec in specs]
    unlike = [each.format.preprocessing != suited[0].format.preprocessing for each in suited]
    if job.request.web_page and any(unlike):
        names = exports[0].name, exports[unlike.index(True)].name
        raise ModelError(
            f"web_page: models {' and '.join(names)} get examples of unlike scale; choose one with --model"
        )
    return suited[0]


def _export_model(job: ExportJob, export: ModelExport, spec: ModelSpec, written: Written) -> None:
    trains = job.request.on_device_training != NO_TRAINING
    weights = _find_weights(job, export, spec)
    try:
        model = measure_model(job, spec, weights)
        # The outputs on the test set of the Keras models that files are converted from, by whether it is for qat_int8
        kinds = {name == "qat_int8": name for name in export.formats}  # all but qat_int8 have the same reference
        if trains:
            kinds.setdefault(False, "float32")
        references = {kind: compute_reference(job, model, name) for kind, name in kinds.items()}
        if problem := next(filter(None, map(warn_of_no_numbers, references.values())), ""):
            say(f"warning  {export.name} {problem}")
    except ModelError as error:
        for name in (*export.formats, *["training"] * trains):
            written.note_failure(export, f"{name}.tflite", error)
        return
    # Beside a teacher each size is compared with the float32 file's, which may be measured for that alone.
    sizes = [] if "float32" in export.formats else _measure_size(job, export.name, model)
    for name in export.formats:
        given = (job, export, model)
        file = written.attempt(export, f"{name}.tflite", export_file, *given, name, references[name == "qat_int8"])
        if file is None:
            continue
        if name == "int8" and job.request.debug_quantization:
            layers = written.attempt(export, "int8.layers.csv", measure_layers, *given)
            file = file._replace(layers=layers or ())
        written.files.append(file)
        row = file.row
        cost = row.parameters, row.multiply_accumulates, row.size_bytes - row.card_bytes
        sizes.append(SizeRow(row.model, row.format, *cost, row.test, row.median_ms_1_thread))
    if not export.is_teacher:
        written.sizes += sizes
    if trains:
        reference = references[False]
        row = written.attempt(export, "training.tflite", write_training_file, job, export, model, reference)
        written.training_files += [row] if row else []


def _find_weights(job: ExportJob, export: ModelExport, spec: ModelSpec) -> Weights:
    """Those of a model. Raises ModelError if it was saved and cannot be read."""
    return job.personal_weights[export.name] if export.is_personal else read_weights(job, export.source, spec)


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
