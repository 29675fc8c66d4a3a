"""The script between us and a program that must not outlive us."""

import os
import signal
import subprocess
import sys

import pytest

from launch.runtimes.child_process import LAUNCHER, explain_exit


def launch(parent_pid, *command):
    arguments = [sys.executable, "-I", "-S", LAUNCHER, str(parent_pid), *command]
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    return ended.returncode, ended.stdout


def test_it_becomes_the_program():
    assert launch(os.getpid(), "/bin/echo", "yes") == (0, "yes\n")


def test_a_program_whose_parent_ended_before_the_death_signal_was_set_does_not_start():
    assert launch(os.getpid() + 1, "/bin/echo", "no") == (1, "")


def test_a_program_that_cannot_run_is_named():
    assert launch(os.getpid(), "/no/program") == (127, "cannot run /no/program: No such file or directory\n")


@pytest.mark.parametrize(
    ("returncode", "words"),
    [
        (3, "ended with exit code 3"),
        (-signal.SIGSEGV, "crashed with SIGSEGV"),
        (-signal.SIGKILL, "was killed by SIGKILL, probably because memory ran out"),
    ],
)
def test_an_end_is_explained(returncode, words):
    assert explain_exit(returncode) == words
