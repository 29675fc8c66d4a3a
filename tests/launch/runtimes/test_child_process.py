"""A module in a process that must not outlive the one that asked for it."""

import os
import signal
import subprocess
import sys

import pytest

from launch.runtimes.child_process import build_command, explain_exit

PROGRAM = """
import os, sys
if __name__ == "__main__":
    print(os.path.basename(sys.argv[0]), sys.argv[1:], flush=True)
    sys.exit(3)
"""


def run_program(tmp_path, command):
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    return ended.returncode, ended.stdout


def test_a_module_runs_as_by_python_m(tmp_path):
    command = build_command("program", "--a=1", "-m")
    assert run_program(tmp_path, command) == (3, "program.py ['--a=1', '-m']\n")
    assert run_program(tmp_path, [sys.executable, "-m", "program", "b"]) == (3, "program.py ['b']\n")


def test_nothing_runs_whose_parent_ended_before_the_death_signal_was_set(tmp_path):
    command = build_command("program")
    orphaned = [str(os.getpid() + 1) if part == str(os.getpid()) else part for part in command]
    assert run_program(tmp_path, orphaned) == (1, "")


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
