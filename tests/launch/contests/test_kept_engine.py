"""An engine that outlives a stage: seconds without waiting for imports, and an end for what does not end."""

from types import SimpleNamespace

import pytest

from launch.contests.kept_engine import KeptEngine


class Run:
    has_begun, exit_code, num_killed = False, None, 0

    def poll(self):
        return self.exit_code

    def interrupt(self):
        pass

    def kill(self):
        self.num_killed += 1


@pytest.fixture
def started():
    """(run, kept engine, its run, task, clock) of a run that has just started."""
    clock, run, closed = SimpleNamespace(now=0.0), Run(), []
    engine = SimpleNamespace(slots=2, keeps_logs=True, start=lambda task, slot: run, close=lambda: closed.append(1))
    kept, task = KeptEngine(engine, lambda: clock.now, 5.0), SimpleNamespace(run_dir="a")
    timed = kept.start(task, 0)
    kept.close()
    assert not closed and (kept.slots, kept.keeps_logs) == (2, True)
    return run, kept, timed, task, clock


def test_what_all_runs_need_once_is_not_counted(started):
    run, kept, timed, task, clock = started
    clock.now = 10.0
    assert timed.poll() is None and kept.get_seconds(task) == 0
    run.has_begun = True
    timed.poll()
    clock.now = 14.0
    assert kept.get_seconds(task) == 4
    run.exit_code = 0
    assert timed.poll() == 0
    clock.now = 99.0
    assert timed.poll() == 0 and kept.get_seconds(task) == 4
    assert kept.get_seconds(SimpleNamespace(run_dir="never started")) == 0


def test_a_run_that_does_not_end_when_it_is_asked_to_is_killed(started):
    run, _, timed, _, clock = started
    clock.now = 3.0
    timed.poll()
    timed.interrupt()
    clock.now = 8.0
    timed.poll()
    assert not run.num_killed
    clock.now = 8.1
    timed.poll()
    assert run.num_killed == 1
