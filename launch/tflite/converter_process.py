"""Converts models in a process of its own, and runs each file there before it is trusted.

The TFLite converter crashes on some models, and takes all memory for others; the interpreter may end the process. Here
that is one line, and the other files are still made. Imports no TensorFlow.
"""

import contextlib
import json
import os
import pathlib
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import psutil

from files.reading import describe
from launch.runtimes.child_process import build_command, explain_exit
from models.model_names import ModelError

# A program of ours in a process of its own, with bounds on its memory and time: it may crash, and we go on.
#
# It answers requests one by one, each a line of JSON. It is started before it is needed, and again after it has died.
# Its stdout and stderr go to a log file. It lives in a session of its own, so Ctrl-C reaches only us, and it ends when
# we do, however that happens.

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
        # By turns, since nothing wakes us when its memory grows.
        while not select.select([self._process.stdout], [], [], CHECK_S)[0]:
            if self.measure_memory() > memory_bytes:
                self.stop()
                raise ProcessLost(f"took more than {memory_bytes / 2**30:.1f} GiB of memory and was ended")
            if time.monotonic() > end_s:
                self.stop()
                raise ProcessLost(f"took longer than {timeout_s:.0f} s and was ended")
        answer = self._process.stdout.readline()
        if not answer:
            raise ProcessLost(explain_exit(self._process.wait()))
        return json.loads(answer)

    def measure_memory(self) -> int:
        """Bytes of memory that it has now; 0 if it does not run."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).memory_info().rss if self._process else 0
        return 0

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


if TYPE_CHECKING:
    from models.tflite_converter import ConverterJob

MODULE = "launch.tflite.converter_process"
TIMEOUT_S = 1800.0  # measured: 1 s for a digits' student, 15 s for an LSTM of 500 steps, on a quiet core
MEMORY_BYTES = 8 * 2**30  # measured: 0.6 GiB for a digits' student, 1 GiB for an LSTM of 500 steps
MEMORY_PER_BYTE = 20  # of what is converted
FREE_SHARE = 0.8  # of the free memory, at most, beside what the process has already


class ConverterProcess:
    """The process.

    Args:
      process: that runs MODULE.
      folder: where files for it are put meanwhile.
    """

    def __init__(self, process: BoundedProcess, folder: pathlib.Path):
        self._process, self.folder = process, folder

    def convert(self, job: "ConverterJob") -> None:
        """Does a job of the converter, as `models.tflite_converter.run_converter` does.

        Raises:
          ModelError: the converter refuses the model, crashes, or goes beyond a bound; one line.
          OSError: the result cannot be written.
        """
        size_bytes = sum(path.stat().st_size for path in pathlib.Path(job.folder).rglob("*") if path.is_file())
        self._ask({"task": CONVERT, "job": job}, "the TFLite converter", size_bytes)

    def run_file(self, content: bytes, x: np.ndarray) -> np.ndarray:
        """What a file answers to preprocessed examples, asked in two orders; see `compute_in_two_orders`.

        Raises:
          ModelError: the interpreter crashes, or goes beyond a bound.
          OSError: the files for that cannot be written.
        """
        with tempfile.TemporaryDirectory(prefix="tflite_run_", dir=self.folder) as name:
            folder = pathlib.Path(name)
            # By files, since a request must fit into a pipe.
            (folder / FILE).write_bytes(content)
            np.save(folder / INPUTS, x)
            self._ask({"task": RUN, "folder": name}, "TFLite's interpreter", len(content))
            return np.load(folder / ANSWERS)

    def _ask(self, request: dict[str, Any], who: str, size_bytes: int) -> None:
        most_bytes = self._process.measure_memory() + int(FREE_SHARE * psutil.virtual_memory().available)
        bound_bytes = min(MEMORY_BYTES + MEMORY_PER_BYTE * size_bytes, most_bytes)
        try:
            answer = self._process.ask(request, TIMEOUT_S, bound_bytes)
        except ProcessLost as error:
            raise ModelError(f"{who} {error}") from None
        if "refused" in answer:
            raise ModelError(answer["refused"])
        if "failed" in answer:
            raise OSError(answer["failed"])


@contextlib.contextmanager
def run_converter_process(folder: pathlib.Path, log_path: str) -> Iterator[ConverterProcess]:
    """Starts the process; its files lie in `folder`, its output is appended to the log."""
    with run_bounded(MODULE, log_path) as process:
        yield ConverterProcess(process, folder)


# `python -m launch.tflite.converter_process` is the process that converts models and first runs each file.
#
# It answers requests of a `ConverterProcess`: {"task": ..., ...}. An answer is {} if it is done, or
# says what was wrong: {"refused": ...} for the model, {"failed": ...} for the disk.

CONVERT, RUN = "convert", "run"
FILE, INPUTS, ANSWERS = "file.tflite", "inputs.npy", "answers.npy"


def main() -> int:
    """Answers until there are no more requests."""
    answers = open_answers()
    from launch.runtimes.quick_import import import_quickly

    import_quickly("tensorflow")
    import models.tflite_converter  # noqa: F401  now, not when the first request has come

    serve_requests(answer_request, answers)
    return 0


def answer_request(request: Mapping[str, Any]) -> dict[str, str]:
    """Does a task: CONVERT with {"job": the fields of a ConverterJob}, or RUN, see `_run`."""
    try:
        if request["task"] == RUN:
            # FILE and INPUTS are in the folder; what the file answers goes into ANSWERS
            from launch.tflite.export_measurement import compute_in_two_orders

            folder = pathlib.Path(request["folder"])
            content, inputs = (folder / FILE).read_bytes(), np.load(folder / INPUTS)
            try:
                answers = compute_in_two_orders(content, inputs)
            except (RuntimeError, ValueError) as error:  # the interpreter's words for what it cannot do
                reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
                reason = reason.partition("Failed to apply the default")[0].rstrip(".")
                raise ModelError(
                    f"TFLite's interpreter cannot run it: {reason}; do that step with other operations"
                ) from error
            np.save(folder / ANSWERS, answers)
        else:
            from models.tflite_converter import ConverterJob, run_converter

            run_converter(ConverterJob(*request["job"]))
    except ModelError as error:
        return {"refused": str(error)}
    except OSError as error:
        path = error.filename or request.get("folder") or request["job"][0]  # a full disk's error names no file
        return {"failed": f"{path}: {describe(error)}"}
    return {}


if __name__ == "__main__":
    sys.exit(main())
