"""One training run from its config to its run folder; knows no algorithm by name."""

import contextlib
import pathlib
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import psutil

from datasets.federated_data import FederatedData
from launch.algorithms import ALGORITHMS
from launch.experiment_config import ExperimentConfig
from launch.federation import build_spec, load_federated_data
from launch.flags import PROGRAM
from launch.progress import Progress, format_duration, say
from launch.run_folder import (
    RoundTable,
    RunFolder,
    RunFolderError,
    RunStopped,
    check_run_folder,
    describe_data,
    open_run_folder,
    write_config,
)
from launch.runtime import WorkerError, run_tff
from tff_algos.config_fields import ConfigError
from tff_algos.process import COMMON_METRICS, FederatedProcess, State

if TYPE_CHECKING:
    from models.model_spec import ModelSpec

EVALUATION_METRICS = ("test_loss", "test_accuracy", "client_test_accuracy", "client_validation_accuracy")

EvaluateState = Callable[[State], dict[str, float]]


def run_experiment(config: ExperimentConfig) -> dict[str, Any]:
    """Trains, evaluates and records as the config says; returns what is in `summary.json`.

    Raises:
      RunStopped: the worker died (exit code 1) or somebody pressed Ctrl-C (130); a checkpoint is kept.
      ValueError: a subclass that says in one line what of the config cannot be done.
    """
    check_run_folder(config)
    data = load_federated_data(config)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_open_folder(config))
        stack.enter_context(_stop_in_one_line(folder))
        announce_data(config, folder, data)
        runtime = stack.enter_context(run_tff(str(folder.worker_log), config.worker_addresses))
        return _run(config, folder, data, runtime.worker_memory_bytes)


@contextlib.contextmanager
def _open_folder(config: ExperimentConfig) -> Iterator[RunFolder]:
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
    except KeyboardInterrupt:
        raise RunStopped(f"stopped; {_say_how_to_go_on(folder)}", 130) from None
    except WorkerError as error:
        raise RunStopped(f"error: {error}; {_say_how_to_go_on(folder)}", 1) from error


def _say_how_to_go_on(folder: RunFolder) -> str:
    if not folder.config.exists():
        return "nothing was trained yet, so start it again"
    return f"go on with: {resume_command(folder)}"


def resume_command(folder: RunFolder) -> str:
    """What to type to go on with a run."""
    return f"{PROGRAM} --resume --run_dir={shlex.quote(str(folder.path))}"


def _run(
    config: ExperimentConfig, folder: RunFolder, data: FederatedData, worker_memory_bytes: Callable[[], int]
) -> dict[str, Any]:
    # TensorFlow is there only now: `run_tff` has started the worker and kept the start-up noise in its log.
    from launch import evaluation, plots, results
    from launch.checkpoints import Checkpoints
    from launch.tensorboard_log import TensorBoardLog

    spec = build_spec(config, describe_data(data))
    process = _build_process(config, spec, data)
    write_config(folder, config, data)
    evaluate = evaluation.build_evaluator(spec)

    def evaluate_state(state: State) -> dict[str, float]:
        measured = evaluation.evaluate_federation(process, state, data, evaluate)
        validation = evaluation.compute_client_accuracy(process, state, data, evaluate, "validation")
        return {**measured, "client_validation_accuracy": validation}

    announce_model(spec)
    checkpoints = Checkpoints(folder.checkpoints)
    loop = RoundLoop(config, folder, process, checkpoints, evaluate_state, worker_memory_bytes)
    tensorboard = TensorBoardLog(folder.tensorboard, loop.metrics)
    try:
        state = loop.run(after_round=tensorboard.update)
    finally:
        tensorboard.close()
        checkpoints.close()
    summary = results.write_results(folder, config, data, spec, process, state, evaluate)
    plots.draw_run(folder.path)
    names = [client.name for client in data.clients]
    plots.draw_partition(data.label_counts, data.class_names, names, folder.path / "plots" / "partition.png")
    say_result(config, folder, summary)
    return summary


def _build_process(config: ExperimentConfig, spec: "ModelSpec", data: FederatedData) -> FederatedProcess:
    try:
        return ALGORITHMS[config.algo].load_builder()(spec, data, config.algorithm, config.seed)
    except ConfigError as error:
        raise ConfigError(f"--{config.algo}_{error.field}", error.value, error.expected) from None


class RoundLoop:
    """The rounds of a run: next, evaluate, record, checkpoint; from the newest checkpoint on, if there is one.

    Attributes:
      metrics: the table `metrics.csv`.
      timing: the table `timing.csv`.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        folder: RunFolder,
        process: FederatedProcess,
        checkpoints: Any,
        evaluate_state: EvaluateState,
        worker_memory_bytes: Callable[[], int],
    ):
        self._config, self._process, self._checkpoints = config, process, checkpoints
        self._evaluate_state, self._worker_memory_bytes = evaluate_state, worker_memory_bytes
        self.round_num = checkpoints.last_round()
        if self.round_num > config.rounds:
            raise RunFolderError(
                f"--rounds={config.rounds}: the run has done {self.round_num}; expected as many or more"
            )
        self.metrics = RoundTable(folder.metrics, self.round_num)
        self.timing = RoundTable(folder.timing, self.round_num)

    def run(self, after_round: Callable[[], None] = lambda: None) -> State:
        """Runs the rounds that are left, and returns the last state, of which there is a checkpoint."""
        state = self._process.initialize()
        if self.round_num:
            state = self._checkpoints.load(self.round_num, state)
        progress = Progress(self._config.rounds, self.round_num)
        try:
            while not self._is_done():
                state, accuracy = self._run_round(state)
                self.round_num += 1
                if self.round_num % self._config.rounds_per_checkpoint == 0:
                    self._checkpoints.save(state, self.round_num)
                after_round()
                progress.update(self.round_num, accuracy)
        finally:
            progress.close()
            if self.round_num:
                self._checkpoints.save(state, self.round_num)
        return state

    def _is_done(self) -> bool:
        if self.round_num >= self._config.rounds:
            return True
        accuracy = self.metrics.column("test_accuracy")[-1] if self.round_num else None
        return self._config.target_accuracy > 0 and accuracy is not None and accuracy >= self._config.target_accuracy

    def _run_round(self, state: State) -> tuple[State, float | None]:
        round_num = self.round_num + 1
        start_s = time.perf_counter()
        output = self._process.next(state)
        trained_s = time.perf_counter()
        is_evaluated = round_num % self._config.rounds_per_evaluation == 0 or round_num == self._config.rounds
        evaluation = self._evaluate_state(output.state) if is_evaluated else {}
        self.metrics.append(build_metrics_row(round_num, output.metrics, evaluation))
        self.timing.append(
            {
                "round": round_num,
                "round_s": trained_s - start_s,
                "evaluation_s": time.perf_counter() - trained_s,
                "host_memory_bytes": psutil.Process().memory_info().rss,
                "worker_memory_bytes": self._worker_memory_bytes(),
            }
        )
        return output.state, evaluation.get("test_accuracy")


def build_metrics_row(round_num: int, metrics: dict[str, float], evaluation: dict[str, float]) -> dict[str, Any]:
    """A row of `metrics.csv`: the common columns, those of the evaluation (None if there was none), the algorithm's."""
    common = {name: metrics[name] for name in COMMON_METRICS}
    measured = {name: evaluation.get(name) for name in EVALUATION_METRICS}
    own = {name: value for name, value in metrics.items() if name not in COMMON_METRICS}
    return {"round": round_num, **common, **measured, **own}


def announce_data(config: ExperimentConfig, folder: RunFolder, data: FederatedData) -> None:
    """Says what is being trained, on what, and where it goes; TensorFlow's start takes a while after that."""
    sizes = data.num_train
    source = "random numbers of its shape (a smoke run)" if config.smoke and config.dataset != "npz" else data.dataset
    say(f"run      {config.algo}, {config.rounds} rounds, seed {config.seed}, in {folder.path}")
    say(f"data     {source}: {sizes.sum():,} train and {len(data.test_y):,} test examples, {data.num_classes} classes")
    say(f"clients  {len(data.clients)}, {config.partition} partition, {sizes.min():,} to {sizes.max():,} examples each")


def announce_model(spec: "ModelSpec") -> None:
    """Says what is trained."""
    models = [f"{spec.name} ({spec.build().count_params():,} parameters)"]
    if spec.teacher is not None:
        models.append(f"its teacher {spec.teacher.name} ({spec.teacher.build().count_params():,})")
    say(f"model    {', '.join(models)}")


def say_result(config: ExperimentConfig, folder: RunFolder, summary: dict[str, Any]) -> None:
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
    say(f"         {resume_command(folder)} --rounds={2 * config.rounds}")
    say(f"         tensorboard --logdir={shlex.quote(str(folder.tensorboard))}")


def _format(accuracy: float | None) -> str:
    return "unknown" if accuracy is None else f"{accuracy:.4f}"
