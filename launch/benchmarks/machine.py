"""The machine of a timing, for its results. Imports no TensorFlow."""

import contextlib
import importlib.metadata
import os
import pathlib
import platform
from typing import Any

import psutil

PACKAGES = ("tensorflow", "tensorflow-federated")


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory, versions, and how busy it was before."""
    return {
        "cpu": _read_cpu_name(),
        "num_cores": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average_before": os.getloadavg()[0],
        "platform": platform.platform(),
        "python": platform.python_version(),
        **{name.replace("-", "_"): importlib.metadata.version(name) for name in PACKAGES},
    }


def _read_cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
