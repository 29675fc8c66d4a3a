"""Makes the runs of a sweep, as many at a time as an engine has slots; shows and reports each, and stops all together.

The runs' own output is shown if one goes on at a time, else a line for each and one over all.
"""

import contextlib
import dataclasses
import enum
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tqdm import tqdm

from launch.command_line import describe_os_error
from launch.console.progress import format_duration, say
from launch.console.shown_text import format_count
from launch.runs.errors import RunFolderError
from launch.sweeps.tasks import Task, is_finished

# Between two lines on the progress, where there is no terminal.
SECONDS_PER_LINE = 60
_ERROR = "error: "
_ROUND = re.compile(r"round (\d+)/(\d+): (.*)")


class _Shown:
    """What was last seen of the run in a slot."""

    def __init__(self, position: int, task: Task, bar: tqdm | None):
        self.position, self.task, self.bar = position, task, bar
        self.start_s = time.perf_counter()
        self.start_round, self.round_num, self.text, self.last_line = None, 0, "", ""

    def read(self, line: str) -> None:
        if match := _ROUND.fullmatch(line):
            self.round_num, self.text = int(match[1]), match[3]
            if self.start_round is None:
                # A resumed run begins later than at 0; only what is run now tells how long a round takes.
                self.start_round = self.round_num - 1
        elif line.startswith("done "):
            self.text = line.removeprefix("done ").strip()
        # A library may say more at the interpreter's end, after the run's own last word.
        if line.strip() and not self.last_line.startswith(_ERROR):
            self.last_line = line.strip()

    @property
    def rounds_run(self) -> int:
        return 0 if self.start_round is None else self.round_num - self.start_round


class ProgressOfMany:
    """Shows runs by their position among all, from 1, and the slot, from 0, that they go on in.

    Args:
      rounds: of each run.
      slots: how many go on at a time.
      keeps_logs: whether the runs' output goes to files, so that it is for us to show how far they are.
      is_brief: whether a run that goes well has no lines of its own, since somebody else reports on it.
      is_told: whether no run has lines of its own, since somebody else reports on all.
    """

    def __init__(
        self, rounds: Sequence[int], slots: int, keeps_logs: bool, is_brief: bool = False, is_told: bool = False
    ):
        self._count, self._keeps_logs, self._is_brief = len(rounds), keeps_logs, is_brief or is_told
        self._is_told = is_told
        self._start_s = self._line_s = time.perf_counter()
        self._rounds_run = self._num_ended = 0
        # The rounds of what has not ended.
        self._left = dict(enumerate(rounds, 1))
        self._shown: dict[int, _Shown] = {}
        self._has_bars = keeps_logs and sys.stderr.isatty()
        self._total = self._open_bar("all runs", self._count, slots) if self._has_bars else None

    def _open_bar(self, name: str, total: int, row: int) -> tqdm:
        layout = "{desc} |{bar:20}| {n_fmt}/{total_fmt}{postfix}"
        return tqdm(total=total, desc=name, bar_format=layout, file=sys.stderr, position=row, leave=False)

    def skip(self, position: int, task: Task) -> None:
        """A run that was finished before."""
        self.leave_out(position)
        if not self._is_brief:
            say(f"{self._head(position, task)}: finished before")

    def start(self, position: int, task: Task, slot: int) -> None:
        """A run that starts."""
        bar = self._open_bar(task.name, task.config.rounds, slot) if self._has_bars else None
        self._shown[slot] = _Shown(position, task, bar)
        if not self._keeps_logs:
            to_do = f": {format_count(len(self._left), 'run')} to look at"
            say(f"{self._head(position, task)}{self._estimate() or to_do}")
        elif not self._has_bars and not self._is_brief:
            say(f"{self._head(position, task)}: started, its output: {task.log}")

    def read(self, slot: int, lines: Sequence[str]) -> None:
        """What the run in a slot has printed since the last call."""
        shown = self._shown[slot]
        for line in lines:
            shown.read(line)
        if lines and shown.bar is not None:
            shown.bar.set_postfix_str(shown.text, refresh=False)
            shown.bar.n = shown.round_num
            shown.bar.refresh()
        if self._keeps_logs and not self._has_bars and time.perf_counter() - self._line_s >= SECONDS_PER_LINE:
            self._line_s = time.perf_counter()
            for each in () if self._is_brief else self._shown.values():
                rounds = f"round {each.round_num}/{each.task.config.rounds}"
                say(f"{self._head(each.position, each.task)}: {rounds}{each.text and f', {each.text}'}")
            runs = format_count(self._count, "run")
            say(f"{self._num_ended} of {runs} {'has' if self._count == 1 else 'have'} ended{self._estimate()}")

    def last_line(self, slot: int) -> str:
        """The error of the run in a slot, else the last line that it has printed; "" if none was seen."""
        return self._shown[slot].last_line

    def end(self, position: int, slot: int, stopped: str = "") -> None:
        """A run that has ended well, or was asked to end: why, in words."""
        shown = self._shown[slot]
        if stopped or shown.start_round is not None:
            self._rounds_run += shown.rounds_run
        else:
            self._rounds_run += shown.task.config.rounds
        self.leave_out(position)
        head = self._head(position, shown.task)
        if self._is_told:
            self._line_s = time.perf_counter()
        elif stopped:
            say(f"{head}: {stopped}")
        elif self._keeps_logs and not self._is_brief:
            seconds = format_duration(time.perf_counter() - shown.start_s)
            say(f"{head}: done in {seconds}{shown.text and f'; {shown.text}'}")

    def fail(self, position: int, task: Task, reason: str) -> None:
        """A run that failed or could not be started."""
        self.leave_out(position)
        if self._is_told:
            self._line_s = time.perf_counter()
            return
        say(f"{self._head(position, task)}: failed ({reason})")

    def clear(self, slot: int) -> None:
        """The slot is free again."""
        shown = self._shown.pop(slot)
        if shown.bar is not None:
            shown.bar.close()

    def close(self) -> None:
        """Takes away all lines that move."""
        for slot in list(self._shown):
            self.clear(slot)
        if self._total is not None:
            self._total.close()

    def leave_out(self, position: int) -> None:
        """A run that is no longer expected."""
        del self._left[position]
        self._num_ended += 1
        if self._total is not None:
            self._total.n = self._num_ended
            self._total.set_postfix_str(self._estimate().removeprefix(": "))

    def _head(self, position: int, task: Task) -> str:
        return f"[{position}/{self._count}] {task.name}"

    def _estimate(self) -> str:
        """The time gone and left, estimated from the rounds that were run and those that remain; "" before any."""
        # What is asked to stop has left the count, but still holds its slot.
        going = [shown for shown in self._shown.values() if shown.position in self._left]
        rounds_run = self._rounds_run + sum(shown.rounds_run for shown in going)
        if not rounds_run:
            return ""
        seconds = time.perf_counter() - self._start_s
        done = {shown.position: shown.round_num for shown in going}
        # A run of a contest may have more rounds than were expected of it.
        rounds_left = sum(max(rounds - done.get(position, 0), 0) for position, rounds in self._left.items())
        left = format_duration(seconds / rounds_run * rounds_left)
        return f": {format_duration(seconds)} gone, about {left} left"


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
        """Ends whatever still goes on, and what serves further runs."""


@dataclasses.dataclass
class _Started:
    """A run that goes on: its position among all, from 1, and why it was asked to end early; "" if it was not."""

    position: int
    task: Task
    run: Run
    stopped: str = ""


class Later(enum.Enum):
    """In the place of a task: none can be started yet, since it depends on a run that goes on."""

    LATER = enum.auto()


LATER = Later.LATER


def run_tasks(
    tasks: Iterable[Task | Later | None],
    engine: Engine,
    after_run: Callable[[Task], None] = lambda task: None,
    find_end: Callable[[Task], str] = lambda task: "",
    rounds: Sequence[int] | None = None,
    is_brief: bool = False,
    after_failure: Callable[[Task, str], None] = lambda task, reason: None,
    is_told: bool = False,
) -> list[str]:
    """Makes the runs that are not finished yet and returns a line for each that failed.

    Args:
      tasks: in the order to start them. The next is asked for when a slot is free, so it may depend on the runs that
        have ended. None is a run that `rounds` counts and that is not needed after all; after LATER, which counts
        nothing, it is asked again.
      engine: makes them; it is closed at the end.
      after_run: called after each run, also after one that failed.
      find_end: called often while a run goes on: why it should keep a checkpoint and end now, in words; "" to go on.
      rounds: of each run; None: those of `tasks`, which is a sequence then.
      is_brief, is_told: as `ProgressOfMany` has them.
      after_failure: called with why a run failed, before `after_run`, or alone if it could not even be started.

    Raises:
      KeyboardInterrupt: we were asked to stop; all runs have ended.
    """
    rounds = [task.config.rounds for task in tasks] if rounds is None else rounds
    progress = ProgressOfMany(rounds, engine.slots, engine.keeps_logs, is_brief, is_told)
    with contextlib.closing(engine), contextlib.closing(progress):
        pool = _Pool(tasks, engine, progress, after_run, find_end, after_failure)
        try:
            pool.run()
        except KeyboardInterrupt:
            # Before the engine is closed, which kills what still runs.
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
        tasks: Iterable[Task | Later | None],
        engine: Engine,
        progress: ProgressOfMany,
        after_run: Callable[[Task], None],
        find_end: Callable[[Task], str],
        after_failure: Callable[[Task, str], None],
    ):
        self._engine, self._progress, self._after_run, self._find_end = engine, progress, after_run, find_end
        self._after_failure = after_failure
        self._waiting, self._num_asked = iter(tasks), 0
        self.started: dict[int, _Started] = {}
        self.failures: dict[int, str] = {}

    def run(self) -> None:
        """Runs them all."""
        has_more, over = True, object()
        while has_more or self.started:
            for slot in range(self._engine.slots):
                while has_more and slot not in self.started:
                    task = next(self._waiting, over)
                    if task is LATER:
                        break
                    has_more = task is not over
                    self._num_asked += 1
                    # It may fail at once or be finished; then the slot takes the next.
                    if isinstance(task, Task):
                        self._start(self._num_asked, task, slot)
                    elif has_more:
                        self._progress.leave_out(self._num_asked)
                if slot in self.started:
                    self._look_at(slot)
            if self.started or has_more:
                time.sleep(POLL_S)

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
        # Before the output is read, so that its last lines are read when it has ended.
        exit_code = run.poll()
        self._progress.read(slot, run.read_output())
        if exit_code is None:
            if not started.stopped and (reason := self._find_end(task)):
                started.stopped = reason
                run.interrupt()
            return
        del self.started[slot]
        last_line = self._progress.last_line(slot)
        # A run that we stopped ends with a code of its own, which is no failure.
        if not exit_code or started.stopped:
            self._progress.end(started.position, slot, started.stopped)
        else:
            has_results = False
            with contextlib.suppress(RunFolderError):
                has_results = is_finished(task)
            # Though none to be glad of, as where every update was rejected.
            if has_results:
                self._progress.end(started.position, slot, last_line)
            else:
                self._fail(started.position, task, _explain(exit_code, task, self._engine, last_line))
        self._progress.clear(slot)
        self._after_run(task)

    def _fail(self, position: int, task: Task, reason: str) -> None:
        self.failures[position] = f"{task.name}: {reason}"
        self._progress.fail(position, task, reason)
        self._after_failure(task, reason)


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
