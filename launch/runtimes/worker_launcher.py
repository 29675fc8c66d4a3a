"""A script that becomes another program, which the kernel kills when the process that asked for it ends.

`python -I -S worker_launcher.py PARENT_PID BINARY ARGUMENT...`

The death signal must be set in the child itself. A `preexec_fn` could do so, but would run Python code in the forked
copy of a process full of threads, where any lock may be held for ever. So this tiny program stands in between.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h; survives exec


def die_with(parent_pid: int, signal_number: int = signal.SIGKILL) -> None:
    """Asks the kernel for a signal when the parent ends; exits 1 if it has ended already."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0) != 0:
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


if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    become(sys.argv[2:])
