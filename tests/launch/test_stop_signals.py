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

from launch import stop_signals
from launch.command_line import run_main
from launch.runs.errors import RunStopped
from launch.stop_signals import StopSignal, as_stop_after_signal, get_stop_code, stop_on_signals

CHECK_S = 0.05
LONG_S = 10.0


def press(number=signal.SIGINT):
    """The signal comes while this runs, so that this raises the exception."""
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


@pytest.mark.parametrize("swallow", [swallow, swallow_in_a_collection, Pressed])
def test_a_signal_that_is_swallowed_ends_the_block_all_the_same(swallow, monkeypatch):
    # pytest's own hook reads source files to describe what was swallowed; on a busy machine the check came meanwhile.
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    start_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as raised, stop_on_signals(CHECK_S):
        swallow()
        time.sleep(LONG_S)
    assert get_stop_code(raised.value) == 130
    assert time.monotonic() - start_s < LONG_S / 2


def test_a_signal_that_is_swallowed_twice_ends_the_block():
    with pytest.raises(StopSignal), stop_on_signals(CHECK_S):
        swallow()
        with contextlib.suppress(BaseException):
            time.sleep(LONG_S)
        time.sleep(LONG_S)


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_have_their_exit_codes(number, exit_code):
    with pytest.raises(KeyboardInterrupt) as raised, stop_on_signals(CHECK_S):
        swallow(number)
        time.sleep(LONG_S)
    assert get_stop_code(raised.value) == exit_code


def test_what_is_done_on_the_way_out_is_not_disturbed():
    done = []
    with pytest.raises(RunStopped), stop_on_signals(CHECK_S):
        try:
            press()
        except KeyboardInterrupt:
            time.sleep(4 * CHECK_S)
            done.append("handled")
            raise RunStopped("what the command says", 130) from None
        finally:
            time.sleep(4 * CHECK_S)
            done.append("cleaned up")
    assert done == ["handled", "cleaned up"]


def test_a_second_signal_interrupts_what_is_done_on_the_way_out():
    with pytest.raises(StopSignal), stop_on_signals(LONG_S):
        try:
            press()
        finally:
            press()


def test_after_the_block_all_is_as_before():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with stop_on_signals(CHECK_S):
        swallow()
    time.sleep(4 * CHECK_S)  # no check comes any more
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stop_on_signals(CHECK_S):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_command_ends_in_one_line_when_a_signal_was_swallowed(capsys):
    def run(arguments):
        swallow()
        time.sleep(LONG_S)

    assert run_main(run, str, [], stopped="stopped by you") == 130
    assert capsys.readouterr() == ("", "stopped by you\n")


@pytest.mark.parametrize("raised", [ImportError("half"), SystemError("NULL"), SystemExit(1), ValueError()])
def test_what_a_signal_becomes_on_its_way_is_still_a_stop(raised, capsys):
    def run(arguments):
        with contextlib.suppress(KeyboardInterrupt):
            press(signal.SIGTERM)
        raise raised

    assert run_main(run, str, [], stopped="stopped by you") == 143
    assert capsys.readouterr() == ("", "stopped by you\n")


def test_a_command_that_says_how_to_go_on_keeps_its_words(capsys):
    def run(arguments):
        try:
            press()
        except KeyboardInterrupt as error:
            raise RunStopped("stopped; go on with: this", get_stop_code(error)) from None

    assert run_main(run, str, []) == 130
    assert capsys.readouterr().err == "stopped; go on with: this\n"


def test_without_a_signal_an_error_stays_what_it_is():
    with pytest.raises(ImportError), stop_on_signals(), as_stop_after_signal():
        raise ImportError
    with pytest.raises(ImportError), as_stop_after_signal():
        raise ImportError


LEAVES = """
import atexit, threading, time, sys
from launch.stop_signals import leave
atexit.register(lambda: print("handlers", "run"))
threading.Thread(target=time.sleep, args=(60,)).start()
print("said", end=" ")
leave(130)
"""


def test_leaving_after_a_signal_waits_for_no_thread_and_loses_no_output():
    ended = subprocess.run([sys.executable, "-c", LEAVES], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "said handlers run\n", "")


def test_ctrl_c_before_a_command_has_begun_is_one_line():
    module = "import sys; sys.argv = ['-m']; import launch, os, signal, time; os.kill(os.getpid(), 2); time.sleep(10)"
    ended = subprocess.run([sys.executable, "-c", module], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "stopped\n")


def test_whoever_imports_the_package_keeps_their_handlers():
    module = "import signal; before = signal.getsignal(2); import launch.train; print(signal.getsignal(2) is before)"
    assert subprocess.run([sys.executable, "-c", module], capture_output=True, text=True, timeout=60).stdout == "True\n"


@pytest.mark.parametrize(("raised", "said"), [(KeyboardInterrupt(), ""), (RunStopped("stopped", 143), "")])
def test_a_run_of_a_sweep_leaves_it_to_the_sweep_to_say_that_it_was_stopped(raised, said, capsys, monkeypatch):
    def run(arguments):
        raise raised

    monkeypatch.setattr(stop_signals, "IS_SAID", False)
    assert run_main(run, str, []) == get_stop_code(raised)
    assert capsys.readouterr().err == said
    assert run_main(lambda arguments: fail(), str, []) == 1
    assert capsys.readouterr().err == "error: the disk is full\n"


def fail():
    raise RunStopped("error: the disk is full", 1)
