"""One training run from its config to its run folder; knows no algorithm by name."""

import contextlib
import math
import pathlib
import shlex
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import psutil

from datasets.catalog import find_dataset
from datasets.federated_data import FederatedData
from launch.command_line import get_stop_code
from launch.progress import Progress, format_duration, say
from launch.runs.archetype_metrics import name_archetype_metrics
from launch.runs.columns import CLIENT_TEST_ACCURACY, EVALUATION_METRICS, PERSONAL_METRICS, TEST_ACCURACY
from launch.runs.errors import RunFolderError, RunStopped
from launch.runs.event_log import EventLog
from launch.runs.round_table import RoundTable
from launch.runs.run_folder import (
    RunFolder,
    check_run_folder,
    check_same_data,
    describe_data,
    open_run_folder,
    write_config,
)
from launch.runtimes.runtime import WorkerError, quiet_tensorflow, run_tff
from launch.runtimes.worker_process import LARGE_TENSOR_BYTES
from launch.settings.flag_fields import prefix_errors
from launch.settings.flags import PROGRAM, FlagError
from launch.settings.run_config import RunConfig, find_algorithm
from launch.training.federation import build_spec, load_federated_data
from tff_algos.protocol import COMMON_METRICS, FederatedProcess, State
from tff_algos.settings.config_fields import ConfigError

if TYPE_CHECKING:
    from launch.training.evaluation import EvaluateState
    from models.model_spec import ModelSpec

MAX_LOG_LINE = 200


def run_training(config: RunConfig) -> dict[str, Any]:
    """Trains, evaluates and records as the config says; returns what is in `summary.json`.

    Raises:
      RunStopped: the worker died or nobody reads the output (exit code 1), or somebody pressed Ctrl-C (130); a
        checkpoint is kept.
      ValueError: a subclass that says in one line what of the config cannot be done.
      OSError: a file cannot be read or written.
    """
    check_run_folder(config)
    check_worker_names(config)
    data = load_federated_data(config)
    with prefix_errors(find_algorithm(config.algo).flag_prefix):
        config.algorithm.check_clients(len(data.clients))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_open_folder(config))
        stack.enter_context(_stop_in_one_line(folder))
        if not folder.is_new:
            check_same_data(folder, data)
        announce_data(config, folder, data)
        log = str(folder.worker_log)
        with quiet_tensorflow(log):
            keeps_memory = has_large_tensors(build_spec(config, describe_data(data)))
        runtime = stack.enter_context(run_tff(log, config.worker_addresses, keeps_memory=keeps_memory))
        return _run(config, folder, data, runtime.worker_memory_bytes)


def has_large_tensors(spec: "ModelSpec") -> bool:
    """Whether a weight of the model or of its teacher is so large that a worker should keep freed memory."""
    models = [spec.build(), *([spec.teacher.build()] if spec.teacher is not None else [])]
    sizes_bytes = (4 * weight.shape.num_elements() for model in models for weight in model.weights)
    return max(sizes_bytes, default=0) >= LARGE_TENSOR_BYTES


def check_worker_names(config: RunConfig) -> None:
    """Raises FlagError if the name of a worker's machine is unknown, for which gRPC would wait in vain."""
    for address in config.worker_addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.getaddrinfo(host.strip("[]"), int(port))
        except (OSError, UnicodeError):
            raise FlagError(f"--workers={config.workers}: no machine is known as {host}; check the name") from None


@contextlib.contextmanager
def _open_folder(config: RunConfig) -> Iterator[RunFolder]:
    """The run folder; one that this run made and that never got its config is removed, as is a smoke run's own."""
    temporary = None
    if config.smoke and not config.run_dir:
        temporary = tempfile.mkdtemp(prefix="federated_smoke_")
        folder = RunFolder(pathlib.Path(temporary), is_new=True)
    else:
        folder = open_run_folder(config)
    try:
        yield folder
    finally:
        if temporary or not folder.config.exists():
            shutil.rmtree(folder.path, ignore_errors=True)
        folder.close()


@contextlib.contextmanager
def _stop_in_one_line(folder: RunFolder) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise RunStopped(f"stopped; {_say_how_to_go_on(folder)}", get_stop_code(error)) from None
    except BrokenPipeError:
        raise RunStopped(f"error: nobody reads the output any more; {_say_how_to_go_on(folder)}", 1) from None
    except WorkerError as error:
        raise RunStopped(f"error: {_explain(error)}; {_say_how_to_go_on(folder)}", 1) from error


def _explain(error: WorkerError) -> str:
    """The error with the last line of the worker's log, where that is short and new."""
    message = str(error).rstrip("?")
    last = (error.log_tail.splitlines() or [""])[-1].strip()
    return message if not last or len(last) > MAX_LOG_LINE or last in message else f"{message} ({last})"


def _say_how_to_go_on(folder: RunFolder) -> str:
    return f"go on with: {resume_command(folder)}" if folder.has_begun else "nothing was trained yet"


def resume_command(folder: RunFolder) -> str:
    """What to type to go on with a run."""
    return f"{PROGRAM} --resume --run_dir={shlex.quote(str(folder.path))}"


def _run(
    config: RunConfig, folder: RunFolder, data: FederatedData, worker_memory_bytes: Callable[[], int]
) -> dict[str, Any]:
    # TensorFlow is there only now: `run_tff` has started the worker and kept the start-up noise in its log.
    from launch.plots import run_plots
    from launch.runs.checkpoints import Checkpoints
    from launch.runs.tensorboard_log import TensorBoardLog
    from launch.training import evaluation, results

    spec = build_spec(config, describe_data(data))
    process = build_process(config, spec, data)
    evaluate = evaluation.build_evaluator(spec)
    evaluate_state = evaluation.build_state_evaluation(process, data, evaluate)
    names = (*(PERSONAL_METRICS if process.is_personal else ()), *name_archetype_metrics(data.archetypes))
    announce_model(config, spec)
    if folder.is_new:
        folder.clear()
    checkpoints = Checkpoints(folder.checkpoints)
    loop = RoundLoop(config, folder, process, checkpoints, evaluate_state, worker_memory_bytes, names)
    write_config(folder, config, data)  # only now, since the loop refuses fewer rounds than a resumed run has done
    tensorboard = TensorBoardLog(folder.tensorboard, loop.metrics)
    try:
        state = loop.run(after_round=tensorboard.update)
    finally:
        tensorboard.close()
        checkpoints.close()
    summary = results.write_results(folder, config, data, spec, process, state, evaluate, loop.metrics, loop.timing)
    run_plots.draw_run(folder.path)
    say_if_nobody_took_part(loop.metrics)
    say_result(config, folder, summary)
    return summary


def build_process(config: RunConfig, spec: "ModelSpec", data: FederatedData) -> FederatedProcess:
    """The algorithm over the model and the data, with the switch to quantization-aware training if there is one.

    Raises:
      ConfigError: a setting does not fit the model or the data, or the algorithm cannot switch.
    """
    process = _build_process_of(config, spec, data)
    if config.qat_start_round == 1:
        return process
    if process.map_models is None:
        raise ConfigError("--qat_start_round", config.qat_start_round, f"1 with --algo={config.algo}")
    from tff_algos.rounds.quantization_start import start_quantization_later
    from tff_algos.weights import initialize_weights

    float_process = _build_process_of(config, spec.quantization.float_spec, data)
    template = initialize_weights(spec, config.seed)
    return start_quantization_later(float_process, process, spec.quantization, template, config.qat_start_round)


def _build_process_of(config: RunConfig, spec: "ModelSpec", data: FederatedData) -> FederatedProcess:
    algorithm = find_algorithm(config.algo)
    with prefix_errors(algorithm.flag_prefix):
        return algorithm.load_builder()(spec, data, config.algorithm, config.seed)


class RoundLoop:
    """The rounds of a run: next, evaluate, record, checkpoint; from the newest checkpoint on, if there is one.

    Attributes:
      metrics: the table `metrics.csv`.
      timing: the table `timing.csv`.
    """

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        process: FederatedProcess,
        checkpoints: Any,
        evaluate_state: "EvaluateState",
        worker_memory_bytes: Callable[[], int],
        further_metrics: Sequence[str] = (),
    ):
        self._config, self._process, self._checkpoints = config, process, checkpoints
        self._evaluate_state, self._worker_memory_bytes = evaluate_state, worker_memory_bytes
        self._evaluation_metrics = (*EVALUATION_METRICS, *further_metrics)
        self._shows_clients = bool(further_metrics)  # of archetypes or personal: their own test splits count
        last_round = checkpoints.last_round()
        if last_round > config.rounds:
            raise RunFolderError(f"--rounds={config.rounds}: the run has done {last_round}; expected as many or more")
        self.round_num, self._state = checkpoints.restore(process.initialize())
        self.metrics = RoundTable(folder.metrics, self.round_num)
        self.timing = RoundTable(folder.timing, self.round_num)
        self._events = EventLog(folder.events, self.round_num)

    def run(self, after_round: Callable[[], None] = lambda: None) -> State:
        """Runs the rounds that are left, and returns the last state, of which there is a checkpoint."""
        progress = Progress(self._config.rounds, self.round_num)
        try:
            while not self._is_done():
                # In one statement, so that Ctrl-C cannot come between a state and its number.
                self._state, self.round_num, evaluation = self._run_round()
                if self.round_num % self._config.rounds_per_checkpoint == 0:
                    self._checkpoints.save(self._state, self.round_num)
                after_round()
                client_accuracy = evaluation.get(CLIENT_TEST_ACCURACY) if self._shows_clients else None
                progress.update(self.round_num, evaluation.get(TEST_ACCURACY), client_accuracy)
        finally:
            progress.close()
            if self.round_num:
                self._checkpoints.save(self._state, self.round_num)
        return self._state

    def _is_done(self) -> bool:
        if self.round_num >= self._config.rounds:
            return True
        accuracy = self.metrics.column(TEST_ACCURACY)[-1] if self.round_num else None
        return self._config.target_accuracy > 0 and accuracy is not None and accuracy >= self._config.target_accuracy

    def _run_round(self) -> tuple[State, int, Mapping[str, float]]:
        """(state, round, evaluation, empty if there was none) of the next round."""
        round_num = self.round_num + 1
        start_s = time.perf_counter()
        output = self._process.next(self._state)
        trained_s = time.perf_counter()
        every = self._config.rounds_per_evaluation
        is_evaluated = round_num % every == 0 or round_num == self._config.rounds
        previous = self._state if round_num > 1 and (round_num - 1) % every == 0 else None
        evaluation = self._evaluate_state(output.state, previous) if is_evaluated else {}
        self._events.append(round_num, self._process.get_events(output.state))
        self.metrics.append(build_metrics_row(round_num, output.metrics, evaluation, self._evaluation_metrics))
        self.timing.append(
            {
                "round": round_num,
                "round_s": trained_s - start_s,
                "evaluation_s": time.perf_counter() - trained_s,
                "host_memory_bytes": psutil.Process().memory_info().rss,
                "worker_memory_bytes": self._worker_memory_bytes(),
            }
        )
        return output.state, round_num, evaluation


def build_metrics_row(
    round_num: int,
    metrics: Mapping[str, float],
    evaluation: Mapping[str, float | None],
    evaluation_metrics: Sequence[str] = EVALUATION_METRICS,
) -> dict[str, Any]:
    """A row of `metrics.csv`: the common columns, those of the evaluation (None if there was none), the algorithm's."""
    common = {name: metrics[name] for name in COMMON_METRICS}
    measured = {name: evaluation.get(name) for name in evaluation_metrics}
    own = {name: value for name, value in metrics.items() if name not in COMMON_METRICS}
    return {"round": round_num, **common, **measured, **own}


def announce_data(config: RunConfig, folder: RunFolder, data: FederatedData) -> None:
    """Says what is being trained, on what, and where it goes; TensorFlow's start takes a while after that."""
    sizes = data.num_train
    is_random = config.smoke and find_dataset(config.dataset).is_drawn_for_smoke
    source = "random numbers of its shape (a smoke run)" if is_random else data.dataset
    say(f"run      {config.algo}, {config.rounds} rounds, seed {config.seed}, in {folder.path}")
    say(f"data     {source}: {sizes.sum():,} train and {len(data.test_y):,} test examples, {data.num_classes} classes")
    kinds = f" of {len(data.archetypes.names)} archetypes" if data.archetypes else ""
    sizes_text = f"{sizes.min():,} to {sizes.max():,} examples each"
    say(f"clients  {len(data.clients)}{kinds}, {config.partition} partition, {sizes_text}")


def announce_model(config: RunConfig, spec: "ModelSpec") -> None:
    """Says what is trained, and what quantization does to each layer."""
    float_spec = spec.quantization.float_spec if spec.quantization else spec
    model = float_spec.build()
    models = [f"{spec.name} ({model.count_params():,} parameters)"]
    if spec.teacher is not None:
        models.append(f"its teacher {spec.teacher.name} ({spec.teacher.build().count_params():,})")
    say(f"model    {', '.join(models)}" + (f", in {spec.precision}" if spec.precision != "float32" else ""))
    if spec.quantization is not None:
        from models.quantization import plan_quantization

        say(f"quantize to 8-bit integers, from round {config.qat_start_round} on, the layers of {spec.name}:")
        for plan in plan_quantization(model):
            say(f"         {plan.layer} ({plan.kind}) {plan.treatment}{plan.remark and f': {plan.remark}'}")


def say_if_nobody_took_part(metrics: RoundTable) -> None:
    """Says so if no client had a part in any round."""
    if not any(metrics.column("num_clients")):
        say("note     no client was ready within these rounds, so the model is as it began; give more --rounds, or a "
            "longer period")  # fmt: skip


def say_result(config: RunConfig, folder: RunFolder, summary: dict[str, Any]) -> None:
    """Says what came out, and what to type next."""
    final, best = summary["final"], summary["best"]
    duration = format_duration(summary["train_seconds"])
    say(f"done     {summary['rounds']} rounds in {duration}: test accuracy {_format(final['test_accuracy'])} "
        f"(best {_format(best['test_accuracy'])} in round {best['round']}), "
        f"clients' own test accuracy {_format(final['client_test_accuracy'])}")  # fmt: skip
    path = shlex.quote(str(folder.path))
    if config.smoke:
        say("next     leave out --smoke" + ("" if config.run_dir else "; the smoke run's folder is removed"))
        return
    say(f"next     python -m launch.evaluate --run_dir={path}")
    say(f"         python -m launch.export --run_dir={path}")
    say(f"         {resume_command(folder)} --rounds={2 * config.rounds}")
    say(f"         tensorboard --logdir={shlex.quote(str(folder.tensorboard))}")


def _format(accuracy: float | None) -> str:
    return "unknown" if accuracy is None or math.isnan(accuracy) else f"{accuracy:.4f}"
