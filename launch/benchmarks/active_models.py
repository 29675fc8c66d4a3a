"""FedCD with a given number of active models on every device: what a round costs, by active models."""

import contextlib
import os
from collections.abc import Callable, Iterator

import numpy as np

from launch.benchmarks.ours import build_process
from launch.benchmarks.workloads import Workload
from launch.runtimes.runtime import run_tff


@contextlib.contextmanager
def open_rounds(workload: Workload, folder: str, num_models: int) -> Iterator[Callable[[], None]]:
    """Yields a function that runs a round, the same one each time: its result is thrown away."""
    with run_tff(os.path.join(folder, f"active_models_{num_models}_worker.log")):
        process = build_process(workload, folder)
        state = process.initialize()
        is_active = np.tile(np.arange(state.is_active.shape[1]) < num_models, (len(state.is_active), 1))
        state = state._replace(is_active=is_active, scores=is_active / num_models)
        yield lambda: process.next(state)
