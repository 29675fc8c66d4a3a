"""Makes the runs of a sweep, as many at a time as an engine has slots; reports each, and stops all together."""

import contextlib
import dataclasses
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from launch.command_line import describe_os_error
from launch.runs.errors import RunFolderError
from launch.sweeps.progress_lines import ProgressOfMany
from launch.sweeps.tasks import Task, is_finished

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


@dataclasses.dataclass
class _Started:
    """A run that goes on: its place among all, from 1, and why it was asked to end before its last round; "" if not."""

    position: int
    task: Task
    run: Run
    stopped: str = ""


def run_tasks(
    tasks: Iterable[Task | None],
    engine: Engine,
    after_run: Callable[[Task], None] = lambda task: None,
    find_end: Callable[[Task], str] = lambda task: "",
    rounds: Sequence[int] | None = None,
) -> list[str]:
    """Makes the runs that are not finished yet and returns a line for each that failed.

    Args:
      tasks: in the order to start them. The next is asked for when a slot is free, so it may depend on the runs that
        have ended. None is a run that `rounds` counts and that is not needed after all.
      engine: makes them; it is closed at the end.
      after_run: called after each run, also after one that failed.
      find_end: called often while a run goes on: why it should keep a checkpoint and end now, in words; "" to go on.
      rounds: of each run; None: those of `tasks`, which is a sequence then.

    Raises:
      KeyboardInterrupt: we were asked to stop; all runs have ended.
    """
    rounds = [task.config.rounds for task in tasks] if rounds is None else rounds
    progress = ProgressOfMany(rounds, engine.slots, engine.keeps_logs)
    with contextlib.closing(engine), contextlib.closing(progress):
        pool = _Pool(tasks, engine, progress, after_run, find_end)
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
        self,
        tasks: Iterable[Task | None],
        engine: Engine,
        progress: ProgressOfMany,
        after_run: Callable[[Task], None],
        find_end: Callable[[Task], str],
    ):
        self._engine, self._progress, self._after_run, self._find_end = engine, progress, after_run, find_end
        self._waiting = enumerate(tasks, 1)
        self.started: dict[int, _Started] = {}
        self.failures: dict[int, str] = {}

    def run(self) -> None:
        """Runs them all."""
        has_more = True
        while has_more or self.started:
            for slot in range(self._engine.slots):
                while has_more and slot not in self.started:
                    has_more = self._start_next(slot)
                if slot in self.started:
                    self._look_at(slot)
            if self.started:
                time.sleep(POLL_S)

    def _start_next(self, slot: int) -> bool:
        """Takes the next run, which may fail at once or be finished; returns whether there was one."""
        position, task = next(self._waiting, (0, None))
        if task is not None:
            self._start(position, task, slot)
        elif position:
            self._progress.leave_out(position)
        return bool(position)

    def _start(self, position: int, task: Task, slot: int) -> None:
        try:
            if is_finished(task):
                self._progress.skip(position, task)
                return
        except RunFolderError as error:
            self._fail(position, task, str(error))
            return
        self._progress.start(position, task, slot)
        try:
            self.started[slot] = _Started(position, task, self._engine.start(task, slot))
        except OSError as error:
            self._fail(position, task, describe_os_error(error))
            self._progress.clear(slot)

    def _look_at(self, slot: int) -> None:
        started = self.started[slot]
        task, run = started.task, started.run
        exit_code = run.poll()  # before the output is read, so that its last lines are read when it has ended
        self._progress.read(slot, run.read_output())
        if exit_code is None:
            if not started.stopped and (reason := self._find_end(task)):
                started.stopped = reason
                run.interrupt()
            return
        del self.started[slot]
        last_line = self._progress.last_line(slot)
        if not exit_code or started.stopped:
            self._progress.end(started.position, slot, started.stopped)
        else:
            has_results = False
            with contextlib.suppress(RunFolderError):
                has_results = is_finished(task)
            if has_results:  # though none to be glad of, as where every update was rejected
                self._progress.end(started.position, slot, last_line)
            else:
                self._fail(started.position, task, _explain(exit_code, task, self._engine, last_line))
        self._progress.clear(slot)
        self._after_run(task)

    def _fail(self, position: int, task: Task, reason: str) -> None:
        self.failures[position] = f"{task.name}: {reason}"
        self._progress.fail(position, task, reason)


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
