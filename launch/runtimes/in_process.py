"""TensorFlow in this process as the runtime: no worker, no port, no second copy of a graph.

Imports neither TensorFlow nor TFF until `run_in_process` is entered.
"""

import contextlib
import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from launch.runtimes.device import give_sessions_own_threads
from launch.runtimes.quick_import import import_quickly
from launch.runtimes.runtime import Runtime, quiet_tensorflow

if TYPE_CHECKING:
    from launch.runtimes.graph_sessions import RoundGraphs
    from launch.runtimes.round_context import RunClients


@contextlib.contextmanager
def run_in_process(
    log_path: str, device: str = "cpu", num_threads: int | None = None, graph_dir: str = ""
) -> Iterator[Runtime]:
    """Makes TensorFlow of this process TFF's default context; frees its sessions at the end.

    Args:
      log_path: the file that TensorFlow's start-up is appended to.
      device: "cpu" or "gpu".
      num_threads: how many clients run at a time; None for as many as suit the device.
      graph_dir: the folder where graphs are kept for later runs; "" for none.

    Yields:
      A runtime without workers.

    Raises:
      WorkerError: inside the block, an operation of a computation failed.
    """
    # Before TensorFlow's first device, which reads it.
    give_sessions_own_threads()
    pathlib.Path(log_path).parent.mkdir(parents=True, exist_ok=True)
    with quiet_tensorflow(log_path):
        import_quickly("launch.runtimes.tff_contexts")
        from launch.runtimes.graph_sessions import ShareRunner, default_num_threads
        from launch.runtimes.round_context import RoundContext
        from launch.runtimes.tff_contexts import use_context
    num_threads = num_threads or default_num_threads(device)

    @contextlib.contextmanager
    def open_clients(graphs: "RoundGraphs") -> "Iterator[RunClients]":
        with contextlib.closing(ShareRunner(graphs, num_threads, device)) as runner:
            yield runner.run_share

    with contextlib.closing(RoundContext(open_clients, graph_dir, device)) as context, use_context(context):
        yield Runtime()
