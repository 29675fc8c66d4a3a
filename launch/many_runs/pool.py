"""Makes many runs, as many at a time as an engine has slots; says what becomes of each, and stops all together."""

import contextlib
import signal
import time
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
    failures: dict[int, str] = {}
    waiting = list(enumerate(tasks, 1))
    started: dict[int, _Started] = {}
    shown = ProgressOfMany(tasks, engine.slots, engine.keeps_logs)
    with contextlib.closing(engine), contextlib.closing(shown) as progress:

        def fail(position: int, reason: str) -> None:
            failures[position] = f"{tasks[position - 1].name}: {reason}"
            progress.fail(position, reason)

        def start_next(slot: int) -> None:
            while waiting and slot not in started:
                position, task = waiting.pop(0)
                try:
                    if is_finished(task):
                        progress.skip(position)
                        continue
                except RunFolderError as error:
                    fail(position, str(error))
                    continue
                progress.start(position, slot)
                try:
                    started[slot] = _Started(position, task, engine.start(task, slot))
                except OSError as error:
                    fail(position, describe_os_error(error))
                    progress.clear(slot)

        def look_at(slot: int) -> None:
            position, task, run = started[slot]
            exit_code = run.poll()  # before the output is read, so that its last lines are read when it has ended
            progress.read(slot, run.read_output())
            if exit_code is None:
                return
            del started[slot]
            if exit_code:
                fail(position, _explain(exit_code, task, engine, progress.last_line(slot)))
            else:
                progress.end(position, slot)
            progress.clear(slot)
            after_run(task)

        try:
            while waiting or started:
                for slot in range(engine.slots):
                    start_next(slot)
                    if slot in started:
                        look_at(slot)
                if started:
                    time.sleep(POLL_S)
        except KeyboardInterrupt:
            _stop([each.run for each in started.values()])
            raise
    return [failures[position] for position in sorted(failures)]


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
