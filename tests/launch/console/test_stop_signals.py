"""A signal ends the block that it comes in, once, also where the code that it interrupts swallows the exception."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from launch.command_line import run_main
from launch.console import stop_signals
from launch.console.stop_signals import StopSignal, as_stop_after_signal, get_stop_code, stop_on_signals
from launch.runs.errors import RunStopped

CHECK_S = 0.05
LONG_S = 10.0
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


@pytest.fixture(autouse=True)
def checks_come_soon(monkeypatch):
    monkeypatch.setattr(stop_signals, "CHECK_S", CHECK_S)
    # pytest's own hook reads source files to describe what was swallowed; on a busy machine the check came meanwhile.
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)


def press(number=signal.SIGINT):
    """The signal comes while this runs, so that this raises the exception; None: what a check raises comes."""
    if number is not None:
        signal.pthread_kill(threading.main_thread().ident, number)
    time.sleep(LONG_S)


def swallow(number=signal.SIGINT):
    with contextlib.suppress(BaseException):
        press(number)


def swallow_in_a_collection():
    """JAX has a callback of the garbage collector; Python goes on after an exception in one."""

    def callback(phase, info):
        gc.callbacks.remove(callback)
        press()

    gc.callbacks.append(callback)
    gc.collect()


class Pressed:
    def __del__(self):
        press()


@pytest.mark.parametrize(
    ("swallow", "exit_code"),
    [
        (lambda: [swallow(), swallow(None)], 130),
        (swallow_in_a_collection, 130),
        (Pressed, 130),
        (lambda: swallow(signal.SIGTERM), 143),
        (lambda: swallow(signal.SIGHUP), 129),
    ],
    ids=["twice", "collection", "finalizer", "SIGTERM", "SIGHUP"],
)
def test_a_signal_that_is_swallowed_ends_the_command_all_the_same(swallow, exit_code, capsys):
    def run(arguments):
        swallow()
        time.sleep(LONG_S)

    start_s = time.monotonic()
    assert run_main(run, str, [], stopped="stopped by you") == exit_code
    assert capsys.readouterr() == ("", "stopped by you\n")
    assert time.monotonic() - start_s < LONG_S, "it was not noticed that it was swallowed"


def test_what_is_done_on_the_way_out_is_not_disturbed_and_a_command_keeps_its_words(capsys):
    def run(arguments):
        try:
            press()
        except KeyboardInterrupt as error:
            time.sleep(4 * CHECK_S)
            raise RunStopped("stopped; go on with: this", get_stop_code(error)) from None
        finally:
            time.sleep(4 * CHECK_S)
            print("cleaned up")

    assert run_main(run, str, []) == 130
    assert capsys.readouterr() == ("cleaned up\n", "stopped; go on with: this\n")


def test_a_second_signal_interrupts_the_way_out_what_is_ignored_stays_so_and_after_the_block_all_is_as_before():
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    before = list(map(signal.getsignal, NUMBERS))
    with pytest.raises(StopSignal), stop_on_signals():
        os.kill(os.getpid(), signal.SIGHUP)  # as under nohup
        try:
            press()
        finally:
            press()
    time.sleep(4 * CHECK_S)  # no check comes any more
    assert list(map(signal.getsignal, NUMBERS)) == before
    signal.signal(signal.SIGHUP, ignored)


@pytest.mark.parametrize("raised", [ImportError("half"), SystemError("NULL"), SystemExit(1), ValueError()])
def test_what_a_signal_becomes_on_its_way_is_still_a_stop(raised, capsys):
    def run(arguments):
        with contextlib.suppress(KeyboardInterrupt):
            press(signal.SIGTERM)
        raise raised

    assert run_main(run, str, [], stopped="stopped by you") == 143
    assert capsys.readouterr() == ("", "stopped by you\n")
    with pytest.raises(type(raised)), stop_on_signals(), as_stop_after_signal():  # without a signal it stays itself
        raise raised


LEAVES = """
import atexit, threading, time, sys
from launch.console.stop_signals import leave
atexit.register(lambda: print("handlers", "run"))
threading.Thread(target=time.sleep, args=(60,)).start()
print("said", end=" ")
leave(130)
"""
ENDS = """
import atexit, threading, time, sys
from launch.console.stop_signals import leave

def work():
    time.sleep(0.2)
    print("waited", end=" ")

atexit.register(lambda: print("handlers run"))
threading.Thread(target=work).start()
{profiler}
try:
    leave(3)
finally:
    print("seen", end=" ")
"""
WATCHED = "sys.setprofile(lambda *_: None)"
PRESSED_EARLY = "import sys; sys.argv = ['-m']; import launch, os, time; os.kill(os.getpid(), 2); time.sleep(10)"
IMPORTS = "import signal; before = signal.getsignal(2); import launch.train; print(signal.getsignal(2) is before)"


@pytest.mark.parametrize(
    ("program", "exit_code", "said"),
    [
        pytest.param(LEAVES, 130, "said handlers run\n", id="leaving after a signal waits for no thread"),
        pytest.param(ENDS.format(profiler=""), 3, "waited handlers run\n", id="else it does, and nothing else"),
        pytest.param(ENDS.format(profiler=WATCHED), 3, "seen waited handlers run\n", id="but under a profiler"),
        pytest.param(PRESSED_EARLY, -2, "", id="Ctrl-C before it has begun"),
        pytest.param(IMPORTS, 0, "True\n", id="who imports the package keeps the handlers"),
    ],
)
def test_a_program(program, exit_code, said):
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (exit_code, said, "")


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), RunStopped("stopped", 143), RunStopped("error: full", 1)])
def test_a_run_of_a_sweep_leaves_it_to_the_sweep_to_say_that_it_was_stopped(raised, capsys, monkeypatch):
    def run(arguments):
        raise raised

    monkeypatch.setattr(stop_signals, "IS_SAID", False)
    exit_code = get_stop_code(raised)
    assert run_main(run, str, []) == exit_code
    assert capsys.readouterr().err == ("error: full\n" if exit_code == 1 else "")
