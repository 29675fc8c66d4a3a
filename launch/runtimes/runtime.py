"""Owns the TFF workers of a run: every TFF computation inside `with run_tff(log_path) as runtime:` uses them.

However this process ends, by SIGKILL too, no worker of ours remains and no pipe of ours stays open. If a worker dies,
the others compute what it had; if it was the only one, the running or the next computation raises WorkerError at once.
Imports neither TensorFlow nor TFF until `run_tff` is entered.
"""

import contextlib
import dataclasses
import logging
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator, Sequence

import psutil

from launch.runtimes.quick_import import import_quickly
from launch.runtimes.worker_process import Threads, WorkerError, WorkerProcess, default_threads, run_worker

__all__ = ["READY_TIMEOUT_S", "Runtime", "Threads", "WorkerError", "quiet_tensorflow", "run_tff"]

READY_TIMEOUT_S = 30.0


@dataclasses.dataclass(frozen=True)
class Runtime:
    """What computes, as far as all runtimes have it.

    Attributes:
      addresses: "unix:<path>" or "host:port" of each TFF worker; empty without any.
      pids: process numbers of our own workers; empty if they run elsewhere, or there are none.
    """

    addresses: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()

    def worker_memory_bytes(self) -> int:
        """Resident memory of our own workers together, 0 without any; one that has just died counts as 0."""
        total_bytes = 0
        for pid in self.pids:
            with contextlib.suppress(psutil.NoSuchProcess):
                total_bytes += psutil.Process(pid).memory_info().rss
        return total_bytes


TEMPORARY_BYTES = 2**20  # what its libraries write there at least: the source of what AutoGraph makes


@contextlib.contextmanager
def quiet_tensorflow(log_path: str) -> Iterator[None]:
    """Imports TensorFlow; what its libraries print to stderr on loading, and in the block, goes to `log_path` instead.

    Later messages of its C++ code are switched off, unless TF_CPP_MIN_LOG_LEVEL is set already: errors reach Python
    anyway. Notices of deprecation are switched off, too: Keras's own layers cause them whenever TFF traces them.
    """
    check_temporary_folder()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    # The libraries write to file descriptor 2 itself, so that replacing `sys.stderr` would not catch it.
    stderr_copy = os.dup(2)
    try:
        with open(log_path, "ab") as log:
            os.dup2(log.fileno(), 2)
        import_quickly("tensorflow")
        yield
    finally:
        sys.stderr.flush()
        os.dup2(stderr_copy, 2)
        os.close(stderr_copy)
        logging.getLogger("tensorflow").addFilter(_is_no_deprecation)


def check_temporary_folder() -> None:
    """Raises OSError, naming the folder, if no file of `TEMPORARY_BYTES` fits; TensorFlow would say so in 60 lines."""
    try:
        with tempfile.TemporaryFile() as file:
            file.write(bytes(TEMPORARY_BYTES))
            file.flush()
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), tempfile.gettempdir()) from error


def _is_no_deprecation(record: logging.LogRecord) -> bool:
    return "is deprecated and will be removed" not in record.getMessage()


def _name_logs(log_path: str, num_workers: int) -> list[str]:
    """worker.log, worker_2.log, ... as absolute paths in a folder that exists."""
    path = pathlib.Path(log_path).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    return [str(path), *(str(path.with_stem(f"{path.stem}_{i}")) for i in range(2, num_workers + 1))]


@contextlib.contextmanager
def run_tff(
    log_path: str,
    workers: Sequence[str] = (),
    num_workers: int = 1,
    threads: Threads | None = None,
    ready_timeout_s: float = READY_TIMEOUT_S,
    keeps_memory: bool = False,
    closed: bool | None = None,
    num_shares: int | None = None,
) -> Iterator[Runtime]:
    """Starts or joins TFF workers and makes them TFF's default context; stops its own workers at the end.

    Enter it in the main thread and compute there: TFF's default context belongs to a thread, and our workers end with
    the thread that started them.

    Args:
      log_path: the file that our worker's output and TensorFlow's start-up are appended to. A second worker's log is
        `<stem>_2`, and so on.
      workers: "unix:<path>" or "host:port" of workers that run already, here or elsewhere. They need the folder of
        client files under the same path.
      num_workers: how many to start ourselves if `workers` is empty.
      threads: how to pin our own workers; None for `default_threads()`.
      ready_timeout_s: the longest wait for each worker.
      keeps_memory: whether our own workers keep freed memory, which is quicker for tensors of at least
        `LARGE_TENSOR_BYTES`.
      closed: see `run_worker`; by default our own workers are closed off where the kernel allows that.
      num_shares: into how many parts the clients of a call are cut, one at a time to a worker; None for as many as
        there are workers. The results depend on it, in their last digits, and on nothing else about the workers.

    Yields:
      The workers in use.

    Raises:
      ValueError: no workers at all.
      WorkerError: a worker does not start or answer; inside the block, a computation's worker died, stopped
        answering or failed.
    """
    addresses = [address.strip() for address in workers]
    if not addresses and num_workers < 1:
        raise ValueError(f"num_workers={num_workers}: expected at least 1")
    logs = _name_logs(log_path, num_workers)
    with contextlib.ExitStack() as stack:
        # Our workers start while TFF is imported, which takes longer.
        processes: list[WorkerProcess | None] = [None] * len(addresses)
        if not addresses:
            processes = [
                stack.enter_context(run_worker(log, threads or default_threads(), keeps_memory, closed)) for log in logs
            ]
            addresses = [process.address for process in processes]
        with quiet_tensorflow(logs[0]):
            tff_contexts = import_quickly("launch.runtimes.tff_contexts")
        # Until they answer, too: what TFF would compute with by default is torn down with complaints.
        stack.enter_context(tff_contexts.use_context(tff_contexts.StoppedContext()))
        connections = zip(addresses, processes, strict=True)
        stubs = [stack.enter_context(tff_contexts.connect(*connection, ready_timeout_s)) for connection in connections]
        stack.enter_context(tff_contexts.use_workers(stubs, num_shares or len(stubs)))
        yield Runtime(tuple(addresses), tuple(worker.process.pid for worker in processes if worker))
