"""The runtimes by name. Every TFF computation inside `with open_runtime(name, ...)` is run by that one.

Imports neither TensorFlow nor what a runtime needs: it is loaded when it is opened.
"""

import contextlib

from launch.runtimes.runtime import READY_TIMEOUT_S, Runtime


def open_runtime(
    name: str,
    log_path: str,
    device: str = "cpu",
    ray_address: str = "",
    ray_shares: int = 1,
    ready_timeout_s: float = READY_TIMEOUT_S,
    graph_dir: str = "",
) -> contextlib.AbstractContextManager[Runtime]:
    """The runtime of that name, to be entered in the main thread, where the computations are called, too.

    Args:
      name: "in_process", "tff" or "ray"; each takes of the others what it needs.
      log_path: the file that TensorFlow's start-up and a worker's output are appended to.
      device: "cpu" or "gpu", as `use_device` has chosen it before.
      ray_address: the Ray cluster: "host:port", "ray://host:port", "auto", or "" for one of our own.
      ray_shares: into how many shares Ray's clients are cut.
      ready_timeout_s: the longest wait for what the runtime starts or joins.
      graph_dir: the folder where graphs are kept for later runs, but for "tff"; "" for none.

    Raises:
      WorkerError: on entering, it does not start; inside the block, it died or a computation failed.
      ValueError: there is no such runtime.
    """
    match name:
        case "in_process":
            from launch.runtimes.in_process import run_in_process

            return run_in_process(log_path, device, graph_dir=graph_dir)
        case "tff":
            from launch.runtimes.tff_worker import run_tff

            return run_tff(log_path, ready_timeout_s)
        case "ray":
            from launch.runtimes.ray_runtime import run_ray

            return run_ray(log_path, ray_address, ray_shares, ready_timeout_s, graph_dir)
    raise ValueError(f"no runtime is called {name}")
