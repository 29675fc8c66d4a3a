"""What ends a Ray of a run's own, tried on processes that only sleep."""

import os
import signal
import subprocess
import sys
import time

import pytest

from launch.runtimes import ray_reaper

MARK = "FEDERATED_RAY"


@pytest.fixture
def start():
    """A function (command, mark) that starts a program with a mark in its environment; the test ends it."""
    processes = []

    def start_marked(command, mark, **options):
        processes.append(subprocess.Popen(command, env={**os.environ, MARK: mark}, **options))
        return processes[-1]

    yield start_marked
    for process in processes:
        process.kill()
        process.wait()


def test_those_with_the_mark_are_killed_after_the_grace_and_no_others(tmp_path, start):
    mark = str(tmp_path)
    quick = start(["sleep", "0.1"], mark)
    ray_reaper.end_marked(MARK, mark, grace_s=30.0)
    assert quick.wait(5) == 0, "it ends by itself in time"
    marked, other = start(["sleep", "60"], mark), start(["sleep", "60"], f"{mark}0")
    grown_up = start(["sh", "-c", "sleep 60 & wait"], mark)  # whose own child is marked as well
    start_s = time.monotonic()
    ray_reaper.end_marked(MARK, mark, grace_s=0.3)
    assert time.monotonic() - start_s >= 0.3
    assert marked.wait(5) == grown_up.wait(5) == -signal.SIGKILL
    assert ray_reaper.find_marked(MARK, mark) == []
    assert other.poll() is None


@pytest.mark.parametrize("end", [subprocess.Popen.kill, subprocess.Popen.terminate], ids=["killed", "terminated"])
def test_the_folder_goes_when_the_process_that_holds_the_pipe_ends(tmp_path, start, end):
    folder = tmp_path / "ray"
    (folder / "session").mkdir(parents=True)
    script = [sys.executable, "-I", "-S", ray_reaper.__file__, MARK, str(folder)]
    code = f"import subprocess, time; subprocess.Popen({script!r}, stdin=subprocess.PIPE); print(1); time.sleep(60)"
    holder = start([sys.executable, "-u", "-c", code], "", stdout=subprocess.PIPE)
    holder.stdout.readline()
    time.sleep(0.2)
    assert folder.exists()
    end(holder)
    holder.communicate(timeout=5)
    deadline_s = time.monotonic() + 20
    while folder.exists() and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not folder.exists()
