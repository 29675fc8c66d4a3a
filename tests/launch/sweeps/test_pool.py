"""Many runs at a time, by an engine that only pretends: order, failures, stopping, and what is shown."""

from types import SimpleNamespace

import pytest

from launch.console.progress import Progress
from launch.sweeps import pool
from launch.sweeps.pool import ProgressOfMany
from launch.sweeps.recipes import Recipe
from launch.sweeps.tasks import Task


class Clock:
    """Time that passes only while somebody sleeps; may ring after a number of sleeps."""

    def __init__(self):
        self.now, self.rings = 0.0, {}

    def sleep(self, seconds):
        # Sums of 0.1 would drift from the whole seconds at which something happens.
        self.now = round(self.now + seconds, 6)
        for at in [at for at in self.rings if at <= self.now]:
            raise self.rings.pop(at)


class ScriptedRun:
    """Lasts some seconds, and in the middle of each prints the line of a round."""

    def __init__(self, engine, task, seconds, exit_code):
        self._engine, self._clock, self._task, self._exit_code = engine, engine.clock, task, exit_code
        self._start = self._printed = self._clock.now
        self._end = self._start + seconds
        self.is_killed = self.is_interrupted = False

    def read_output(self):
        lines = []
        while self._printed + 0.5 <= min(self._clock.now, self._end):
            self._printed += 1
            lines.append(f"round {self._printed - self._start:.0f}/{self._task.config.rounds}: 1.00 s a round")
        return lines

    def poll(self):
        if self.is_killed:
            return -9
        return self._exit_code if self._clock.now >= self._end else None

    def interrupt(self):
        self.is_interrupted, self._end, self._exit_code = True, self._clock.now + self._engine.seconds_to_stop, 130

    def kill(self):
        if self.poll() is None:
            self.is_killed = True


class ScriptedEngine:
    """`script` gives the seconds and the exit code of each run by its seed."""

    keeps_logs = True

    def __init__(self, clock, slots, script, seconds_to_stop=1):
        self.clock, self.slots, self._script, self.seconds_to_stop = clock, slots, script, seconds_to_stop
        self.started, self.runs, self.is_closed = [], [], False

    def start(self, task, slot):
        self.started.append((round(self.clock.now, 1), slot, task.config.seed))
        self.runs.append(ScriptedRun(self, task, *self._script[task.config.seed]))
        return self.runs[-1]

    def close(self):
        self.is_closed = True


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    times = SimpleNamespace(sleep=clock.sleep, monotonic=lambda: clock.now, perf_counter=lambda: clock.now)
    monkeypatch.setattr(pool, "time", times)
    return clock


@pytest.fixture
def make_tasks(tmp_path):
    def make(count, rounds=5):
        return [
            Task(
                Recipe("a", "--flagfile=a.flags"),
                (),
                tmp_path / f"seed_{seed}",
                SimpleNamespace(seed=seed, rounds=rounds, replay=""),
            )
            for seed in range(count)
        ]

    return make


def test_a_free_slot_gets_the_next_run_and_a_failure_stops_nothing(clock, make_tasks, capsys):
    engine = ScriptedEngine(clock, 2, {0: (5, 0), 1: (2, 1), 2: (1, -11), 3: (5, 0)})
    tasks, ended = make_tasks(4), []
    failures = pool.run_tasks(tasks, engine, lambda task: ended.append(task.config.seed))
    assert [(slot, seed) for _, slot, seed in engine.started] == [(0, 0), (1, 1), (1, 2), (1, 3)]
    assert [at for at, _, _ in engine.started] == pytest.approx([0, 0, 2, 3], abs=0.5)
    assert ended == [1, 2, 0, 3] and engine.is_closed
    assert failures == [
        f"a, seed 1: exit code 1; round 2/5: 1.00 s a round; its output: {tasks[1].log}",
        f"a, seed 2: ended by SIGSEGV; round 1/5: 1.00 s a round; its output: {tasks[2].log}",
    ]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"[1/4] a, seed 0: started, its output: {tasks[0].log}"
    assert lines[-1] == "[4/4] a, seed 3: done in 5 s; 1.00 s a round"
    assert f"[2/4] a, seed 1: failed ({failures[0].partition(': ')[2]})" in lines


def test_a_run_that_ends_with_results_and_an_error_is_no_failure(clock, make_tasks, capsys, monkeypatch):
    """As one in which every update was rejected: asked for again, it would be skipped."""
    engine = ScriptedEngine(clock, 1, {0: (2, 1), 1: (2, 1)})
    tasks = make_tasks(2)
    monkeypatch.setattr(pool, "is_finished", lambda task: task is tasks[0] and clock.now >= 2)
    failures = pool.run_tasks(tasks, engine)
    assert failures == [f"a, seed 1: exit code 1; round 2/5: 1.00 s a round; its output: {tasks[1].log}"]
    assert "[1/2] a, seed 0: round 2/5: 1.00 s a round" in capsys.readouterr().out.splitlines()


def test_how_far_the_runs_are_is_said_each_minute(clock, make_tasks, capsys):
    engine = ScriptedEngine(clock, 2, {0: (40, 0), 1: (100, 0), 2: (50, 0)})
    assert pool.run_tasks(make_tasks(3, rounds=100), engine) == []
    shown = [line for line in capsys.readouterr().out.splitlines() if "started" not in line and "done" not in line]
    # After 60 s, 40 + 60 + 20 rounds were run, and 40 + 80 of the runs that go on are left.
    assert shown[:3] == [
        "[2/3] a, seed 1: round 60/100, 1.00 s a round",
        "[3/3] a, seed 2: round 20/100, 1.00 s a round",
        "1 of 3 runs have ended: 1 min 0 s gone, about 1 min 0 s left",
    ]
    assert len(shown) == 3


def test_a_run_of_more_rounds_than_expected_leaves_no_time_below_zero(clock, make_tasks, capsys):
    """After 60 s, 120 rounds were run; 30 were expected of the first, and of the second 20 are left."""
    engine = ScriptedEngine(clock, 2, {0: (100, 0), 1: (100, 0)})
    assert pool.run_tasks(make_tasks(2, rounds=100), engine, rounds=[30, 80]) == []
    assert "0 of 2 runs have ended: 1 min 0 s gone, about 10 s left" in capsys.readouterr().out


def test_on_a_terminal_each_slot_and_the_whole_have_a_line(clock, make_tasks, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    engine = ScriptedEngine(clock, 2, {0: (3, 0), 1: (5, 0), 2: (2, 1)})
    pool.run_tasks(make_tasks(3), engine)
    printed = capsys.readouterr()
    assert (
        "a, seed 1 |" in printed.err and "2/5" in printed.err and "all runs |" in printed.err and "3/3" in printed.err
    )
    assert "started" not in printed.out and "[1/3] a, seed 0: done in 3 s" in printed.out


@pytest.mark.parametrize(
    ("rings", "seconds_to_stop", "is_killed", "ended_s"),
    [((10,), 30, False, 40), ((10, 12), 30, True, 12), ((10,), 1000, True, 70)],
    ids=["all are interrupted before any is waited for", "a second Ctrl-C does not wait", "after a minute"],
)
def test_runs_that_are_stopped_keep_a_checkpoint_or_are_killed(
    clock, make_tasks, rings, seconds_to_stop, is_killed, ended_s
):
    engine = ScriptedEngine(clock, 3, dict.fromkeys(range(4), (1000, 0)), seconds_to_stop)
    clock.rings |= {at: KeyboardInterrupt() for at in rings}
    with pytest.raises(KeyboardInterrupt):
        pool.run_tasks(make_tasks(4), engine)
    assert [run.is_interrupted for run in engine.runs] == [True] * 3 and engine.is_closed
    assert [run.is_killed for run in engine.runs] == [is_killed] * 3 and clock.now == pytest.approx(ended_s, abs=1)


def test_a_log_that_cannot_be_written_fails_the_run_alone(clock, make_tasks):
    class Full(ScriptedEngine):
        def start(self, task, slot):
            if task.config.seed == 0:
                raise OSError(28, "No space left on device", "seed_0.log")
            return super().start(task, slot)

    failures = pool.run_tasks(make_tasks(2), Full(clock, 2, {1: (1, 0)}))
    assert failures == ["a, seed 0: seed_0.log: No space left on device"]


def test_the_next_run_may_depend_on_those_that_have_ended(clock, make_tasks, capsys):
    """None is one of those that were expected and is not made; the others keep their numbers."""
    tasks, ended = make_tasks(4), []

    def choose():
        yield tasks[0]
        yield None if ended else tasks[1]
        yield tasks[2] if ended == [0] else tasks[3]

    engine = ScriptedEngine(clock, 1, dict.fromkeys(range(4), (1, 0)))
    assert pool.run_tasks(choose(), engine, lambda task: ended.append(task.config.seed), rounds=[5] * 3) == []
    assert ended == [0, 2]
    assert capsys.readouterr().out.splitlines()[-1].startswith("[3/3] a, seed 2: done")


def test_a_run_may_wait_for_one_that_goes_on_and_why_one_failed_is_told_at_once(clock, make_tasks):
    tasks, ended, failed = make_tasks(3), [], []

    def choose():
        yield tasks[0]
        while not ended:
            yield pool.LATER
        yield from tasks[1:]

    engine = ScriptedEngine(clock, 3, {0: (3, 1), 1: (1, 0), 2: (1, 0)})
    note = lambda task, reason: failed.append((task.config.seed, reason.partition(";")[0], list(ended)))
    run = lambda task: ended.append(task.config.seed)
    failures = pool.run_tasks(choose(), engine, run, rounds=[5] * 3, after_failure=note)
    assert [at for at, _, _ in engine.started] == pytest.approx([0, 3, 3], abs=0.5) and len(failures) == 1
    assert failed == [(0, "exit code 1", [])] and ended == [0, 1, 2]


def test_a_run_that_need_not_go_on_keeps_a_checkpoint_and_is_no_failure(clock, make_tasks, capsys):
    engine = ScriptedEngine(clock, 2, {0: (1000, 0), 1: (5, 0)}, seconds_to_stop=2)
    ended = []

    def find_end(task):
        return "far behind" if task.config.seed == 0 and clock.now >= 3 else ""

    failures = pool.run_tasks(make_tasks(2), engine, lambda task: ended.append(task.config.seed), find_end)
    assert failures == [] and [run.is_interrupted for run in engine.runs] == [True, False]
    # Both end within the same second.
    assert ended == [1, 0] or ended == [0, 1]
    assert clock.now == pytest.approx(5, abs=0.5)
    assert "[1/2] a, seed 0: far behind" in capsys.readouterr().out.splitlines()


def test_the_lines_of_a_run_are_understood_its_result_and_an_error_at_its_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("launch.sweeps.pool.SECONDS_PER_LINE", 0)
    progress = Progress(rounds=10, done=4)
    progress.update(5, 0.5)
    progress.update(6, 0.625, 0.75)
    lines = capsys.readouterr().out.splitlines()
    shown = ProgressOfMany([10], slots=2, keeps_logs=True)
    config = SimpleNamespace(seed=0, rounds=10, replay="")
    shown.start(1, Task(Recipe("a", "--flagfile=a.flags"), (), tmp_path / "seed_0", config), slot=1)
    shown.read(1, ["run      fedavg, 10 rounds", *lines])
    line, all_runs = capsys.readouterr().out.splitlines()[1:]
    assert line.startswith("[1/1] a, seed 0: round 6/10, test accuracy 0.6250, clients' own 0.7500, ")
    assert all_runs.startswith("0 of 1 run has ended: ") and all_runs.endswith(" left")
    assert shown.last_line(1) == lines[-1]
    result = "10 rounds in 3 s: test accuracy 0.5000"
    shown.read(1, [f"done     {result}", "error: no space is left", "", "Exception ignored in: ..."])
    assert shown.last_line(1) == "error: no space is left"
    shown.end(1, slot=1)
    assert capsys.readouterr().out.splitlines()[-1] == f"[1/1] a, seed 0: done in 0 s; {result}"
