"""The benchmark's side of a peer: starts it in a session of its own, asks for rounds, leaves nothing running."""

import contextlib
import dataclasses
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

from launch.benchmarks.workloads import PEERS, Workload

START_LIMIT_S = 300.0
ROUND_LIMIT_S = 600.0
QUIT_LIMIT_S = 10.0
THREAD_VARIABLES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
PROJECT_FOLDER = pathlib.Path(__file__).resolve().parents[2]


class PeerError(RuntimeError):
    """A peer could not start, or could not finish a round. The message is one line."""


class PeerProcess:
    """One peer, waiting in its own process until it is asked for a round.

    Use it as a context manager: on exit, however that comes, its whole process group is killed.
    """

    def __init__(self, name: str, workload: Workload, folder: str):
        """Starts the process; `folder` holds the client files and gets the log `<name>.log`."""
        self.name = name
        self.log_path = os.path.join(folder, f"{name}.log")
        self._unread = b""
        self._is_busy = True
        self._answers, answer_fd = os.pipe()
        request = {
            "module": PEERS[name].module,
            "options": dict(PEERS[name].options),
            "workload": dataclasses.asdict(workload),
            "folder": os.path.abspath(folder),
            "answer_fd": answer_fd,
        }
        with open(self.log_path, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "launch.benchmarks.peer_main", json.dumps(request)],
                cwd=PROJECT_FOLDER,
                env=_environment(name),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[answer_fd],
                start_new_session=True,
            )
        os.close(answer_fd)

    def __enter__(self) -> "PeerProcess":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def wait_until_ready(self) -> None:
        """Returns when the peer has built its model and read its data. Raises PeerError if it cannot."""
        self._read_answer(START_LIMIT_S)

    def run_round(self) -> float:
        """Runs one round; returns its seconds on the peer's own clock. Raises PeerError if it fails."""
        self._send("go")
        return float(self._read_answer(ROUND_LIMIT_S))

    def close(self) -> None:
        """Lets an idle peer stop its workers by itself, then kills the process group. May be called again."""
        if self._process.returncode is not None:
            return
        try:
            if not self._is_busy:
                with contextlib.suppress(PeerError):
                    self._send("quit")
                    self._read_answer(QUIT_LIMIT_S)
        finally:
            # The leader has not been waited for yet, so the kernel cannot have given its number to another process.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            os.close(self._answers)

    def _send(self, command):
        self._is_busy = True
        try:
            self._process.stdin.write(f"{command}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerError(f"{self.name}: its process ended; {describe_log_end(self.log_path)}") from None

    def _read_answer(self, limit_s):
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._unread:
            readable, _, _ = select.select([self._answers], [], [], max(deadline - time.monotonic(), 0.0))
            if not readable:
                raise PeerError(f"{self.name}: no answer within {limit_s:g} s; {describe_log_end(self.log_path)}")
            received = os.read(self._answers, 4096)
            if not received:
                raise PeerError(f"{self.name}: its process ended; {describe_log_end(self.log_path)}")
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        answer = line.decode()
        if answer.startswith("error "):
            raise PeerError(f"{self.name}: {answer.removeprefix('error ')}")
        self._is_busy = False
        return answer


def describe_log_end(log_path: str) -> str:
    """The last line of a log that is not empty, in words."""
    lines = pathlib.Path(log_path).read_text("utf-8", "replace").split("\n")
    return next((f"its log ends: {line.strip()}" for line in reversed(lines) if line.strip()), "its log is empty")


def _environment(name):
    """The user's variables without settings of threads, which would change the peers' defaults; then the peer's own."""
    inherited = {key: value for key, value in os.environ.items() if key not in THREAD_VARIABLES}
    return {**inherited, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1", **PEERS[name].environment}
