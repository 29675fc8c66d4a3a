"""A script that runs a command and says what it and all its descendants cost.

`python -I -S timed_command.py PARENT_PID ANSWER_FD COMMAND ARGUMENT...`

The answer is a line of JSON on the file descriptor: `exit_code` (negative: killed by that signal), `wall_s` from the
command's start to its end, `peak_bytes`, the most memory of the command or of a process that it waited for, and
`cpu_s`, user and system, of all processes. Those that outlive the command become
children of this process, so their time counts, too; after a while they are killed. If the process that asked ends, the
kernel kills this one and the command.
"""

import contextlib
import ctypes
import glob
import json
import os
import pathlib
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
ORPHANS_LIMIT_S = 10.0
POLL_S = 0.05


def main(parent_pid: int, answer_fd: int, command: list[str]) -> None:
    """Runs the command and answers; exits 1 if the parent is gone already."""
    set_process(PR_SET_PDEATHSIG, signal.SIGKILL)
    set_process(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent_pid:
        sys.exit(1)
    os.set_inheritable(answer_fd, False)
    start = time.perf_counter()
    pid = start_command(command)
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.perf_counter() - start
    cpu_s = usage.ru_utime + usage.ru_stime + wait_for_orphans()
    answer = {"exit_code": os.waitstatus_to_exitcode(status), "wall_s": wall_s, "cpu_s": cpu_s}
    answer["peak_bytes"] = usage.ru_maxrss * 1024  # in KiB on Linux
    os.write(answer_fd, f"{json.dumps(answer)}\n".encode())


def set_process(option: int, value: int) -> None:
    """Sets an attribute of this process; exits if the kernel refuses."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        sys.exit(f"prctl({option}) failed: {os.strerror(ctypes.get_errno())}")


def start_command(command: list[str]) -> int:
    """Starts the command as a child that dies with this process; returns its process number."""
    own_pid = os.getpid()
    pid = os.fork()  # this process has one thread, so its copy may run Python
    if pid:
        return pid
    try:
        set_process(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == own_pid:
            os.execv(command[0], command)
    except OSError as error:
        print(f"cannot run {command[0]}: {error.strerror}", flush=True)
    finally:
        os._exit(127)


def wait_for_orphans() -> float:
    """Waits for what the command has left running, kills it after `ORPHANS_LIMIT_S`; returns its CPU seconds."""
    deadline, cpu_s = time.monotonic() + ORPHANS_LIMIT_S, 0.0
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
            if pid:
                cpu_s += usage.ru_utime + usage.ru_stime
                continue
            if time.monotonic() > deadline:
                kill_children()
            time.sleep(POLL_S)
    return cpu_s


def kill_children() -> None:
    """Kills the children of this process."""
    for path in glob.glob("/proc/self/task/*/children"):
        for pid in pathlib.Path(path).read_text("ascii").split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
