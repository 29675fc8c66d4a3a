"""A world in which contests run without training: time passes only while somebody sleeps, and runs write what they say.

A method's run takes `overhead_s` and then, for each of its rounds, `round_s` times the method's own factor; a round of
it takes one virtual second times another factor, and more with some seeds. Its score grows with its rounds.
"""

import json
import math
import pathlib
from types import SimpleNamespace
from typing import NamedTuple

from launch.contests.contest import run_contest
from launch.contests.journal import TIME, Journal
from launch.contests.methods import ALONE, GROUPS, PERSONAL, Method
from launch.contests.problem import Problem
from launch.runs.task_columns import find_task_columns
from launch.settings.run_config import flag_values
from launch.sweeps import pool

PROBLEM = Problem("digits", ("--dataset=digits", "--validation_fraction=0.15"), find_task_columns("classification"))
POLL_S = 0.5
COLUMNS = (PROBLEM.objective, PROBLEM.result)


class Killed(BaseException):
    """As by SIGKILL: nothing is written after it."""


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self):
        self.now = 1000.0

    def sleep(self, seconds):
        self.now = round(self.now + seconds, 6)


class Nature(NamedTuple):
    """What is true of a method and nobody is told: how slow in real and in virtual time, how good, what it fails by."""

    real: float = 1.0
    virtual: float = 1.0
    level: float = 0.5
    failure: str = ""
    fails_with: str = ""  # only with this among the arguments
    stops_s: float = 1.0  # after which it ends when it is asked to


class ScriptedRun:
    """A run: what it does is known when it starts, and written when it ends."""

    def __init__(self, world, task):
        self._world, self._task, self._start_s = world, task, world.clock.now
        self._nature = world.natures.get(task.recipe.name, Nature())
        self._done = len(world.read_rows(task.run_dir))
        self._exit_code, self._lines, self._is_written = None, [], False
        config = task.config
        per_round = self._nature.virtual * (1 + 0.5 * (config.seed % 3))
        limits = [config.rounds, *([int(config.most_virtual_s / per_round)] if config.most_virtual_s else [])]
        self._rounds, self._virtual_s = min(limits), per_round
        self._is_limited = self._rounds < config.rounds
        is_wrong = self._nature.failure and self._nature.fails_with in " ".join(task.arguments)
        self._why = self._nature.failure if is_wrong else ""
        if not self._rounds:
            self._why = f"error: --most_virtual_s={config.most_virtual_s:g}: expected 0 or at least {per_round:g}, "
            self._why += "which the first round takes"
        left = max(self._rounds - self._done, 0)
        cold_s = world.cold_s if len(world.started) <= world.slots else 0.0
        self._end_s = self._start_s + cold_s + world.overhead_s + left * world.round_s * self._nature.real
        if self._why:
            self._end_s = self._start_s + 1

    def read_output(self):
        return self._lines

    def poll(self):
        if self._exit_code is None and self._world.clock.now >= self._end_s:
            self._exit_code = 2 if self._why else 0
            self._lines = [self._why] if self._why else ["done     well"]
            if not self._why:
                self._world.write(self._task, self._rounds, self._virtual_s, self._nature, self._is_limited)
        return self._exit_code

    def interrupt(self):
        gone = max(self._world.clock.now - self._start_s - self._world.overhead_s, 0)
        rounds = self._done + int(gone / (self._world.round_s * self._nature.real))
        self._why, self._end_s = "stopped", self._world.clock.now + self._nature.stops_s
        if rounds:
            self._world.write(self._task, rounds, self._virtual_s, self._nature, is_limited=None)

    def kill(self):
        if self.poll() is None:
            self._exit_code = -9


class World:
    """The machine.

    Args:
      natures: by the method's name.
      slots: runs at a time.
      overhead_s, round_s: of FedAvg.
      cold_s: more overhead of the first run in each slot.
    """

    keeps_logs = True

    def __init__(self, natures, slots=1, overhead_s=4.0, round_s=0.5, cold_s=0.0):
        # Alone, clients have three times as many rounds, which take as long here.
        self.natures = {"local_only": Nature(real=1 / 3), **natures}
        self.slots, self.overhead_s, self.round_s, self.cold_s = slots, overhead_s, round_s, cold_s
        self.clock, self.started, self.is_closed = Clock(), [], False

    def open(self, tasks, jobs):
        self.is_closed = False
        return self

    def start(self, task, slot):
        self.started.append((task.run_dir.parent.name, task.recipe.name, task.config.seed, task.arguments))
        return ScriptedRun(self, task)

    def close(self):
        self.is_closed = True

    def read_rows(self, run_dir):
        path = run_dir / "metrics.csv"
        return path.read_text().splitlines()[1:] if path.exists() else []

    def write(self, task, rounds, virtual_s, nature, is_limited):
        """The folder of a run after so many rounds; `is_limited` is None if it was interrupted."""
        task.run_dir.mkdir(parents=True, exist_ok=True)
        (task.run_dir / "config.json").write_text(json.dumps({"flags": flag_values(task.config), "data": {}}))
        rate = float(next((each[16:] for each in task.arguments if each.startswith("--learning_rate=")), 0.05))
        good = nature.level - 0.05 * abs(math.log10(rate / 0.1)) + 0.001 * (task.config.seed % 5)
        columns = ",".join(["round,virtual_time_s,bytes_down,bytes_up", *COLUMNS])
        rows = [
            f"{n},{n * virtual_s:.6g},100,100,{good * (1 - 1 / (n + 1)):.6g},{good * (1 - 1 / (n + 1)):.6g}"
            for n in range(1, rounds + 1)
        ]
        (task.run_dir / "metrics.csv").write_text("\n".join([columns, *rows, ""]))
        timing = [f"{n},{self.round_s * nature.real}" for n in range(1, rounds + 1)]
        (task.run_dir / "timing.csv").write_text("\n".join(["round,round_s", *timing, ""]))
        summary = {"rounds": rounds, "final": {}}
        if is_limited:
            limits = {"most_bytes": task.config.most_bytes, "most_virtual_s": task.config.most_virtual_s}
            summary["reached_limits"] = limits
        if is_limited is not None:
            (task.run_dir / "summary.json").write_text(json.dumps(summary))
        else:
            (task.run_dir / "summary.json").unlink(missing_ok=True)


def compete(world, methods, folder, monkeypatch, seconds, kill_after=None, **settings):
    """Runs a contest in a world; the command is killed after so many new lines of its journal."""
    clock = world.clock
    times = SimpleNamespace(sleep=clock.sleep, monotonic=lambda: clock.now, perf_counter=lambda: clock.now)
    monkeypatch.setattr(pool, "time", times)
    monkeypatch.setattr(pool, "POLL_S", POLL_S)
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    lines = 0

    class Mortal(Journal):
        def add(self, what, **content):
            nonlocal lines
            if lines == kill_after:
                raise Killed
            super().add(what, **content)
            # That time passes is written often, and a run that is never let end would never end.
            lines += what != TIME
            if lines == kill_after:
                raise Killed

    monkeypatch.setattr("launch.contests.contest.Journal", Mortal)
    return run_contest(
        PROBLEM,
        methods,
        pathlib.Path(folder),
        seconds=seconds,
        clock=lambda: clock.now,
        open_engine=world.open,
        **settings,
    )


def make_method(name, algo="fedavg", space=None, **fields):
    """A method, by default with rates to try; that of its algorithm is none of these, so the first one comes first."""
    space = {"learning_rate": ("0.1", "0.01", "0.03", "0.3")} if space is None else space
    return Method(name, name.title(), algo, space=space, **fields)


METHODS = (
    make_method("local_only", "local_only", role=ALONE),
    make_method("fedavg"),
    make_method("ifca", "ifca", role=GROUPS),
    make_method("ditto", "ditto", role=PERSONAL),
)
LEVELS = {
    "local_only": Nature(real=1 / 3, level=0.4),
    "ifca": Nature(level=0.8, real=2),
    "ditto": Nature(level=0.6, virtual=2),
}
ALWAYS = ("fedavg", "local_only")
