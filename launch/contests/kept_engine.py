"""An engine that serves one stage after the other, knows how long its runs take, and lets none go on that was to end.

What all runs of a slot need once, such as the imports of TensorFlow, is not waited for again at each stage.
"""

import pathlib
from collections.abc import Callable

from launch.sweeps.pool import Engine, Run
from launch.sweeps.tasks import Task


class _TimedRun:
    """A run whose seconds are counted, and that is killed if it does not end soon after it was asked to."""

    def __init__(self, run: Run, clock: Callable[[], float], patience_s: float):
        self._run, self._clock, self._patience_s = run, clock, patience_s
        self._begun_s: float | None = None
        self._asked_s: float | None = None
        self._took_s: float | None = None

    @property
    def took_s(self) -> float:
        """Seconds so far, without those in which it waited for what all runs need once."""
        if self._took_s is not None:
            return self._took_s
        return 0.0 if self._begun_s is None else self._clock() - self._begun_s

    def read_output(self) -> list[str]:
        return self._run.read_output()

    def poll(self) -> int | None:
        exit_code = self._run.poll()
        # Engines whose runs wait for nothing do not say that they have begun.
        if self._begun_s is None and getattr(self._run, "has_begun", True):
            self._begun_s = self._clock()
        if exit_code is not None and self._took_s is None:
            self._took_s = self.took_s
        is_late = self._asked_s is not None and self._clock() - self._asked_s > self._patience_s
        if exit_code is None and is_late:
            self._run.kill()
        return exit_code

    def interrupt(self) -> None:
        self._asked_s = self._clock()
        self._run.interrupt()

    def kill(self) -> None:
        self._run.kill()


class KeptEngine:
    """Stands before an engine, which goes on when the runs of one stage have ended.

    Args:
      engine: makes the runs; whoever opened it closes it.
      clock: seconds from any start on.
      patience_s: after which a run is killed that was asked to end.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float], patience_s: float):
        self._engine, self._clock, self._patience_s = engine, clock, patience_s
        self.slots, self.keeps_logs = engine.slots, engine.keeps_logs
        self._runs: dict[pathlib.Path, _TimedRun] = {}

    def start(self, task: Task, slot: int) -> _TimedRun:
        self._runs[task.run_dir] = _TimedRun(self._engine.start(task, slot), self._clock, self._patience_s)
        return self._runs[task.run_dir]

    def close(self) -> None:
        """A stage is over, in which all runs have ended; the engine goes on."""

    def get_seconds(self, task: Task) -> float:
        """Of the run that was last started of a task; 0 without any."""
        return self._runs[task.run_dir].took_s if task.run_dir in self._runs else 0.0
