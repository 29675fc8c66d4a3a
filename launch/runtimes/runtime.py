"""What all runtimes have in common. Imports neither TensorFlow nor TFF until `quiet_tensorflow` is entered."""

import contextlib
import ctypes
import dataclasses
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator

import psutil

from launch.runtimes.quick_import import import_quickly

READY_TIMEOUT_S = 30.0
# Descriptor 2 is the whole program's: two blocks that overlap would leave it where the first one had sent it.
_quiet = threading.RLock()
_num_quiet = 0  # blocks that are entered
_forked_from = 0  # the process that had TensorFlow's threads, of which this one has none; 0 where there is no such


class WorkerError(RuntimeError):
    """What computes did not start, died, or could not finish a computation. The message is one line.

    Attributes:
      log_tail: the last lines of its log; "" if there are none.
    """

    def __init__(self, message: str, log_tail: str = ""):
        super().__init__(message)
        self.log_tail = log_tail


class ComputationError(WorkerError):
    """An operation refused the numbers that it got, as an assertion of a user's model does: to go on would not help."""


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


def check_not_forked() -> None:
    """Raises WorkerError in a process that was forked from one in which TensorFlow had begun to compute.

    A fork copies no threads, so that TensorFlow, which waits for its own, would hang for ever.
    """
    if _forked_from:
        raise WorkerError(
            f"TensorFlow runs in process {_forked_from}, which this one was forked from, and cannot go on here; start "
            f'processes by multiprocessing.get_context("spawn"), or fork before the first run'
        )


def _note_fork() -> None:
    """In a child: whether its parent had what a fork breaks."""
    global _forked_from
    context = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
    if _num_quiet or getattr(context, "_initialized", False):  # not what imported TensorFlow and no more
        _forked_from = _forked_from or os.getppid()


os.register_at_fork(after_in_child=_note_fork)

TEMPORARY_BYTES = 2**20  # what its libraries write there at least: the source of what AutoGraph makes


@contextlib.contextmanager
def quiet_tensorflow(log_path: str) -> Iterator[None]:
    """Imports TensorFlow; what its libraries print to stderr on loading, and in the block, goes to `log_path` instead.

    Later messages of its C++ code are switched off, unless TF_CPP_MIN_LOG_LEVEL is set already: errors reach Python
    anyway. Notices of deprecation are switched off, too: Keras's own layers cause them whenever TFF traces them. Of
    several threads one is in such a block at a time.

    Raises:
      WorkerError: see `check_not_forked`.
    """
    global _num_quiet
    check_not_forked()
    check_temporary_folder()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _quiet:
        _num_quiet += 1
        sys.stderr.flush()
        # The libraries write to file descriptor 2 itself, so that replacing `sys.stderr` would not catch it.
        stderr_copy = os.dup(2)
        try:
            with open(log_path, "ab") as log:
                os.dup2(log.fileno(), 2)
            import_quickly("tensorflow")
            set_nothing_aside()
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stderr_copy, 2)
            os.close(stderr_copy)
            _num_quiet -= 1
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


@contextlib.contextmanager
def limit_time(timeout_s: float) -> Iterator[None]:
    """Raises TimeoutError in a block that would wait for ever, after so many seconds. For the main thread only."""

    def give_up(signal_number, frame):
        raise TimeoutError(f"not ready within {timeout_s:g} s")

    # The alarm is that of `stop_on_signals` as well, whose handler comes back at the end.
    previous = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


# Lets TensorFlow's eager tensors leave no memory behind. Imports TensorFlow only when it is asked to.
#
# When `object.__new__` makes an object, Python 3.11 sets memory aside for its attributes. TensorFlow 2.14 has code of
# its own for the end of a tensor, which does not free that memory: 48 bytes a tensor, for good. A round of FedAvg on
# digits made 190 of them (9 kB), one of SCAFFOLD with five clients 680.

_PYTHON = (3, 11)
_NEW_SLOT = 65  # Py_tp_new, a number of Python's stable interface
_NEW_OFFSET = 312  # of tp_new in a PyTypeObject of 64 bits, in bytes


def set_nothing_aside() -> None:
    """Has eager tensors made without memory for attributes; one that is given an attribute still gets a dict for it.

    They are made by Python's own `PyType_GenericNew` from now on, which does no more than to allocate an object. Where
    Python is another, or a type does not lie in memory as expected, nothing is done.
    """
    if sys.version_info[:2] != _PYTHON:
        return
    from tensorflow.python.framework.ops import EagerTensor

    get_slot = ctypes.pythonapi.PyType_GetSlot
    get_slot.restype, get_slot.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_int)
    slot = ctypes.c_void_p.from_address(id(EagerTensor) + _NEW_OFFSET)
    if slot.value == get_slot(EagerTensor, _NEW_SLOT) == get_slot(object, _NEW_SLOT):
        slot.value = ctypes.cast(ctypes.pythonapi.PyType_GenericNew, ctypes.c_void_p).value
