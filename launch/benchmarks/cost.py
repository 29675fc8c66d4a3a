"""What a round costs: seconds, and what the kernel counts meanwhile. Imports no TensorFlow.

A process that is slower than another of the same work shows it by more context switches, page faults or system time.
"""

import contextlib
import pathlib
from typing import NamedTuple

import psutil


class Cost(NamedTuple):
    """What a round took, of the peer's process and all below it.

    Attributes:
      wall_s: seconds on the clock.
      cpu_s: seconds of the processors.
      system_s: those of them that the kernel worked for it.
      switches: how often a thread that still lives stopped to wait; 0 where the kernel does not tell.
      faults: how often a page of memory had to be found; 0 where the kernel does not tell.
      memory_bytes: the most memory that its processes had until then, each at its own time.
    """

    wall_s: float
    cpu_s: float
    system_s: float = 0.0
    switches: int = 0
    faults: int = 0
    memory_bytes: int = 0


def read_cost(wall_s: float) -> Cost:
    """What this process and those below it that still live have taken until now, `wall_s` seconds on the clock."""
    this, costs = psutil.Process(), []
    for process in (this, *this.children(recursive=True)):
        with contextlib.suppress(psutil.Error, OSError):
            user_s, system_s = process.cpu_times()[:2]
            if psutil.LINUX:
                of_process = pathlib.Path(f"/proc/{process.pid}")
                fields = (of_process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                faults = int(fields[7]) + int(fields[9])  # minor and major ones: fields 10 and 12 of proc_pid_stat(5)
                status = (of_process / "status").read_text("utf-8", "replace")
                memory_bytes = int(status.partition("VmHWM:")[2].split()[0]) * 1024
            else:
                faults, memory_bytes = 0, process.memory_info().rss
            costs.append((user_s + system_s, system_s, _count_switches(process), faults, memory_bytes))
    return Cost(wall_s, *map(sum, zip(*costs, strict=True)))


def subtract(end: Cost, start: Cost) -> Cost:
    """What was taken between two readings; the memory is that of the later one."""
    differences = (later - earlier for later, earlier in zip(end, start, strict=True))
    return Cost(*differences)._replace(memory_bytes=end.memory_bytes)


def _count_switches(process: psutil.Process) -> int:
    """Voluntary ones. Linux counts them for each thread, and each thread has a number as a process has."""
    if not psutil.LINUX:
        return process.num_ctx_switches().voluntary
    count = 0
    for thread in process.threads():
        with contextlib.suppress(psutil.Error):  # it has just ended
            count += psutil.Process(thread.id).num_ctx_switches().voluntary
    return count
