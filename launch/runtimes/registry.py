"""The runtimes: one row each. Every TFF computation inside `with open_runtime(name, options)` is run by it.

Imports neither TensorFlow nor what a runtime needs: a row is loaded when its runtime is opened.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType

from launch.runtimes.runtime import READY_TIMEOUT_S, Runtime


@dataclasses.dataclass(frozen=True)
class RuntimeOptions:
    """What a runtime is told; each takes what it needs.

    Attributes:
      log_path: the file that TensorFlow's start-up and a worker's output are appended to.
      device: "cpu" or "gpu", as `use_device` has chosen it before.
      ray_address: the Ray cluster: "host:port", "ray://host:port", "auto", or "" for one of our own.
      ray_shares: into how many shares Ray's clients are cut.
      ready_timeout_s: the longest wait for what the runtime starts or joins.
    """

    log_path: str
    device: str = "cpu"
    ray_address: str = ""
    ray_shares: int = 1
    ready_timeout_s: float = READY_TIMEOUT_S


OpenRuntime = Callable[[RuntimeOptions], contextlib.AbstractContextManager[Runtime]]


def _open_in_process(options: RuntimeOptions) -> contextlib.AbstractContextManager[Runtime]:
    from launch.runtimes.in_process import run_in_process

    return run_in_process(options.log_path, options.device)


def _open_tff(options: RuntimeOptions) -> contextlib.AbstractContextManager[Runtime]:
    from launch.runtimes.tff_worker import run_tff

    return run_tff(options.log_path, options.ready_timeout_s)


def _open_ray(options: RuntimeOptions) -> contextlib.AbstractContextManager[Runtime]:
    from launch.runtimes.ray_runtime import run_ray

    return run_ray(options.log_path, options.ray_address, options.ray_shares, options.ready_timeout_s)


RUNTIMES: Mapping[str, OpenRuntime] = MappingProxyType(
    {"in_process": _open_in_process, "tff": _open_tff, "ray": _open_ray}
)


def open_runtime(name: str, options: RuntimeOptions) -> contextlib.AbstractContextManager[Runtime]:
    """The runtime of that name, to be entered in the main thread, where the computations are called, too.

    Raises:
      WorkerError: on entering, it does not start; inside the block, it died or a computation failed.
    """
    return RUNTIMES[name](options)
