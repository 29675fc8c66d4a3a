"""This project: the process and the runtime of `launch.train`; a timed round is `process.next(state)`."""

import contextlib
import os
from collections.abc import Callable, Iterator

from launch.algorithms import ALGORITHMS
from launch.benchmarks.workloads import Workload, build_data
from launch.experiment_config import replace_fields
from launch.runtime import run_tff


@contextlib.contextmanager
def open_rounds(workload: Workload, folder: str, quantize: str = "none") -> Iterator[Callable[[], None]]:
    """Yields a function that runs the next round; `quantize` as `--quantize` spells it."""
    algorithm = ALGORITHMS[workload.algo]
    training = {"epochs": workload.epochs, "optimizer": "adam", "learning_rate": workload.learning_rate}
    flags = {"batch_size": workload.batch_size} | {
        f"{workload.algo}_{prefix}{name}": value for prefix in workload.trainings for name, value in training.items()
    }
    config = replace_fields(algorithm.default_config(), f"{workload.algo}_", flags)
    with run_tff(os.path.join(folder, f"ours_{quantize}_worker.log")):
        from launch.benchmarks.model import build_model_spec

        build_process = algorithm.load_builder()
        data = build_data(workload, folder)
        process = build_process(build_model_spec(workload, data, quantize), data, config, workload.seed)
        state = process.initialize()

        def run_round():
            nonlocal state
            state = process.next(state).state

        yield run_round
