"""One training run from its config to its run folder; knows no algorithm by name."""

import contextlib
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from datasets.federated_data import FederatedData
from datasets.layouts import AUTO
from datasets.own_objects import describe_failure, find_own_line
from files.writing import write_text
from launch.command_line import WRONG_REQUESTS, describe_memory_error, describe_os_error, keep_traceback
from launch.console.progress import say_while_waiting
from launch.console.stop_signals import as_stop_after_signal, get_stop_code
from launch.runs.archetype_metrics import name_archetype_metrics
from launch.runs.checkpoints import Checkpoints
from launch.runs.client_rounds import ClientRounds
from launch.runs.columns import RUN_PAGE
from launch.runs.errors import RunStopped
from launch.runs.run_description import check_same_data, check_same_modules, write_config
from launch.runs.run_folder import RunFolder, check_run_folder, open_run_folder
from launch.runs.task_columns import find_task_columns
from launch.runtimes.runtime import ComputationError, WorkerError, quiet_tensorflow
from launch.settings.algorithms import ALGORITHMS
from launch.settings.flags import FlagError
from launch.settings.run_config import RunConfig, find_algorithm, flag_values
from launch.training.announcements import (
    advise_on_rejected,
    find_models,
    find_result,
    find_start,
    find_troubles,
    resume_command,
    say_findings,
    was_all_rejected,
)
from launch.training.conformance import build_own_process, check_changed, name_own
from launch.training.federation import (
    build_run_task,
    build_spec,
    check_attack,
    find_attackers,
    flip_attackers_labels,
    load_federated_data,
    weigh_classes,
)
from launch.training.model_inputs import check_can_be_scaled, check_model_inputs, scale_features
from launch.training.opened_data import is_random
from launch.training.partners import Partners, check_resumed
from launch.training.replaying import Replay
from launch.training.round_loop import RoundLoop
from launch.training.run_needs import check_needs
from launch.training.run_runtime import open_run_runtime, settle_compilation, settle_device
from launch.training.tracking import Tracking, open_tracking
from tff_algos.protocol import FederatedProcess, State
from tff_algos.settings.config_fields import ConfigError, is_own
from tff_algos.settings.fine_tuning import FineTuningConfig

if TYPE_CHECKING:
    from models.model_spec import ModelSpec

MAX_LOG_LINE = 200
# TensorFlow's start alone may take some seconds.
MODEL_WAIT_S = 20.0


def run_training(config: RunConfig, partners: Partners | None = None) -> dict[str, Any]:
    """Trains, evaluates and records as the config says; returns what is in `summary.json`.

    Args:
      config: of the run.
      partners: its clients, if they are not simulated by the config alone.

    Raises:
      RunStopped: the worker died or nobody reads the output (exit code 1), or somebody pressed Ctrl-C (130); a
        checkpoint is saved. Or the run is over, but every update was rejected (1).
      ValueError: of a subclass whose message is one line: what the config asks for cannot be done.
      OSError: a file cannot be read or written.
    """
    check_run_folder(config)
    check_resumed(config, is_live=partners is not None and partners.is_live)
    check_needs(config)
    if config.replay and partners:
        raise ConfigError("replay", config.replay, "launch.train with it, whose clients need nobody")
    partners = Replay(config) if config.replay else partners
    data = partners.load_data(config, load_federated_data) if partners else load_federated_data(config)
    # What was begun with fewer clients may go on.
    if not config.resume:
        config.algorithm.check_clients(len(data.clients))
    config.algorithm.check_examples(int(data.num_train.min()))
    config.algorithm.check_devices(data.profiles, len(data.clients))
    config.algorithm.check_archetypes(data.archetypes)
    check_best_can_be_chosen(config, data)
    check_task(config, data)
    data = weigh_classes(config, data)
    check_attack(config, data)
    check_can_be_scaled(config, data)
    if partners:
        partners.check(config, data)
    with contextlib.ExitStack() as stack:
        # It ends after the folder is let go, and so knows of the end.
        tracking = stack.enter_context(open_tracking(config))
        folder = stack.enter_context(_open_folder(config, partners.data_name if partners else ""))
        stack.enter_context(_stop_in_one_line(folder, config))
        if not folder.is_new:
            check_same_data(folder, data)
            check_same_modules(folder, config)
        start = find_start(config, folder, data)
        # A model that is named may not fit the data, or be wrong; then this is all that is said.
        is_named = {config.model, config.teacher_model, config.loss, *config.algorithm.model_names} != {AUTO}
        if not is_named:
            say_findings(start)
        waiting = say_while_waiting("the model is built and checked", MODEL_WAIT_S)
        # The first import of TensorFlow, whose noise goes to the log.
        with waiting, folder.start_log() as log, quiet_tensorflow(log):
            config = settle_device(config)
            task = build_run_task(config, data.format, data.class_weights)
            config, spec = settle_compilation(config, build_spec(config, data.format, task=task), data)
        if is_named:
            say_findings(start)
        if partners:
            say_findings(partners.describe())
        runtime = stack.enter_context(open_run_runtime(config, str(folder.worker_log)))
        data, spec = scale_features(config, folder, data, spec)
        if not is_random(config):
            check_model_inputs(data, spec)
        if folder.is_new:
            check_changed(config, data, spec, str(folder.worker_log))
        if partners:
            data = partners.gather(config, folder, data, flip_attackers_labels(config, data), spec)
        return _run(config, folder, data, spec, runtime.worker_memory_bytes, tracking, partners)


def check_best_can_be_chosen(config: RunConfig, data: FederatedData) -> None:
    """Raises ConfigError if a setting asks for the best round, but no client has validation examples to tell it by."""
    if any(client.num_validation for client in data.clients):
        return
    expected = "clients with validation examples; raise --validation_fraction, or leave it out"
    for name in ("keep_best", "patience"):
        if value := getattr(config, name):
            raise ConfigError(name, value, expected)


def check_task(config: RunConfig, data: FederatedData) -> None:
    """Raises ConfigError if settings are given that the task of the data, which only these tell, does not have."""
    task = find_task_columns(data.format.labels.task)
    if config.loss not in (AUTO, *task.kind.losses) and not is_own(config.loss):
        expected = f"{AUTO} or {' or '.join(task.kind.losses)} for the task {task.kind.title}, or module:function"
        raise ConfigError("loss", config.loss, expected)
    if config.target_accuracy > 0 and not task.is_classification:
        expected = f"0, since the task is {task.kind.title}; give --target_metric, the {task.title} on the test set"
        raise ConfigError("target_accuracy", config.target_accuracy, expected)


@contextlib.contextmanager
def _open_folder(config: RunConfig, data_name: str) -> Iterator[RunFolder]:
    """The run's folder, which is removed at the end if it is a smoke run's own, or if no run has begun in it."""
    if config.smoke and not config.run_dir:
        folder = RunFolder(pathlib.Path(tempfile.mkdtemp(prefix="federated_smoke_")), is_new=True, is_passing=True)
    else:
        folder = open_run_folder(config, data_name)
    try:
        yield folder
    except (FlagError, RunStopped) as error:
        # Not even its first round is right, as of a user's algorithm: there is nothing to go on with.
        is_wrong = getattr(error, "exit_code", 2) == 2
        if is_wrong and folder.is_new and folder.has_begun and not folder.metrics.exists():
            folder.clear()
            folder.has_begun = False
        raise
    finally:
        folder.discard()
        folder.close()


@contextlib.contextmanager
def _stop_in_one_line(folder: RunFolder, config: RunConfig) -> Iterator[None]:
    """Turns what may end a run early into RunStopped, whose line says how to go on."""
    try:
        with as_stop_after_signal():
            yield
    except KeyboardInterrupt as error:
        raise RunStopped(f"stopped; {_say_how_to_go_on(folder, config)}", get_stop_code(error)) from None
    except (*WRONG_REQUESTS, RunStopped):
        raise
    except (Exception, SystemExit) as error:
        is_own = isinstance(error, FileNotFoundError) and find_own_line(error)
        is_own = is_own or (isinstance(error, ComputationError) and name_own(config))
        if is_own or not isinstance(error, OSError | MemoryError | WorkerError):
            _raise_own_failure(error, folder, config)
        raise RunStopped(f"error: {_explain(error)}; {_say_how_to_go_on(folder, config)}", 1) from error


def _raise_own_failure(error: BaseException, folder: RunFolder, config: RunConfig) -> NoReturn:
    """Raises what ends a run of own code: where it failed and why; of other runs the error itself."""
    reason = str(error) if isinstance(error, ComputationError) else describe_failure(error)
    label = name_own(config, reason)
    if not label:
        raise error
    label = ", ".join([label, *getattr(error, "__notes__", [])[:1]])
    # No command goes on with it: the code that fixes this is another than the one with which the run began.
    rest = f"; what it has done is kept in {folder.path}" if folder.metrics.exists() else ""
    raise RunStopped(f"error: {label}: {reason}{keep_traceback(error)}{rest}", 2) from error


def _explain(error: OSError | MemoryError | WorkerError) -> str:
    """The error in a line; that of a worker with the last line of its log, where that is short and new."""
    if isinstance(error, BrokenPipeError):
        return "nobody reads the output any more"
    if isinstance(error, OSError | MemoryError):
        return describe_os_error(error) if isinstance(error, OSError) else describe_memory_error(error)
    message = str(error).rstrip("?")
    last = (error.log_tail.splitlines() or [""])[-1].strip()
    return message if not last or len(last) > MAX_LOG_LINE or last in message else f"{message} ({last})"


def _say_how_to_go_on(folder: RunFolder, config: RunConfig) -> str:
    if folder.can_be_resumed:
        return f"go on with: {resume_command(folder, config)}"
    if not folder.has_begun or folder.is_passing:
        return "nothing is kept of a smoke run" if folder.is_passing else "nothing was trained yet"
    return f"{folder.config} is gone, without which the run cannot go on; its results so far are kept"


def _run(
    config: RunConfig,
    folder: RunFolder,
    data: FederatedData,
    spec: "ModelSpec",
    worker_memory_bytes: Callable[[], int],
    tracking: Tracking,
    partners: Partners | None,
) -> dict[str, Any]:
    # These import TensorFlow or Matplotlib. TensorFlow has been loaded by now, and its noise is in the worker's log;
    # at the top of the module they would cost every wrong request the seconds that the import takes.
    from launch.pages.plots import run_plots, style
    from launch.runs.tensorboard_log import TensorBoardLog
    from launch.training import evaluation, results
    from launch.training.run_models import BestRound, check_saving

    process = build_process(config, spec, data)
    if partners:
        process = partners.join(process, config, spec, data, folder)
    evaluate = evaluation.build_evaluator(spec)
    attackers = find_attackers(config, data)
    evaluated = evaluation.choose_evaluated_clients(data, config.evaluated_clients, config.seed, attackers)
    task = find_task_columns(data.format.labels.task)
    clients_by_round = ClientRounds(evaluated, task) if config.clients_by_round else None
    note_clients = clients_by_round and clients_by_round.take
    of_states = evaluation.StateEvaluation(process, data, evaluate, evaluated, config.fairness, note_clients)
    evaluate_state = partners.evaluate(process, of_states, task) if partners else of_states
    spread = task.spread if process.is_personal or config.fairness else ()
    names = (*spread, *name_archetype_metrics(data.archetypes))
    say_findings(find_models(config, spec))
    spec = check_saving(config, spec)
    # Only here, where the data and the model have turned out to be fine, is the run replaced that --overwrite names.
    if folder.is_new:
        folder.clear()
    checkpoints = Checkpoints(folder.checkpoints)
    best = BestRound(folder, data, spec, process, checkpoints) if config.keep_best else None
    loop = RoundLoop(
        *(config, folder, process, checkpoints, evaluate_state, worker_memory_bytes, task, names, best),
        clients_by_round,
        partners,
    )
    # After the loop was built, which refuses a resumed run that has done more rounds.
    write_config(folder, config, data, partners.describe_run() if partners else {})
    settings = folder.config.read_text(encoding="utf-8")
    tensorboard = TensorBoardLog(
        folder.tensorboard, loop.metrics.columns, loop.metrics.iterate_rows(), flag_values(config)
    )
    tracking.start(folder.path)

    def after_round() -> None:
        tensorboard.add(loop.metrics.columns, [loop.metrics.last_row])
        tracking.check()

    style.import_matplotlib_meanwhile()
    state = loop.run(after_round=after_round)
    if partners:
        data = partners.finish(process, state, data)
    # Somebody moved or cleaned the folder; results are of no use without it.
    if not folder.config.exists():
        write_text(folder.config, settings)
    summary = results.write_results(
        *(folder, config, data, spec, process, state, evaluate, loop.metrics, loop.timing, task),
        lambda *asked: of_states.test_clients(*asked, loop.is_evaluated),
    )
    run_plots.draw_run(folder.path)
    write_page(config, folder)
    is_one_model = has_one_model(process, state) and task.is_classification
    say_findings(find_troubles(config, data, loop.metrics, is_one_model))
    say_findings(find_result(config, folder, summary))
    if partners:
        say_findings(partners.describe_end())
    # Only here, when all is written: what the rounds show helps to find the cause.
    if was_all_rejected(loop.metrics):
        reason = "no client's update was finite in any round, so nothing was learned"
        raise RunStopped(f"error: {reason}; {advise_on_rejected(config, data)}", 1)
    return summary


def has_one_model(process: FederatedProcess, state: State) -> bool:
    """Whether all clients use the same model as it is, which should then be better than chance on the global test set.

    A cluster's or a client's own need not be, if they have few of the labels; nor a start to fine-tune from.
    """
    return not process.is_personal and len(set(process.client_model(state))) == 1


def write_page(config: RunConfig, folder: RunFolder) -> None:
    """Writes `report.html`, unless it is not wanted.

    A smoke run whose folder is removed gets none.
    """
    from launch.pages.report.page import write_run_page

    page = folder.path / RUN_PAGE
    # That of a run that goes on is out of date now.
    page.unlink(missing_ok=True)
    if not config.run_page or (config.smoke and not config.run_dir):
        return
    write_run_page(folder.path)


def build_process(config: RunConfig, spec: "ModelSpec", data: FederatedData) -> FederatedProcess:
    """The algorithm over the model and the data; with the switch to quantization-aware training, if it comes later.

    Raises:
      ConfigError: a setting does not fit the model or the data, or the algorithm cannot switch.
    """
    process = _build_process_of(config, spec, data)
    energy = data.profiles.energy
    if energy is not None and process.list_work is None:
        expected = f"a file without joules, since --algo={config.algo} does not say what its clients do"
        raise ConfigError("device_profiles", config.device_profiles, expected)
    if data.new_clients and not process.takes_new_clients:
        expected = (
            f"0 with --algo={config.algo}, which has no model for clients that took no part, or "
            "--test_new_clients=false beside it"
        )
        raise ConfigError("new_clients", config.new_clients, expected)
    from tff_algos.rounds.forwarding import MeteredProcess, QuantizationStart
    from tff_algos.weights import initialize_weights

    if config.qat_start_round > 1:
        if process.map_models is None:
            raise ConfigError("qat_start_round", config.qat_start_round, f"1 with --algo={config.algo}")
        float_process = _build_process_of(config, spec.quantization.float_spec, data)
        template = initialize_weights(spec, config.seed)
        process = QuantizationStart(float_process, process, spec.quantization, template, config.qat_start_round)
    # Outermost, so that the rounds before the switch are metered as well.
    return process if energy is None else MeteredProcess(process, energy)


def _build_process_of(config: RunConfig, spec: "ModelSpec", data: FederatedData) -> FederatedProcess:
    algorithm = find_algorithm(config.algo)
    build, data = algorithm.load_builder(), flip_attackers_labels(config, data)
    if config.algo in ALGORITHMS:
        process = build(spec, data, config.algorithm, config.seed)
    else:
        process = build_own_process(f"--algo={config.algo}", build, spec, data, config.algorithm, config.seed)
    if not config.final_steps:
        return process
    if process.is_personal or not process.shares_models:
        reason = "have models of their own already" if process.is_personal else "share no model"
        raise ConfigError("final_steps", config.final_steps, f"0 with --algo={config.algo}, whose clients {reason}")
    from tff_algos.rounds.fine_tuned import add_final_steps

    settings = FineTuningConfig(config.final_steps, config.final_learning_rate, config.batch_size)
    return add_final_steps(process, spec, data, settings, config.seed)
