"""Converts models in a process of its own, and runs each file there before it is trusted.

The TFLite converter crashes on some models, and takes all memory for others; the interpreter may end the process. Here
that is one line, and the other files are still made. Imports no TensorFlow.
"""

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from launch.tflite.bounded_process import BoundedProcess, ProcessLost, run_bounded
from launch.tflite.converter_main import ANSWERS, CONVERT, FILE, INPUTS, RUN
from models.model_names import ModelError

if TYPE_CHECKING:
    from models.tflite_converter import ConverterJob

MODULE = "launch.tflite.converter_main"
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
