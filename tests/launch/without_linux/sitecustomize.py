"""Python on the PYTHONPATH of this folder has nothing of Linux that macOS lacks, as far as it can be taken away.

What TensorFlow's own C++ asks for stays.
"""

import ctypes
import os
import resource
import select
import signal
import sys

LACKING = {
    os: (
        *("copy_file_range", "eventfd", "fdatasync", "getrandom", "getresgid", "getresuid", "getxattr", "listxattr"),
        *("memfd_create", "pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate", "removexattr", "setresgid"),
        *("sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_setaffinity", "sched_setparam"),
        *("setresuid", "setxattr", "splice", "waitid", "O_DIRECT", "O_LARGEFILE", "O_NOATIME", "O_PATH", "O_RSYNC"),
        *("O_TMPFILE",),
    ),
    resource: ("prlimit",),
    select: ("epoll",),
    signal: ("pidfd_send_signal", "sigtimedwait", "sigwaitinfo"),
}
for module, names in LACKING.items():
    for name in names:
        vars(module).pop(name, None)

find_symbol = ctypes.CDLL.__getattr__


def find_other_symbol(library, name):
    """As `CDLL.__getattr__`, without the calls that the kernel of macOS does not have."""
    if name in ("prctl", "unshare"):
        raise AttributeError(name)
    return find_symbol(library, name)


def refuse_proc(event, arguments):
    """Raises FileNotFoundError where Python opens a file that tells of the processor or of this process."""
    if event == "open" and str(arguments[0]).startswith(("/proc/cpuinfo", "/proc/self/", "/sys/")):
        raise FileNotFoundError(2, "No such file or directory", arguments[0])


ctypes.CDLL.__getattr__ = find_other_symbol
sys.addaudithook(refuse_proc)
