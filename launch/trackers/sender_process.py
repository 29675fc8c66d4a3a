"""The program that speaks to a tracker, in an environment of its own: where it is, and how it is asked.

MLflow and W&B of today do not fit beside TensorFlow Federated. So `sender.py` runs in another Python, and what it
sends goes to it as lines of JSON.
"""

import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from typing import Any, BinaryIO

from launch.settings.flags import FlagError

SENDER = pathlib.Path(__file__).with_name("sender.py")
ENVIRONMENT = pathlib.Path(__file__).resolve().parents[2] / ".venv-track"
PYTHON_VARIABLE = "FL_TRACK_PYTHON"
SET_UP = "make setup-track"
ANSWER_LIMITS_S = {"open": 120.0, "rounds": 120.0, "close": 600.0}  # files are sent at the end
END_LIMIT_S = 10.0
DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "WANDB_ERROR_REPORTING": "false",
}


class TrackerError(RuntimeError):
    """A tracker cannot be reached or refuses something. The message is one line."""


def find_python(flag: str) -> str:
    """The Python that has the trackers: what FL_TRACK_PYTHON names, or that of `.venv-track`.

    Args:
      flag: the flag that asks for one, for the error.

    Raises:
      FlagError: there is none.
    """
    named = os.environ.get(PYTHON_VARIABLE)
    if named:
        if (program := shutil.which(named)) is None:
            raise FlagError(f"{PYTHON_VARIABLE}={named}: no such program; expected a Python that has MLflow or W&B")
        return program
    if not (ENVIRONMENT / "setup_done").exists():
        raise FlagError(
            f"{flag}: {ENVIRONMENT.name} is not set up; make it with: {SET_UP}, or let {PYTHON_VARIABLE} name a Python "
            "that has the tracker"
        )
    return str(ENVIRONMENT / "bin" / "python")


class SenderProcess:
    """The program, started at the first request.

    Use it as a context manager: on exit it may finish for some seconds, and is then killed.

    Args:
      python: what runs it.
      tracker: "mlflow" or "wandb".
      variables: of its environment, beside those of this process.
      log: where its standard error goes.
    """

    def __init__(self, python: str, tracker: str, variables: Mapping[str, str], log: BinaryIO | int):
        self._command = [python, "-I", str(SENDER), tracker]
        self._variables, self._log = variables, log
        self._process: subprocess.Popen | None = None
        self._unread = b""

    def __enter__(self) -> "SenderProcess":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def ask(self, do: str, key: str, **request: Any) -> dict[str, Any]:
        """Sends a request and returns the answer; see `sender.py`.

        Raises:
          TrackerError: it failed, took too long, or the program ended.
        """
        process = self._process or self._start()
        try:
            process.stdin.write(json.dumps({"do": do, "key": key, **request}).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(self._read_line(process, ANSWER_LIMITS_S[do]))
        except (OSError, ValueError):
            raise TrackerError("the program that speaks to the tracker has ended") from None
        if "error" in answer:
            raise TrackerError(answer["error"])
        return answer

    def _start(self) -> subprocess.Popen:
        self._unread = b""
        # In a session of its own, so that Ctrl-C reaches this process alone, which then ends that one in order.
        self._process = subprocess.Popen(
            self._command,
            env={**DEFAULTS, **os.environ, **self._variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        return self._process

    def _read_line(self, process: subprocess.Popen, limit_s: float) -> bytes:
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._unread:
            readable, _, _ = select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0.0))
            if not readable:
                self.close(limit_s=0.0)
                raise TrackerError(f"no answer within {limit_s:g} s")
            received = os.read(process.stdout.fileno(), 65536)
            if not received:
                raise OSError("ended")
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def close(self, limit_s: float = END_LIMIT_S) -> None:
        """Lets the program end, and kills it with what it has started if that takes longer. May be called again."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
