"""TFF's own worker as the runtime, as plainly as it can be had while nobody else can reach it.

TFF 0.87 computes in a process that listens on all network interfaces, asks nobody who they are, runs any graph that it
is sent, and outlives its program. So it is started here, and lives in a network of its own (see `tff_worker_main`). To
that leads a single connection, through a Unix socket that is gone as soon as we have connected. Its stdin is empty and
its output goes to a log file, so it holds none of our pipes. It has a session of its own, so Ctrl-C reaches only us.
The kernel kills it when the thread that started it ends, however that happens.

Imports neither TensorFlow nor TFF until `run_tff` is entered.
"""

import contextlib
import dataclasses
import os
import pathlib
import platform
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from launch.runtimes.arenas import MAX_ARENAS, VARIABLE
from launch.runtimes.child_process import explain_exit
from launch.runtimes.processor import count_cores
from launch.runtimes.quick_import import import_quickly
from launch.runtimes.runtime import READY_TIMEOUT_S, Runtime, WorkerError, quiet_tensorflow
from launch.runtimes.tff_package import ABSENCE, GET_WORKER, find_worker, has_worker
from launch.runtimes.tff_worker_main import NO_NETWORK, PORT

ROOT = pathlib.Path(__file__).parents[2]
SETUP = pathlib.Path(__file__).with_name("setup_tff.sh")
PROGRAM = [sys.executable, "-P", "-m", "launch.runtimes.tff_worker_main"]
TAIL_LINES = 20
NEEDS_NONE = "--runtime=in_process needs no worker"
MAX_FOLDER_BYTES, SHORT_FOLDER = 60, "/tmp"  # the whole path of a socket may have 107


def install_worker() -> None:
    """Puts TFF's worker into this environment, unless it is there; a line on the process's stdout says so.

    Raises:
      WorkerError: it cannot be had.
    """
    if has_worker():
        return
    told = {**os.environ, "PYTHON": sys.executable}
    ended = subprocess.run(["sh", str(SETUP)], env=told, stderr=subprocess.PIPE, text=True)
    if ended.returncode:
        raise WorkerError(ended.stderr.strip().removeprefix("setup-tff: "))


@contextlib.contextmanager
def run_tff(log_path: str, ready_timeout_s: float = READY_TIMEOUT_S) -> Iterator[Runtime]:
    """Starts TFF's worker and makes it TFF's default context; stops it at the end.

    Enter it in the main thread and compute there: TFF's default context belongs to a thread, and the worker ends with
    the thread that started it.

    Args:
      log_path: the file that the worker's output and TensorFlow's start-up are appended to.
      ready_timeout_s: the longest wait for the worker.

    Yields:
      The runtime, with the worker's process number.

    Raises:
      WorkerError: the worker is not made for this machine, not installed, does not start or answer, or cannot be closed
        off from others; inside the block, it died, stopped answering, or a computation failed.
    """
    machine = f"{platform.system()} on {platform.machine()}"
    if machine != "Linux on x86_64":
        raise WorkerError(f"TFF's worker runs on x86-64 Linux only, and this is {machine}; {NEEDS_NONE}")
    if not has_worker():
        raise WorkerError(f"{ABSENCE}; to get it: {GET_WORKER}")
    log = pathlib.Path(log_path).absolute()
    log.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        is_long = len(os.fsencode(tempfile.gettempdir())) > MAX_FOLDER_BYTES
        with tempfile.TemporaryDirectory(prefix="federated_worker_", dir=SHORT_FOLDER if is_long else None) as folder:
            path = os.path.join(folder, "worker.sock")
            worker = stack.enter_context(_run_worker(str(log), path))
            with quiet_tensorflow(str(log)):  # the worker starts meanwhile
                tff_contexts = import_quickly("launch.runtimes.tff_contexts")
            # Until the worker answers, too: what TFF would compute with by default is torn down with complaints.
            stack.enter_context(tff_contexts.use_context(tff_contexts.StoppedContext()))
            stub = stack.enter_context(tff_contexts.connect(path, worker.find_death, ready_timeout_s))
        stack.enter_context(tff_contexts.use_context(tff_contexts.make_worker_context(stub)))
        yield Runtime(worker.process.pid)


@dataclasses.dataclass(frozen=True)
class Worker:
    """A worker that was started.

    Attributes:
      process: its process.
      log_path: the file that its stdout and stderr go to.
      log_start_bytes: size of the log when it started.
    """

    process: subprocess.Popen
    log_path: str
    log_start_bytes: int

    def find_death(self, grace_s: float) -> WorkerError | None:
        """The error to raise if it has died; None if it still lives after `grace_s` seconds."""
        try:
            returncode = self.process.wait(grace_s)
        except subprocess.TimeoutExpired:
            return None
        with open(self.log_path, "rb") as log:
            log.seek(self.log_start_bytes)
            lines = log.read().decode("utf-8", "replace").splitlines()
        # Among others: TensorFlow's start-up in our own process goes there, too.
        for reason in (line.removeprefix(NO_NETWORK) for line in lines if line.startswith(NO_NETWORK)):
            return WorkerError(f"TFF's worker cannot be closed off from others here ({reason}); {NEEDS_NONE}")
        message = f"the TFF worker (process {self.process.pid}) {explain_exit(returncode)}; its log: {self.log_path}"
        return WorkerError(message, "\n".join(lines[-TAIL_LINES:]))


@contextlib.contextmanager
def _run_worker(log_path: str, socket_path: str) -> Iterator[Worker]:
    """Starts the worker, and kills it at the end: it holds nothing worth saving. Does not wait until it listens."""
    num_cores = count_cores()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "TF_CPP_MIN_LOG_LEVEL": "1",
        # One thread an operation makes results repeatable bit for bit.
        **dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"), "1"),
        "TF_NUM_INTEROP_THREADS": str(num_cores),
        VARIABLE: os.environ.get(VARIABLE, str(MAX_ARENAS)),
    }
    # Two clients for each core at a time: the fastest measured on small models.
    binary = [str(find_worker()), f"--port={PORT}", f"--max_concurrent_computation_calls={2 * num_cores}"]
    with socket.socket(socket.AF_UNIX) as listener, open(log_path, "ab") as log:
        listener.bind(socket_path)
        listener.listen(1)
        process = subprocess.Popen(
            [*PROGRAM, str(os.getpid()), str(listener.fileno()), *binary],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            pass_fds=[listener.fileno()],
        )
        worker = Worker(process, log_path, log.tell())
    try:
        yield worker
    finally:
        process.kill()
        process.wait()
