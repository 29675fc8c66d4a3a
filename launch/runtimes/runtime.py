"""What all runtimes have in common. Imports neither TensorFlow nor TFF until `quiet_tensorflow` is entered."""

import contextlib
import dataclasses
import logging
import os
import sys
import tempfile
from collections.abc import Iterator

import psutil

from launch.runtimes import eager_tensors
from launch.runtimes.quick_import import import_quickly

READY_TIMEOUT_S = 30.0


class WorkerError(RuntimeError):
    """What computes did not start, died, or could not finish a computation. The message is one line.

    Attributes:
      log_tail: the last lines of its log; "" if there are none.
    """

    def __init__(self, message: str, log_tail: str = ""):
        super().__init__(message)
        self.log_tail = log_tail


@dataclasses.dataclass(frozen=True)
class Runtime:
    """What computes, as far as all runtimes have it.

    Attributes:
      worker_pid: the process number of TFF's worker; None without one.
    """

    worker_pid: int | None = None

    def worker_memory_bytes(self) -> int:
        """Resident memory of the worker; 0 without one, or if it has just died."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.worker_pid).memory_info().rss if self.worker_pid else 0
        return 0


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
        eager_tensors.set_nothing_aside()
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
