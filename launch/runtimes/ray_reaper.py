"""A script that ends a Ray of a run's own, and removes its folder, when the run ends, however that ends.

`python -I -S ray_reaper.py VARIABLE FOLDER < PIPE`

Nothing is written into the pipe. It ends when whoever holds its other end closes it, or dies. Ray's processes end by
themselves then, but not all at once: after a SIGKILL of the run, two of them go on for a minute. So those that still
live some seconds later are killed. Ray's processes are those that have VARIABLE=FOLDER in their environment.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import sys
import time

GRACE_S = 3.0  # Ray gives its own processes one second
KILL_TIMEOUT_S = 20.0  # for the kernel, to end what was killed


def find_marked(variable: str, value: str) -> list[int]:
    """Descriptors of the living processes that have this variable in their environment; close them."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        descriptor = -1
        try:
            descriptor = os.pidfd_open(int(folder.name))  # from now on its number cannot become another's unnoticed
            mark = os.fsencode(f"{variable}={value}")
            if mark in (folder / "environ").read_bytes().split(b"\0"):  # empty for one that has ended
                found.append(descriptor)
                continue
        except OSError:  # it has gone, or is another user's
            pass
        if descriptor != -1:
            os.close(descriptor)
    return found


def end_marked(variable: str, value: str, grace_s: float) -> None:
    """Waits for the end of these processes, and brings it about when the grace is over."""
    start_s = time.monotonic()
    while (waited_s := time.monotonic() - start_s) < grace_s + KILL_TIMEOUT_S:
        processes = find_marked(variable, value)
        for process in processes:
            if waited_s >= grace_s:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
            os.close(process)
        if not processes:
            return
        time.sleep(0.05)


if __name__ == "__main__":
    sys.stdin.read()
    end_marked(sys.argv[1], sys.argv[2], GRACE_S)
    shutil.rmtree(sys.argv[2], ignore_errors=True)
