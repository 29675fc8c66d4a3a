"""No worker outlives its program, however that ends. All programs here but one import no TFF, so they are quick."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import psutil
import pytest

from launch.runtimes.worker_process import Threads, WorkerError, default_threads, run_worker

ROOT = pathlib.Path(__file__).parents[3]
PROGRAM = """
import os, signal, sys, time
from launch.runtimes.worker_process import Threads, run_worker
with run_worker(sys.argv[1], Threads(1, 1, 1)) as worker:
    print(worker.process.pid, flush=True)
    {ending}
"""
COMPUTING_PROGRAM = """
import os, signal, sys, threading
from launch.runtimes.runtime import WorkerError, run_tff
with run_tff(sys.argv[1]):
    import numpy as np, tensorflow as tf, tensorflow_federated as tff
    @tff.tensorflow.computation(np.float32)
    def never_end(x):
        return tf.while_loop(lambda x: x < 2.0, lambda x: (tf.sin(x),), (x,))[0]
try:
    never_end(0.5)
except WorkerError as error:
    print(error)
with run_tff(sys.argv[1]) as runtime:
    print(runtime.pids[0], flush=True)
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGKILL)).start()
    never_end(0.5)
"""
ENDINGS = {
    "end of the block": "pass",
    "exception": "raise RuntimeError('expected by the test')",
    "sys.exit": "sys.exit(3)",
    "os._exit": "os._exit(3)",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    "SIGINT": "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
}


def wait_until_gone(pid: int, timeout_s: float = 10.0) -> bool:
    """Whether process `pid` ends within the time (a zombie, which its new parent has yet to reap, has ended)."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_worker_outlives_its_program_nor_holds_its_pipe(tmp_path, ending):
    command = [sys.executable, "-c", PROGRAM.format(ending=ENDINGS[ending]), str(tmp_path / "worker.log")]
    # `run` returns when the pipe is closed by all who hold it, as `tee` does
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert wait_until_gone(int(ended.stdout.splitlines()[0])), ended.stdout


@pytest.mark.slow
def test_a_program_killed_while_it_computes_leaves_no_worker_and_prints_no_noise(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    ended = subprocess.run(
        [sys.executable, "-c", COMPUTING_PROGRAM, str(tmp_path / "worker.log")],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert ended.returncode == -signal.SIGKILL
    refusal, pid = ended.stdout.splitlines()  # no more lines: TensorFlow's start-up noise is in the log
    assert refusal == "no TFF worker is running; call computations inside `with run_tff(...)`"
    assert wait_until_gone(int(pid))


def test_a_worker_whose_parent_ended_before_the_death_signal_was_set_does_not_start():
    command = [
        sys.executable,
        "-I",
        "-S",
        str(ROOT / "launch/runtimes/worker_launcher.py"),
        str(os.getpid() + 1),
        "/bin/echo",
        "no",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")


def test_a_program_that_cannot_run_is_named():
    command = [
        sys.executable,
        "-I",
        "-S",
        str(ROOT / "launch/runtimes/worker_launcher.py"),
        str(os.getpid()),
        "/no/worker",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (127, "cannot run /no/worker: No such file or directory\n")


def test_worker_is_separate_from_our_terminal_and_pipes(tmp_path):
    with run_worker(str(tmp_path / "worker.log"), Threads(1, 1, 1)) as worker:
        assert os.getsid(worker.process.pid) != os.getsid(0)
        targets = [os.readlink(f"/proc/{worker.process.pid}/fd/{descriptor}") for descriptor in (0, 1, 2)]
        assert targets == ["/dev/null", worker.log_path, worker.log_path]
    assert not worker.is_alive()


def test_death_is_described_in_one_line_with_the_log_of_this_worker_only(tmp_path):
    log = tmp_path / "worker.log"
    log.write_text("of an earlier run\n")
    with run_worker(str(log), Threads(1, 1, 1)) as worker:
        assert worker.describe_death(grace_s=0.0) is None
        with open(log, "a") as file:
            file.writelines(f"line {i}\n" for i in range(100))
        os.kill(worker.process.pid, signal.SIGKILL)
        death = worker.describe_death()
    assert isinstance(death, WorkerError)
    assert str(death).endswith(f"was killed by SIGKILL, probably because memory ran out; its log: {log}")
    assert "\n" not in str(death)
    assert death.log_tail.splitlines() == [f"line {i}" for i in range(80, 100)]


def test_threads_follow_the_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert default_threads() == Threads(intra_op=1, inter_op=2, concurrent_calls=4)


def wait_for_environment(pid):
    """The variables of a process that has just begun; while it becomes another program, there are none to be seen."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        environment = psutil.Process(pid).environ()
        if environment:
            return environment
        time.sleep(0.05)
    raise AssertionError("the process shows no environment")


@pytest.mark.parametrize(("keeps_memory", "threshold"), [(False, str(2**20)), (True, str(2**30))])
def test_a_worker_keeps_freed_memory_if_it_is_told_to(tmp_path, keeps_memory, threshold):
    with run_worker(str(tmp_path / "worker.log"), Threads(1, 2, 4), keeps_memory) as worker:
        environment = wait_for_environment(worker.process.pid)
    assert environment["MALLOC_TRIM_THRESHOLD_"] == threshold
    assert environment["MALLOC_ARENA_MAX"] == "2"
