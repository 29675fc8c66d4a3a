"""This project: the process and the runtime of `launch.train`; a timed round is `process.next(state)`."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from launch.benchmarks.workloads import Workload, build_data
from launch.runtimes.registry import RuntimeOptions, open_runtime
from launch.settings.algorithms import ALGORITHMS
from launch.settings.flag_fields import replace_fields

if TYPE_CHECKING:
    from tff_algos.protocol import FederatedProcess

ALGO = "fedavg"


@contextlib.contextmanager
def open_rounds(workload: Workload, folder: str, runtime: str) -> Iterator[Callable[[], None]]:
    """Yields a function that runs the next round; `runtime` is as in the flag."""
    with open_runtime(runtime, RuntimeOptions(os.path.join(folder, "ours_worker.log"))):
        process = build_process(workload, folder)
        state = process.initialize()

        def run_round():
            nonlocal state
            state = process.next(state).state

        yield run_round


def build_process(workload: Workload, folder: str) -> "FederatedProcess":
    """FedAvg over a workload's data; call it inside of `open_runtime`."""
    from launch.benchmarks.model import build_model_spec

    algorithm = ALGORITHMS[ALGO]
    training = {name: getattr(workload, name) for name in ("epochs", "optimizer", "learning_rate")}
    flags = {f"{ALGO}_{name}": value for name, value in (training | dict(workload.settings)).items()}
    flags |= {"batch_size": workload.batch_size}
    config = replace_fields(algorithm.default_config(), f"{ALGO}_", flags)
    data = build_data(workload, folder)
    return algorithm.load_builder()(build_model_spec(workload, data), data, config, workload.seed)
