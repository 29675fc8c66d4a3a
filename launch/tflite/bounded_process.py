"""A program of ours in a process of its own, with bounds on its memory and time: it may crash, and we go on.

It answers requests one by one, each a line of JSON. It is started before it is needed, and again after it has died. Its
stdout and stderr go to a log file. It lives in a session of its own, so Ctrl-C reaches only us, and it ends when we do,
however that happens.
"""

import contextlib
import json
import os
import pathlib
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

import psutil

from launch.runtimes.child_process import build_command, explain_exit

CHECK_S = 0.05  # how often its memory and time are looked at; some models take a gigabyte a second
ROOT = pathlib.Path(__file__).parents[2]


class ProcessLost(Exception):
    """The process died, or was ended because it went beyond a bound. The message goes on after "the process"."""


class BoundedProcess:
    """The process.

    Args:
      module: what it runs: a module of ours that calls `serve_requests`.
      log_path: the file that its output is appended to.
    """

    def __init__(self, module: str, log_path: str):
        self._module, self._log_path = module, log_path
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Starts it, and does not wait until it is ready."""
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        with open(self._log_path, "ab") as log:
            self._process = subprocess.Popen(
                build_command(self._module),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def ask(self, request: Any, timeout_s: float, memory_bytes: int) -> Any:
        """The answer to a request, both of what JSON has; starts the process if it does not run.

        Args:
          request: less than 64 KiB as JSON.
          timeout_s: how long it may take.
          memory_bytes: how much memory the process may take.

        Raises:
          ProcessLost: it died, or went beyond a bound and was ended; the next request starts another.
        """
        if self._process is None or self._process.poll() is not None:
            self.start()
        end_s = time.monotonic() + timeout_s
        with contextlib.suppress(BrokenPipeError):  # the answer says why
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        while not select.select([self._process.stdout], [], [], CHECK_S)[0]:
            self._check_bounds(end_s, timeout_s, memory_bytes)
        answer = self._process.stdout.readline()
        if not answer:
            raise ProcessLost(explain_exit(self._process.wait()))
        return json.loads(answer)

    def measure_memory(self) -> int:
        """Bytes of memory that it has now; 0 if it does not run."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).memory_info().rss if self._process else 0
        return 0

    def _check_bounds(self, end_s: float, timeout_s: float, memory_bytes: int) -> None:
        if self.measure_memory() > memory_bytes:
            self.stop()
            raise ProcessLost(f"took more than {memory_bytes / 2**30:.1f} GiB of memory and was ended")
        if time.monotonic() > end_s:
            self.stop()
            raise ProcessLost(f"took longer than {timeout_s:.0f} s and was ended")

    def stop(self) -> None:
        """Kills it, if it runs, and waits until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):  # a request that never left
                    pipe.close()
            self._process = None


@contextlib.contextmanager
def run_bounded(module: str, log_path: str) -> Iterator[BoundedProcess]:
    """Starts the process, and stops it at the end; call it from a thread that outlives the block, as `run_tff`."""
    process = BoundedProcess(module, log_path)
    process.start()
    try:
        yield process
    finally:
        process.stop()


def open_answers() -> IO[str]:
    """In the process, before anything else: where answers go; what others print to stdout goes to the log from now on.

    If memory runs out, Linux ends this process before all others. A crash leaves no core file.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # macOS has no such file
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
    return answers


def serve_requests(answer: Callable[[Any], Any], answers: IO[str]) -> None:
    """In the process: answers requests until there are no more."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
