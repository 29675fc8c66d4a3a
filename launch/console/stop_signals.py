"""Ctrl-C, SIGTERM and SIGHUP end a block, also where the code that they interrupt throws the exception away.

Python raises KeyboardInterrupt wherever the main thread happens to be, and some of these places swallow it: a bare
`except:` around an import (TensorFlow Lite has many), a callback of the garbage collector (JAX sets one), a finalizer.
A program that was just loading TensorFlow then went on as if nothing had been pressed. So after a signal an alarm rings
every `CHECK_S` seconds, and raises the exception again unless it is on its way out of the block. Other code turns it
into an exception of its own, such as an ImportError, which then stands for the signal.
"""

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

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


_stop: StopSignal | None = None  # what a signal has raised in the block


@contextlib.contextmanager
def stop_on_signals() -> Iterator[None]:
    """Raises StopSignal on Ctrl-C, SIGTERM and SIGHUP inside the block, except where they are ignored, as under nohup.

    Does nothing outside of the main thread.
    """
    global _stop
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = (signal.SIG_DFL, signal.default_int_handler)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    before = {number: signal.getsignal(number) for number in numbers if signal.getsignal(number) in usual}
    for number in before:
        signal.signal(number, _handle)
    try:
        with as_stop_after_signal():
            yield
    finally:
        if before:  # of blocks in each other the outermost has set the handlers
            _stop = None
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _handle(number: int, frame: FrameType | None) -> None:
    global _stop
    if number != signal.SIGALRM:
        _stop = StopSignal(number)
        # Again and again, since the exception of a check may be swallowed as well.
        signal.setitimer(signal.ITIMER_REAL, CHECK_S, CHECK_S)
    elif _stop is None or _is_stopping():
        return
    raise _stop


def _is_stopping() -> bool:
    """Whether what runs now was called to handle the exception: a `finally`, or a context manager's end."""
    handled = sys.exc_info()[1]
    while handled is not None and not isinstance(handled, StopSignal):
        handled = handled.__context__
    return handled is not None


@contextlib.contextmanager
def as_stop_after_signal() -> Iterator[None]:
    """Raises StopSignal in place of what the block raises after a signal, unless that has the signal's exit code.

    Does nothing outside of `stop_on_signals`.
    """
    try:
        yield
    except BaseException as error:
        if _stop is None or getattr(error, "exit_code", None) == _stop.exit_code:
            raise
        raise _stop from None


def leave(exit_code: int) -> NoReturn:
    """Ends the process as `sys.exit` does, but takes no modules apart; after a signal without waiting for threads.

    Python needs more than a second to take TensorFlow and TFF apart, and nobody needs that. Threads may be inside
    TensorFlow, compiling a graph. If they come back while Python ends, the process aborts.
    """
    if exit_code < 128:
        if sys.getprofile() or sys.gettrace():
            sys.exit(exit_code)  # what watches the program has yet to say what it saw
        threading._shutdown()
    # os._exit runs no handlers of a program's end.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or never there
            stream.flush()
    os._exit(exit_code)
