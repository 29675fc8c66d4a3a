"""A script that becomes another program, which the kernel kills when the process that asked for it ends.

`python -I -S child_process.py PARENT_PID BINARY ARGUMENT...`

The death signal must be set in the child itself. A `preexec_fn` could do so, but would run Python code in the forked
copy of a process full of threads, where any lock may be held for ever. So this tiny program stands in between.
"""

import ctypes
import os
import signal
import sys

LAUNCHER = os.path.abspath(__file__)
PR_SET_PDEATHSIG = 1  # linux/prctl.h; survives exec


def die_with(parent_pid: int) -> None:
    """Asks the kernel for SIGKILL when the parent ends; exits 1 if it has ended already."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"prctl(PR_SET_PDEATHSIG) failed: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent_pid:  # it ended before the signal was set, so nothing would ever kill us
        sys.exit(1)


def become(command: list[str]) -> None:
    """Turns into `command`; exits 127 if it cannot run."""
    try:
        os.execv(command[0], command)
    except OSError as error:
        print(f"cannot run {command[0]}: {error.strerror}", flush=True)
        sys.exit(127)


def explain_exit(returncode: int) -> str:
    """How a child ended, to go on after its name."""
    if returncode == -signal.SIGKILL:
        return "was killed by SIGKILL, probably because memory ran out"
    if returncode < 0:
        return f"crashed with {signal.Signals(-returncode).name}"
    return f"ended with exit code {returncode}"


if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    become(sys.argv[2:])
