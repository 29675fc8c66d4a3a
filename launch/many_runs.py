"""Many runs, one after another, each a process of its own: what `launch.sweep` and `launch.tune` share."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from launch.progress import format_duration, say
from launch.runs.columns import CONFIG_FILE, SUMMARY_FILE, TEST_ACCURACY
from launch.runs.errors import RunFolderError
from launch.runs.run_records import RunPath, RunRecordError, list_other_settings, read_json
from launch.settings.run_config import RunConfig

SECONDS_TO_STOP = 60
OWN_FLAGS = ("seed", "run_dir", "resume", "overwrite", "rounds")  # which the runs get from their task


@dataclasses.dataclass(frozen=True)
class Task:
    """One run to make.

    Attributes:
      flagfile: its settings.
      arguments: those of the command line after the flagfile.
      run_dir: its folder.
      config: what both ask for.
      finished: folders and archives in which the run may lie finished already.
      label: what tells it from others of the flagfile and seed, "" for nothing.
    """

    flagfile: pathlib.Path
    arguments: tuple[str, ...]
    run_dir: pathlib.Path
    config: RunConfig
    finished: tuple[RunPath, ...] = ()
    label: str = ""

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.flagfile.stem, self.label, f"seed {self.config.seed}")))

    @property
    def place(self) -> str:
        """Where its folder lies in a folder or an archive of runs."""
        return f"{self.flagfile.stem}/seed_{self.config.seed}"


def is_finished(task: Task) -> bool:
    """Whether the run folder, or one of `task.finished`, holds a run with these settings and the rounds asked for.

    Raises:
      RunFolderError: the run folder holds a run with other settings, which training would not go on with.
    """
    other = _find_other_settings(task.run_dir, task.config)
    if other:
        raise RunFolderError(
            f"{task.run_dir}: a run with other settings ({'; '.join(other)}); choose another --runs_dir"
        )
    # A kept run with other settings is no obstacle: it counts as another run, and this one is made.
    kept = [runs / task.place for runs in task.finished]
    places = [task.run_dir, *(place for place in kept if not _find_other_settings(place, task.config))]
    return any(_has_finished(place, task.config) for place in places)


def _find_other_settings(run_dir: RunPath, config: RunConfig) -> list[str]:
    """The settings in which a stored run differs, as `list_other_settings` gives them; none if there is no run."""
    try:
        stored = read_json(run_dir / CONFIG_FILE)
    except RunRecordError:
        return []
    flags = stored.get("flags", {})
    if not isinstance(flags, dict):
        raise RunFolderError(f"{run_dir}: its config.json is damaged; move it away")
    return list_other_settings(flags, config)


def _has_finished(run_dir: RunPath, config: RunConfig) -> bool:
    """Whether a run has all its rounds or reached its target; false if its config or summary cannot be read."""
    try:
        read_json(run_dir / CONFIG_FILE)
        summary = read_json(run_dir / SUMMARY_FILE)
    except RunRecordError:
        return False
    return summary.get("rounds", 0) >= config.rounds or _has_reached_target(summary, config)


def _has_reached_target(summary: dict, config: RunConfig) -> bool:
    accuracy = summary.get("final", {}).get(TEST_ACCURACY)
    return config.target_accuracy > 0 and accuracy is not None and accuracy >= config.target_accuracy


def build_command(task: Task) -> list[str]:
    """The command that trains a task's run or, if its folder holds one, goes on with it."""
    resume = ["--resume"] if (task.run_dir / CONFIG_FILE).exists() else []
    return [sys.executable, "-m", "launch.train", f"--flagfile={task.flagfile}", *task.arguments, *resume]


def run_task(task: Task) -> int:
    """Trains one run in a child process and returns its exit code.

    The child has a session of its own, so Ctrl-C reaches it once, from us, and it can keep its checkpoint; and the
    kernel kills it if this process is killed.

    Raises:
      KeyboardInterrupt: we were asked to stop; the child has ended.
    """
    launcher = pathlib.Path(__file__).parent / "runtimes" / "worker_launcher.py"
    command = [sys.executable, "-I", "-S", str(launcher), str(os.getpid()), *build_command(task)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True) as child:
        try:
            return child.wait()
        except KeyboardInterrupt:
            _stop_child(child)
            raise


def _stop_child(child: subprocess.Popen) -> None:
    with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):  # a second Ctrl-C does not wait
        child.send_signal(signal.SIGINT)
        child.wait(SECONDS_TO_STOP)
    child.kill()
    child.wait()


def run_tasks(tasks: Sequence[Task], train: Callable[[Task], int] = run_task) -> list[str]:
    """Runs the tasks that are not finished yet and returns a line for each that failed.

    Args:
      tasks: in the order to run them.
      train: trains one run and returns its exit code.
    """
    failures: list[str] = []
    start_s, rounds_run = time.perf_counter(), 0
    for position, task in enumerate(tasks, 1):
        heading = f"[{position}/{len(tasks)}] {task.name}"
        try:
            if is_finished(task):
                say(f"{heading}: finished before")
                continue
            say(f"{heading}{_estimate(tasks[position - 1 :], time.perf_counter() - start_s, rounds_run)}")
            exit_code = train(task)
        except RunFolderError as error:
            exit_code = str(error)
        if exit_code:
            reason = exit_code if isinstance(exit_code, str) else f"exit code {exit_code}, see above and {task.run_dir}"
            failures.append(f"{task.name}: {reason}")
            say(f"{heading}: failed ({reason})")
        else:
            rounds_run += task.config.rounds
    return failures


def _estimate(left: Sequence[Task], seconds: float, rounds_run: int) -> str:
    """The time gone and left, estimated from the rounds that were run and those that remain."""
    if not rounds_run:
        return f": {len(left)} runs to look at"
    rounds_left = sum(task.config.rounds for task in left)
    return f": {format_duration(seconds)} gone, about {format_duration(seconds / rounds_run * rounds_left)} left"
