"""A peer in a process of its own, which runs a timed round whenever it is asked to; nothing of it is left running.

The process leads a process group, which is killed as a whole at the end, or by itself when the benchmark has died:
stock TFF's worker outlives its parent. What a peer prints goes to a log file.
"""

import contextlib
import importlib
import multiprocessing
import os
import pathlib
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

from launch.benchmarks.cost import Cost, read_cost, subtract
from launch.benchmarks.workloads import Peer, Workload
from launch.runtimes.arenas import VARIABLE

START_LIMIT_S = 300.0
ROUND_LIMIT_S = 600.0
QUIT_LIMIT_S = 10.0
THREAD_VARIABLES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS", VARIABLE)
# A forked peer would begin with what this process holds; each is to start as a program of its own.
_SPAWN = multiprocessing.get_context("spawn")


class PeerError(RuntimeError):
    """A peer could not start, or could not finish a round. The message is one line."""


class PeerProcess(contextlib.AbstractContextManager):
    """One peer, waiting in its own process until it is asked for a round.

    Use it as a context manager: on exit, however that comes, its whole process group is killed.
    """

    def __init__(self, name: str, peer: Peer, workload: Workload, folder: str):
        """Starts the process; `folder` holds the client files and gets the log `<name>.log`."""
        self.name, self.log_path = name, os.path.join(folder, f"{name}.log")
        self._is_busy = True
        self._connection, theirs = _SPAWN.Pipe()
        arguments = (theirs, self.log_path, peer.module, dict(peer.options), workload, os.path.abspath(folder))
        self._process = _SPAWN.Process(target=_serve, args=arguments)
        with _set_environment(peer):
            self._process.start()
        # Else the end of the peer would not end the pipe, of which this process held the other end.
        theirs.close()

    def __exit__(self, *_) -> None:
        self.close()

    def wait_until_ready(self) -> None:
        """Returns when the peer has built its model and read its data. Raises PeerError if it cannot."""
        self._read_answer(START_LIMIT_S)

    def run_round(self) -> Cost:
        """Runs one round; returns what it took, as the peer itself measures it. Raises PeerError if it fails."""
        self._is_busy = True
        # Where nobody reads, there is no answer either, and its absence is what is reported.
        with contextlib.suppress(BrokenPipeError):
            self._connection.send("go")
        return self._read_answer(ROUND_LIMIT_S)

    def close(self) -> None:
        """Lets an idle peer stop its workers by itself, then kills the process group. May be called again."""
        if self._connection.closed:
            return
        try:
            if not self._is_busy:
                with contextlib.suppress(ConnectionError):
                    self._connection.send("quit")
                    # It becomes readable when the peer closes its end.
                    self._connection.poll(QUIT_LIMIT_S)
        finally:
            # The leader has not been waited for yet, so the kernel cannot have given its number to another process.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            # The group's kill misses a peer that led no group yet.
            self._process.kill()
            self._process.join()
            self._connection.close()

    def _read_answer(self, limit_s: float) -> Any:
        try:
            if not self._connection.poll(limit_s):
                raise PeerError(f"{self.name}: no answer within {limit_s:.0f} s; {describe_log_end(self.log_path)}")
            answer = self._connection.recv()
        except (EOFError, ConnectionError):
            raise PeerError(f"{self.name}: its process ended; {describe_log_end(self.log_path)}") from None
        if isinstance(answer, str):
            raise PeerError(f"{self.name}: {answer}")
        self._is_busy = False
        return answer


def describe_log_end(log_path: str) -> str:
    """The last line of a log that is not empty, in words."""
    lines = pathlib.Path(log_path).read_text("utf-8", "replace").split("\n")
    return next((f"its log ends: {line.strip()}" for line in reversed(lines) if line.strip()), "its log is empty")


@contextlib.contextmanager
def _set_environment(peer: Peer) -> Iterator[None]:
    """Inside, the variables are those of a peer: without settings of threads, which would change its defaults."""
    inherited = dict(os.environ)
    for variable in THREAD_VARIABLES:
        os.environ.pop(variable, None)
    os.environ.update({"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1", **peer.environment})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(inherited)


def _serve(
    connection: Connection, log_path: str, module: str, options: dict[str, Any], workload: Workload, folder: str
) -> None:
    """In the process: answers None once all is ready, then each "go" with a round's cost; an error with text."""
    os.setsid()
    with open(log_path, "wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)

    def end_with_parent():
        multiprocessing.parent_process().join()
        os.killpg(0, signal.SIGKILL)

    # A daemon, which does not keep the process alive that it watches.
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        with importlib.import_module(module).open_rounds(workload, folder, **options) as run_round:
            connection.send(None)
            while connection.recv() == "go":
                before, start_s = read_cost(0.0), time.perf_counter()
                run_round()
                wall_s = time.perf_counter() - start_s
                connection.send(subtract(read_cost(wall_s), before))
    except Exception as error:
        traceback.print_exc()
        try:
            connection.send(" ".join(f"{type(error).__name__}: {error}".split()))
        # The parent was killed, and this process must not end before it has ended what it started.
        except OSError:
            os.killpg(0, signal.SIGKILL)
