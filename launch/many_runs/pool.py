"""Makes many runs, as many at a time as an engine has slots; says what becomes of each, and stops all together."""

import contextlib
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from launch.command_line import describe_os_error
from launch.many_runs.progress_lines import ProgressOfMany
from launch.many_runs.tasks import Task, is_finished
from launch.runs.errors import RunFolderError

POLL_S = 0.1
SECONDS_TO_STOP = 60


class Run(Protocol):
    """A run that was started."""

    def read_output(self) -> list[str]:
        """The lines of its output since the last call."""

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it goes on. Asked again, it says the same."""

    def interrupt(self) -> None:
        """Asks it to keep a checkpoint and end. Does not wait."""

    def kill(self) -> None:
        """Ends it. Does not wait."""


class Engine(Protocol):
    """Where runs are made: in processes of this machine, or elsewhere.

    Attributes:
      slots: how many runs go on at a time.
      keeps_logs: whether a run's output goes to `Task.log`; if not, it goes to our own.
    """

    slots: int
    keeps_logs: bool

    def start(self, task: Task, slot: int) -> Run:
        """Starts a run in a slot, from 0, in which no other goes on. Does not wait."""

    def close(self) -> None:
        """Ends whatever still goes on, and what was kept for further runs."""


class _Started(NamedTuple):
    position: int
    task: Task
    run: Run


def run_tasks(
    tasks: Sequence[Task], engine: Engine, after_run: Callable[[Task], None] = lambda task: None
) -> list[str]:
    """Makes the runs that are not finished yet and returns a line for each that failed.

    Args:
      tasks: in the order to start them.
      engine: makes them; it is closed at the end.
      after_run: called after each run, also after one that failed.

    Raises:
      KeyboardInterrupt: we were asked to stop; all runs have ended.
    """
    progress = ProgressOfMany(tasks, engine.slots, engine.keeps_logs)
    with contextlib.closing(engine), contextlib.closing(progress):
        pool = _Pool(tasks, engine, progress, after_run)
        try:
            pool.run()
        except KeyboardInterrupt:
            _stop([each.run for each in pool.started.values()])
            raise
        return [pool.failures[position] for position in sorted(pool.failures)]


class _Pool:
    """The tasks that wait, and those that were started, by slot.

    Attributes:
      started: what goes on, by slot.
      failures: a line for each run that failed, by its position among the tasks, from 1.
    """

    def __init__(
        self, tasks: Sequence[Task], engine: Engine, progress: ProgressOfMany, after_run: Callable[[Task], None]
    ):
        self._engine, self._progress, self._after_run = engine, progress, after_run
        self._waiting = deque(enumerate(tasks, 1))
        self.started: dict[int, _Started] = {}
        self.failures: dict[int, str] = {}

    def run(self) -> None:
        """Runs them all."""
        while self._waiting or self.started:
            for slot in range(self._engine.slots):
                while self._waiting and slot not in self.started:
                    self._start(*self._waiting.popleft(), slot)
                if slot in self.started:
                    self._look_at(slot)
            if self.started:
                time.sleep(POLL_S)

    def _start(self, position: int, task: Task, slot: int) -> None:
        try:
            if is_finished(task):
                self._progress.skip(position)
                return
        except RunFolderError as error:
            self._fail(position, task, str(error))
            return
        self._progress.start(position, slot)
        try:
            self.started[slot] = _Started(position, task, self._engine.start(task, slot))
        except OSError as error:
            self._fail(position, task, describe_os_error(error))
            self._progress.clear(slot)

    def _look_at(self, slot: int) -> None:
        position, task, run = self.started[slot]
        exit_code = run.poll()  # before the output is read, so that its last lines are read when it has ended
        self._progress.read(slot, run.read_output())
        if exit_code is None:
            return
        del self.started[slot]
        if exit_code:
            self._fail(position, task, _explain(exit_code, task, self._engine, self._progress.last_line(slot)))
        else:
            self._progress.end(position, slot)
        self._progress.clear(slot)
        self._after_run(task)

    def _fail(self, position: int, task: Task, reason: str) -> None:
        self.failures[position] = f"{task.name}: {reason}"
        self._progress.fail(position, reason)


def _explain(exit_code: int, task: Task, engine: Engine, last_line: str) -> str:
    reason = f"exit code {exit_code}" if exit_code > 0 else f"ended by {signal.Signals(-exit_code).name}"
    if not engine.keeps_logs:
        return f"{reason}, see above and {task.run_dir}"
    return f"{reason}; {last_line + '; ' if last_line else ''}its output: {task.log}"


def _stop(runs: Sequence[Run]) -> None:
    """Lets the runs keep their checkpoints and end; a second Ctrl-C does not wait."""
    with contextlib.suppress(KeyboardInterrupt):
        for run in runs:
            run.interrupt()
        deadline_s = time.monotonic() + SECONDS_TO_STOP
        while time.monotonic() < deadline_s and any(run.poll() is None for run in runs):
            time.sleep(POLL_S)
    for run in runs:
        run.kill()
