"""`python -m launch.export --run_dir=...` makes TFLite files of a finished run's models, and measures them.

Writes into the run's `export/`, or `export/best/` with --round=best: a .tflite file for each model and format, a JSON
beside each, `labels.txt` and a report. They replace what earlier exports have written there.

Exit codes: 0 done (without --formats, also if a model cannot have some formats), 1 a file that was asked for cannot be
made and others are, or a file could not be written, 2 the request was wrong or not one file can be made, 130 stopped by
Ctrl-C.
"""

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from datasets.federated_data import FederatedData
from launch.command_line import parse_command, run_command, take_run_dir
from launch.console.stop_signals import leave
from launch.runs.checkpoints import Checkpoints
from launch.runs.columns import CHECKPOINTS, KEPT, REPORT_PAGE, WEB_PAGE, WORKER_LOG
from launch.runs.errors import RunFolderError, RunStopped
from launch.runs.stored_data import has_test_set
from launch.runtimes.runtime import WorkerError, quiet_tensorflow
from launch.settings.errors import FlagError
from launch.settings.suggestions import suggest_value
from launch.settings.trusted_modules import read_trusted
from launch.tflite.converter_process import run_converter_process
from launch.tflite.export_plan import (
    INTEGER_FORMATS,
    ExportJob,
    ExportRequest,
    ModelExport,
    get_export_folder,
    open_export_folder,
    plan_exports,
)
from launch.tflite.export_report import ExportReport, format_summary
from launch.tflite.flower_app import ask_for_training, check_folder, check_models
from launch.tflite.representatives import check_representative_client
from launch.tflite.web_page import check_format as check_page_format
from launch.tflite.web_page import check_request as check_page_request
from launch.training.finished_run import FinishedRun, read_finished_run, say_if_unchecked
from launch.training.run_needs import ensure_installed
from launch.training.run_runtime import keep_to_this_machine, open_run_runtime, settle_device_again
from models.model_names import EXPORT_FORMATS

if TYPE_CHECKING:
    from tff_algos.protocol import Weights


Flags = ExportRequest
USAGE = "python -m launch.export <run folder> [--model=<name>] [--formats=<format,...>] [--flag=value ...]"
COMMON = (
    "run_dir",
    "model",
    "formats",
    "round",
    "npz",
    "on_device_training",
    "save_test_set",
    "web_page",
    "flower_app",
)  # of its flags, what --help shows


def parse_request(argv: Sequence[str]) -> ExportRequest:
    """Reads the command line, without the program's name. Raises FlagError."""
    request, given = parse_command(ExportRequest, take_run_dir(argv))
    if not request.run_dir:
        raise FlagError("--run_dir is missing: expected the folder of a finished run, such as runs/fedavg_digits_001")
    _check_formats(request, given)
    return request


def _check_formats(request: ExportRequest, given: Collection[str]) -> None:
    unknown = [name for name in request.formats if name not in EXPORT_FORMATS]
    if unknown:
        expected = f"expected some of {', '.join(EXPORT_FORMATS)}{suggest_value(unknown[0], EXPORT_FORMATS)}"
        raise FlagError(f"--formats={','.join(request.formats)}: no format {', '.join(unknown)}; {expected}")
    if not request.formats:
        return
    if request.io == "int8" and not set(request.formats) & set(INTEGER_FORMATS):
        raise FlagError(f"--io=int8: only {' and '.join(INTEGER_FORMATS)} have that; add one to --formats")
    for name in ("representative_client", "representative_examples"):
        if name in given and "int8" not in request.formats:
            raise FlagError(f"--{name}: does nothing without int8; leave it out, or add int8 to --formats")
    if request.debug_quantization and "int8" not in request.formats:
        raise FlagError("--debug_quantization: it looks into int8 only; add int8 to --formats")


def export_run(run: FinishedRun, exports: Sequence[ModelExport], request: ExportRequest) -> ExportReport:
    """Writes the files of these models into the run's `export/`, when all are ready.

    Raises:
      DatasetError: the data cannot be read, or are not those of the run.
      ModelError: a saved model cannot be read, or not one file can be made.
      RunFolderError: the run's folder cannot be written.
    """
    log_path = str(run.path / WORKER_LOG)
    # The process of the converter imports TensorFlow while the data are read here.
    with open_export_folder(run) as folder, run_converter_process(folder, log_path) as converter:
        data = run.load_data()
        personal = compute_personal_weights(run, data, [export.name for export in exports if export.is_personal])
        with quiet_tensorflow(log_path):
            from launch.tflite.export_models import export_models

            settle_device_again(run.config)
            return export_models(ExportJob(run, data, request, folder, converter, personal), exports)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_command(_run, "export", USAGE, ExportRequest, argv, common=COMMON)


def _run(arguments: Sequence[str]) -> int:
    request = ask_for_training(parse_request(arguments))
    if request.web_page:
        check_page_request(request.io)  # before the run's data and models are looked at
    if request.flower_app:
        check_folder(request.flower_app)
    npz, trusted = os.path.expanduser(request.npz), read_trusted(request.trust_module)
    run = read_finished_run(request.run_dir, request.data_dir, npz, request.round, trusted, request.client_dir)
    if request.web_page:
        check_page_format(run.format)
    exports = plan_exports(run, request.model, request.formats)
    if request.flower_app:
        check_models(run, exports)
    check_representative_client(run, request.representative_client)
    check_test_set(run)
    report = export_run(run, exports, request)
    say_if_unchecked(run)
    print("\n".join(format_summary(report)))
    if request.web_page:
        print(f"page     {get_export_folder(run) / WEB_PAGE}")
    print(f"report   {get_export_folder(run) / REPORT_PAGE}")
    # Without --formats a model has what it can have; a table of layers and a file that trains are always asked for.
    asked = [row.file for row in report.failed if request.formats or row.format not in EXPORT_FORMATS]
    if asked:
        print(f"error: {', '.join(asked)} cannot be made; the lines above say why", file=sys.stderr)
    return 1 if asked else 0


def check_test_set(run: FinishedRun) -> None:
    """Raises FlagError if the run has no test examples here, as one of clients' own data has whose schema alone is."""
    if not has_test_set(run.data):
        raise FlagError(
            f"--run_dir={run.path}: the run has no test examples on this machine, by which exported files are checked; "
            f"its models are in {run.models}, and a run of launch.serve with --data=<a sample> in place of --schema "
            "has some"
        )


def compute_personal_weights(
    run: FinishedRun, data: FederatedData, client_names: Sequence[str]
) -> Mapping[str, "Weights"]:
    """The weights that each of these clients ends up with, by the client's name.

    The run's own runtime trains them, a TFF worker of this machine for example, unless no client is asked for.

    Raises:
      RunFolderError: the run has no checkpoint of its last round, or no state of its best one if that is asked for.
      RunStopped: the worker failed.
      FlagError: the worker is not installed and cannot be got.
    """
    if not client_names:
        return {}
    ensure_installed(run.config)
    try:
        log_path = str(run.path / WORKER_LOG)
        with quiet_tensorflow(log_path):
            config = settle_device_again(run.config)
        # A finished run goes to no cluster again.
        with open_run_runtime(keep_to_this_machine(config), log_path):
            from launch.training.training_run import build_process

            process = build_process(run.config, run.build_spec(to_train=True), data)
            process.keep_in(run.path / KEPT)
            checkpoints, done, start = Checkpoints(run.path / CHECKPOINTS), run.rounds, process.initialize()
            if run.is_best:
                state = checkpoints.load_best(done, start)
            else:
                done, state = checkpoints.restore(start)
            if done != run.rounds:
                raise RunFolderError(f"--run_dir={run.path}: its last checkpoint is of round {done}, not {run.rounds}")
            clients = [client for client in data.everyone if client.name in client_names]
            return {client.name: weights for client, weights in process.personalize(state, clients)}
    except WorkerError as error:
        raise RunStopped(f"error: {error}", 1) from error


if __name__ == "__main__":
    leave(main())
