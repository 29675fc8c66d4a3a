"""Runs a module as `python -m` does, in a process that does not outlive the one that asked for it.

`python -m launch.runtimes.child_process PARENT_PID MODULE ARGUMENT...`

The death signal must be set in the child itself. A `preexec_fn` could do so, but would run Python code in the forked
copy of a process full of threads, where any lock may be held for ever.
"""

import ctypes
import os
import runpy
import signal
import sys
import threading
import time
from typing import NoReturn

PR_SET_PDEATHSIG = 1  # linux/prctl.h; survives exec
CHECK_S = 0.5


def build_command(module: str, *arguments: str) -> list[str]:
    """The command line of a child of this process that runs a module."""
    return [sys.executable, "-m", "launch.runtimes.child_process", str(os.getpid()), module, *arguments]


def set_death_signal() -> bool:
    """Whether the kernel will send SIGKILL when the thread that started this process ends; not on macOS."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    return prctl is not None and prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0


def die_with(parent_pid: int) -> None:
    """Ends this process when its parent ends, however that happens; exits 1 at once if it has ended already.

    Where the kernel does not see to it, a thread does, and may take as long as a call that keeps Python from switching
    threads.
    """
    if not set_death_signal():
        threading.Thread(target=_watch, args=(parent_pid,), daemon=True).start()
    leave_if_orphaned(parent_pid)


def leave_if_orphaned(parent_pid: int) -> None:
    """Exits 1 if the parent has ended: before the signal was set, so nothing would ever kill us."""
    if os.getppid() != parent_pid:
        sys.exit(1)


def _watch(parent_pid: int) -> NoReturn:
    while os.getppid() == parent_pid:
        time.sleep(CHECK_S)
    os.kill(os.getpid(), signal.SIGKILL)


def explain_exit(returncode: int) -> str:
    """How a child ended, to go on after its name."""
    if returncode == -signal.SIGKILL:
        return "was killed by SIGKILL, probably because memory ran out"
    if returncode < 0:
        return f"crashed with {signal.Signals(-returncode).name}"
    return f"ended with exit code {returncode}"


def main(parent_pid: int, module: str, arguments: list[str]) -> None:
    """Runs the module."""
    die_with(parent_pid)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
