"""Ctrl-C, SIGTERM and SIGHUP end a block, also where the code that they interrupt throws the exception away.

Python raises KeyboardInterrupt wherever the main thread happens to be, and some of these places swallow it: a bare
`except:` around an import (TensorFlow Lite has many), a callback of the garbage collector (JAX sets one), a finalizer.
A program that was just loading TensorFlow then went on as if nothing had been pressed. So a watchdog checks whether the
exception is on its way out of the block, and if it is not, it is raised again. Other code turns it into an exception
of its own, such as an ImportError, which then stands for the signal.
"""

import _thread
import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from launch import end_at_once

IS_SAID = True  # whether a command says that it was stopped; not if whoever started it says so for both
CHECK_S = 2.0  # the longest that a swallowed signal stays without effect


class StopSignal(KeyboardInterrupt):
    """What the signals raise. SIGTERM and SIGHUP end a command as Ctrl-C does, with an exit code of their own."""

    def __init__(self, number: int):
        super().__init__()
        self.exit_code = 128 + number


def get_stop_code(error: KeyboardInterrupt) -> int:
    """The exit code after Ctrl-C, SIGTERM or SIGHUP."""
    return getattr(error, "exit_code", 130)


_stoppers: list["_Stopper"] = []  # of the blocks that are entered, the innermost last


@contextlib.contextmanager
def stop_on_signals(check_s: float = CHECK_S) -> Iterator[None]:
    """Raises StopSignal on Ctrl-C, SIGTERM and SIGHUP inside the block, except where they are ignored, as under nohup.

    Does nothing outside of the main thread. After `check_s` seconds a watchdog checks whether the exception has
    been swallowed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    defaults = {
        signal.SIGINT: (signal.default_int_handler, end_at_once),
        signal.SIGTERM: (signal.SIG_DFL,),
        signal.SIGHUP: (signal.SIG_DFL,),
    }
    stopper = _Stopper(check_s)
    replaced = [number for number, usual in defaults.items() if signal.getsignal(number) in usual]
    before = {number: signal.signal(number, stopper.handle) for number in replaced}
    _stoppers.append(stopper)
    try:
        with as_stop_after_signal():
            yield
    finally:
        _stoppers.remove(stopper)
        stopper.end()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def as_stop_after_signal() -> Iterator[None]:
    """Raises StopSignal in place of what the block raises after a signal, unless that has the signal's exit code.

    Does nothing outside of `stop_on_signals`.
    """
    try:
        yield
    except BaseException as error:
        stop = _stoppers[-1].stop if _stoppers else None
        if stop is None or getattr(error, "exit_code", None) == stop.exit_code:
            raise
        raise stop from None


def leave(exit_code: int) -> NoReturn:
    """Ends the process as `sys.exit` does; after a signal without waiting for other threads.

    These may be inside TensorFlow, compiling a graph. If they come back while Python ends, the process aborts.
    """
    if exit_code < 128:
        sys.exit(exit_code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or never there
            stream.flush()
    os._exit(exit_code)


class _Stopper:
    """Raises the exception, and has itself called again and again to see whether that is on its way."""

    def __init__(self, check_s: float):
        self._check_s = check_s
        self._has_ended = False
        self._is_checked = False
        self._is_check = False
        self._sending = threading.Lock()
        self.stop: StopSignal | None = None  # what has been raised

    def handle(self, number: int, frame: FrameType | None) -> None:
        is_check, self._is_check = self._is_check, False
        if is_check and (self._has_ended or _is_stopping()):
            return
        if not self._is_checked:
            self._is_checked = True
            # Not by `threading`, whose lock the interrupted code may hold.
            _thread.start_new_thread(self._check, (number,))
        self.stop = StopSignal(number)
        raise self.stop

    def _check(self, number: int) -> None:
        while True:
            time.sleep(self._check_s)
            with self._sending:
                if self._has_ended:
                    return
                self._is_check = True
                signal.pthread_kill(threading.main_thread().ident, number)

    def end(self) -> None:
        """No more checks: after this, none may reach the handlers from before the block."""
        self._has_ended = True
        with self._sending:
            pass


def _is_stopping() -> bool:
    """Whether what runs now was called to handle the exception: a `finally`, or a context manager's end."""
    handled = sys.exc_info()[1]
    while handled is not None and not isinstance(handled, StopSignal):
        handled = handled.__context__
    return handled is not None
