"""The processor: which cores this process may use, and what it is. Imports no TensorFlow.

Linux says which cores these are, and binds a process to some of them. macOS does neither.
"""

import os
import pathlib
import platform
import subprocess
from collections.abc import Sequence

CPU_INFO = pathlib.Path("/proc/cpuinfo")
ARM_NUMBERS = ("CPU implementer", "CPU part", "CPU variant", "CPU revision")  # an ARM core's name is not in there
ABILITIES = ("flags", "Features")  # as x86-64 and ARM call them

_own_share: list[int] = []  # what `keep_to_cores` was told where the kernel binds nothing


def list_cores() -> list[int]:
    """The numbers of the cores that this process may use, ascending."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return _own_share or list(range(os.cpu_count() or 1))


def count_cores() -> int:
    """How many cores this process may use."""
    return len(list_cores())


def keep_to_cores(cores: Sequence[int]) -> None:
    """Binds this thread, and what it starts from now on, to these cores.

    Where the kernel cannot do so, this process at least starts no more threads than they are.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    else:
        _own_share[:] = sorted(cores)


def name_processor() -> str:
    """What its maker calls it; on ARM Linux, where it has numbers alone, these; else the name of its architecture."""
    names = [name for _, name in _read_cpu_info("model name")]
    numbers = [" ".join(pair) for pair in _read_cpu_info(*ARM_NUMBERS)]
    if not names and platform.system() == "Darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        names = [subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()]
    return ", ".join(filter(None, names or numbers)) or platform.machine()


def describe_processor() -> str:
    """Its name and what it can do, a line each: results may depend on both."""
    return "\n".join([name_processor(), *(abilities for _, abilities in _read_cpu_info(*ABILITIES))])


def _read_cpu_info(*names: str) -> list[tuple[str, str]]:
    """The (name, value) pairs of these names, each once, in order; none where there is no such file."""
    try:
        lines = CPU_INFO.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    fields = (line.partition(":") for line in lines)
    return sorted({(name.strip(), value.strip()) for name, _, value in fields if name.strip() in names})
