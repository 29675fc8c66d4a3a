"""A TFF worker of our own: started with pinned threads and its own log, out of others' reach, and never left behind.

Its stdin is empty and its output goes to a log file, so it holds none of our pipes. It lives in a session of its own,
so Ctrl-C reaches only us. The kernel kills it when the thread that started it ends, however that happens.

The worker runs any graph that it is sent, and listens on all network interfaces without authentication. TFF 0.87's
binary has no option against that. So the worker is *closed off*: it gets a network of its own, in which it is alone
with a relay, and the relay speaks to us through a Unix socket in a folder that only our user may enter.
"""

import atexit
import contextlib
import dataclasses
import functools
import importlib.util
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

import portpicker

from launch.progress import say
from launch.runtimes.worker_relay import remove_socket

TAIL_LINES = 20
MAX_FOLDER_BYTES, SHORT_FOLDER = 60, "/tmp"  # the whole path of a socket may have 107
LAUNCHER, CLOSED_LAUNCHER = (
    str(pathlib.Path(__file__).with_name(name)) for name in ("worker_launcher.py", "closed_launcher.py")
)
PORT_INSIDE = 8000  # in a network of its own any port is free

# What the C library does with freed memory: give it back to the kernel, or keep it. Giving back every tensor above a
# few MB took half of the CPU time of a model with 4.7 million weights (57 s for two rounds, against 30 s). Keeping them
# takes a third more memory at the peak, and a small run's memory then grows by 9 % from round 20 to 200, against 1 %.
RETURNING = {"MALLOC_TRIM_THRESHOLD_": str(2**20), "MALLOC_MMAP_THRESHOLD_": str(2**22)}
KEEPING = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
LARGE_TENSOR_BYTES = 2**22  # a weight of this size makes keeping pay


class WorkerError(RuntimeError):
    """A worker did not start, died, stopped answering, or could not finish a computation. The message is one line.

    Attributes:
      log_tail: the last lines of the worker's log; "" if there are none.
    """

    def __init__(self, message: str, log_tail: str = ""):
        super().__init__(message)
        self.log_tail = log_tail


class WorkerLost(WorkerError):
    """A worker died or can no longer be reached; another one could do its work."""


class ClosingError(WorkerError):
    """The kernel, a container or a security module forbids to close a worker off."""


@dataclasses.dataclass(frozen=True)
class Threads:
    """How a worker of our own is pinned.

    Attributes:
      intra_op: threads inside one operation; 1 makes results repeatable bit for bit.
      inter_op: operations at a time.
      concurrent_calls: how many clients of one computation run at a time.
    """

    intra_op: int
    inter_op: int
    concurrent_calls: int


def default_threads() -> Threads:
    """One thread an operation; an operation and two clients for each core: the fastest measured on small models."""
    num_cores = len(os.sched_getaffinity(0))
    return Threads(intra_op=1, inter_op=num_cores, concurrent_calls=2 * num_cores)


@dataclasses.dataclass(frozen=True)
class WorkerProcess:
    """A running worker of our own.

    Attributes:
      process: the worker itself.
      address: where to reach it, "unix:<path>" or "127.0.0.1:<port>".
      log_path: the file that its stdout and stderr go to.
      log_start_bytes: size of the log when it started.
      socket_path: its Unix socket; "" if it has none.
      socket_dir: the folder that was made for the socket; "" if none was.
    """

    process: subprocess.Popen
    address: str
    log_path: str
    log_start_bytes: int
    socket_path: str = ""
    socket_dir: str = ""

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def read_log_tail(self) -> str:
        """The last lines that this worker wrote."""
        with open(self.log_path, "rb") as log:
            log.seek(self.log_start_bytes)
            lines = log.read().decode("utf-8", "replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])

    def describe_death(self, grace_s: float = 2.0) -> WorkerLost | None:
        """The error to raise for a dead worker; None if it still lives after `grace_s` seconds."""
        try:
            returncode = self.process.wait(grace_s)
        except subprocess.TimeoutExpired:
            return None
        message = f"the TFF worker (process {self.process.pid}) {explain_exit(returncode)}; its log: {self.log_path}"
        return WorkerLost(message, self.read_log_tail())

    def stop(self) -> None:
        """Kills the worker, which holds nothing worth saving, and waits until it is gone."""
        self.process.kill()
        self.process.wait()
        remove_socket(self.socket_path, self.socket_dir)  # its relay may be doing the same


def explain_exit(returncode: int) -> str:
    """How a process of ours ended, to go on after its name."""
    if returncode == -signal.SIGKILL:
        return "was killed by SIGKILL, probably because memory ran out"
    if returncode < 0:
        return f"crashed with {signal.Signals(-returncode).name}"
    return f"ended with exit code {returncode}"


def find_worker_binary() -> str:
    """The worker's path inside the TFF package, found without importing TFF. Raises WorkerError if it is not there."""
    spec = importlib.util.find_spec("tensorflow_federated")
    if spec is None or spec.origin is None:
        raise WorkerError("tensorflow_federated is not installed; run `make setup`")
    binary = os.path.join(os.path.dirname(spec.origin), "data", "worker_binary")
    if not os.access(binary, os.X_OK):
        raise WorkerError(f"no TFF worker at {binary}; run `make setup` again")
    return binary


def _start_open(log_path: str, threads: Threads, keeps_memory: bool) -> WorkerProcess:
    """A worker that anybody can reach who reaches this machine."""
    port = portpicker.pick_unused_port()
    launcher = [LAUNCHER, str(os.getpid())]
    process, log_start_bytes = _launch(launcher, port, log_path, threads, keeps_memory)
    return WorkerProcess(process, f"127.0.0.1:{port}", log_path, log_start_bytes)


def _start_closed(log_path: str, threads: Threads, keeps_memory: bool, socket_path: str) -> WorkerProcess:
    """A worker that only our user can reach. Raises ClosingError if there can be none."""
    socket_dir = "" if socket_path else _make_socket_dir()
    path = socket_path or os.path.join(socket_dir, "worker.sock")
    read_end, write_end = os.pipe()
    with open(read_end, "rb") as status, open(write_end, "wb") as answer, socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(path)
            os.chmod(path, 0o600)
            listener.listen()  # nobody can connect before
        except OSError as error:
            remove_socket("" if socket_path else path, socket_dir)
            raise ClosingError(f"no Unix socket can be made at {path}: {error.strerror or error}") from None
        files = (answer.fileno(), listener.fileno())
        launcher = [CLOSED_LAUNCHER, *map(str, (os.getpid(), *files, PORT_INSIDE)), path, socket_dir]
        process, log_start_bytes = _launch(launcher, PORT_INSIDE, log_path, threads, keeps_memory, files)
        answer.close()
        reason = status.read().decode()
    worker = WorkerProcess(process, f"unix:{path}", log_path, log_start_bytes, path, socket_dir)
    if reason:
        worker.stop()
        raise ClosingError(f"this system allows no network namespace: {reason}")
    return worker


def _make_socket_dir() -> str:
    """A new folder that only our user may enter, with a path short enough for a socket in it."""
    folder = tempfile.gettempdir()
    fits = len(os.fsencode(folder)) <= MAX_FOLDER_BYTES
    return tempfile.mkdtemp(prefix="federated_worker_", dir=folder if fits else SHORT_FOLDER)


def _launch(
    launcher: Sequence[str],
    port: int,
    log_path: str,
    threads: Threads,
    keeps_memory: bool,
    files: Sequence[int] = (),
) -> tuple[subprocess.Popen, int]:
    """Starts the binary through a script, which gets the open `files`; returns the process and where its log starts."""
    arguments = [f"--port={port}", f"--max_concurrent_computation_calls={threads.concurrent_calls}"]
    environment = {
        **os.environ,
        "TF_NUM_INTRAOP_THREADS": str(threads.intra_op),
        "TF_NUM_INTEROP_THREADS": str(threads.inter_op),
        "OMP_NUM_THREADS": str(threads.intra_op),
        "TF_CPP_MIN_LOG_LEVEL": "1",
        # The number of heaps. Measured on a small run: with one for each concurrent call, memory grows by 3 % from
        # round 20 to 200; with one for each inter-op thread, by 1 %. With a single heap the threads wait for each
        # other, and a round takes 1.3 to 2.5 times as long.
        "MALLOC_ARENA_MAX": str(threads.inter_op),
        **(KEEPING if keeps_memory else RETURNING),
    }
    with open(log_path, "ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", *launcher, find_worker_binary(), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            pass_fds=files,
        )
        return process, log.tell()


def _start_worker(
    log_path: str, threads: Threads, keeps_memory: bool, closed: bool | None, socket_path: str
) -> WorkerProcess:
    if closed is not False:
        try:
            return _start_closed(log_path, threads, keeps_memory, socket_path)
        except ClosingError as error:
            if closed:
                raise
            _warn(str(error))
    return _start_open(log_path, threads, keeps_memory)


@functools.cache
def _warn(reason: str) -> None:
    """Says once why our workers have ports."""
    say(
        f"warning  TFF's worker cannot be closed off ({reason}): until it ends, whoever reaches this machine can run "
        "code in it through its port; --runtime=in_process has none"
    )


@contextlib.contextmanager
def run_worker(
    log_path: str, threads: Threads, keeps_memory: bool = False, closed: bool | None = None, socket_path: str = ""
) -> Iterator[WorkerProcess]:
    """Starts a worker and stops it at the end; does not wait until it listens.

    Call it from a thread that outlives the block, normally the main thread: the kernel's death signal is tied to it.

    Args:
      log_path: the file that its output is appended to.
      threads: how it is pinned.
      keeps_memory: see `KEEPING`.
      closed: False for a worker with a port, which anybody can reach; None for such a one only if it cannot be closed
        off, which a warning then says.
      socket_path: where its Unix socket is made; "" for a folder of its own.

    Raises:
      ClosingError: it cannot be closed off, and `closed` is True.
    """
    worker = _start_worker(log_path, threads, keeps_memory, closed, socket_path)
    atexit.register(worker.stop)
    try:
        yield worker
    finally:
        worker.stop()
        atexit.unregister(worker.stop)
