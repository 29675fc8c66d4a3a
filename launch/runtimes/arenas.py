"""Gives each thread of this process memory of its own to allocate from, where the C library is glibc.

glibc hands out memory from *arenas*, at most 8 a core, and deals them to threads in turn. TensorFlow's pools have more
threads than that. Two threads that compute may then share an arena: they wait for its lock, and for pages that the
other has just given back. Whether it comes to that depends on how many threads there are, so that of eight processes
of the same run six were slow.

A round of the benchmark's FedAvg on 2 cores of a Xeon took 1.32 to 1.43 s in a slow process, with 10,500 voluntary
context switches and 0.15 s of system time, and 1.03 to 1.07 s in a quick one, with 145 and 0.01 s. A round of FedCD on
digits took 0.222 and 0.076 s. A limit of 2, 3, 8 or 17 arenas happened to be quick as well, 16 and 1 were not: only a
limit above the number of threads is no gamble. Results and peak memory stay as they are.
"""

import ctypes
import os

MAX_ARENAS = 512  # a process of ours has fewer threads on any machine but the largest; an arena not used takes nothing
VARIABLE = "MALLOC_ARENA_MAX"  # glibc's own, read at the start of a process; for a process that starts without us
_M_ARENA_MAX = -8  # malloc.h


def allow_many_arenas() -> bool:
    """Raises the limit of this process. Call it before a second thread computes: glibc looks at the limit once.

    Later, or with another C library, it does nothing. A limit that the user has set stays.

    Returns:
      Whether glibc took it.
    """
    if VARIABLE in os.environ or "arena_max" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        os.confstr("CS_GNU_LIBC_VERSION")  # of glibc alone
        return ctypes.CDLL(None).mallopt(_M_ARENA_MAX, MAX_ARENAS) == 1
    except (AttributeError, OSError, ValueError):
        return False
