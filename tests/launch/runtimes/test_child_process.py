"""A module in a process that must not outlive the one that asked for it."""

import os
import signal
import subprocess

import pytest

from launch.runtimes.child_process import build_command, explain_exit

PROGRAM = """
import os, sys
if __name__ == "__main__":
    print(os.path.basename(sys.argv[0]), sys.argv[1:], flush=True)
    sys.exit(3)
"""


@pytest.mark.parametrize(("is_orphaned", "expected"), [(False, (3, "program.py ['--a=1', '-m']\n")), (True, (1, ""))])
def test_a_module_runs_as_by_python_m_but_not_where_the_parent_ended_before(tmp_path, is_orphaned, expected):
    """Before the death signal was set, so that nothing would ever end it."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = build_command("program", "--a=1", "-m")
    if is_orphaned:
        command[command.index(str(os.getpid()))] = str(os.getpid() + 1)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert (ended.returncode, ended.stdout) == expected


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
