"""The machine of a timing, for its results. Imports no TensorFlow."""

import os
import platform
from typing import Any

import psutil

from launch.library_versions import find_version
from launch.runtimes.processor import count_cores, name_processor

PACKAGES = ("tensorflow", "tensorflow-federated")


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory, versions, and how busy it was before."""
    return {
        "cpu": name_processor(),
        "num_cores": count_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average_before": os.getloadavg()[0],
        "platform": platform.platform(),
        "python": platform.python_version(),
        **{name.replace("-", "_"): find_version(name) for name in PACKAGES},
    }
