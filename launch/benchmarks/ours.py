"""This project: the process and the runtime of `launch.train`; a timed round is `process.next(state)`."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from launch.benchmarks.workloads import Workload, build_data
from launch.runtimes.registry import RuntimeOptions, open_runtime
from launch.settings.algorithms import ALGORITHMS
from launch.settings.flag_fields import replace_fields

if TYPE_CHECKING:
    from tff_algos.protocol import FederatedProcess


@contextlib.contextmanager
def open_rounds(
    workload: Workload,
    folder: str,
    quantize: str = "none",
    times_clients: int = 1,
    runtime: str = "tff",
    closed: bool | None = None,
) -> Iterator[Callable[[], None]]:
    """Yields a function that runs the next round.

    `quantize` and `runtime` are as in the flags of these names, `closed` as in `RuntimeOptions`; `times_clients` is a
    factor.
    """
    workload = dataclasses.replace(workload, num_clients=workload.num_clients * times_clients)
    log_path = os.path.join(folder, f"ours_{quantize}_{workload.num_clients}_worker.log")
    with open_runtime(runtime, RuntimeOptions(log_path, closed=closed)):
        process = build_process(workload, folder, quantize)
        state = process.initialize()

        def run_round():
            nonlocal state
            state = process.next(state).state

        yield run_round


def build_process(workload: Workload, folder: str, quantize: str = "none") -> "FederatedProcess":
    """The algorithm of a workload over its data; call it inside of `open_runtime`."""
    from launch.benchmarks.model import build_model_spec

    algorithm = ALGORITHMS[workload.algo]
    training = {"epochs": workload.epochs, "optimizer": workload.optimizer, "learning_rate": workload.learning_rate}
    flags = {f"{workload.algo}_{name}": value for name, value in workload.settings.items()}
    flags |= {
        f"{workload.algo}_{prefix}{name}": value for prefix in workload.trainings for name, value in training.items()
    }
    flags |= {"batch_size": workload.batch_size}
    config = replace_fields(algorithm.default_config(), f"{workload.algo}_", flags)
    data = build_data(workload, folder)
    return algorithm.load_builder()(build_model_spec(workload, data, quantize), data, config, workload.seed)
