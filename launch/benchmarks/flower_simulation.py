"""Flower's simulation on PyTorch, in an environment of its own that `make setup-flower` makes.

The program is `flower_program`'s: a ServerApp, and clients on Flower's only backend, Ray, a single-threaded worker a
core, all on this machine's loopback. A round is timed from the order to the answer.
"""

import contextlib
import functools
import json
import pathlib
import tempfile
from collections.abc import Callable, Iterator

from datasets.federated_data import FederatedData
from launch.benchmarks.asked_program import Processes, open_asked
from launch.benchmarks.workloads import FLOWER_ENVIRONMENT, Workload, build_data
from launch.runtimes.processor import count_cores
from launch.settings.run_config import RunConfig

# As a module, so that Ray's workers import its functions, and keep the users' tensors that these have read.
PROGRAM = "import json, sys, flower_program; flower_program.main(json.loads(sys.argv[1]))"
ENVIRONMENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(pathlib.Path(__file__).parent),
    "RAY_DEDUP_LOGS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@contextlib.contextmanager
def open_rounds(workload: Workload, folder: str) -> Iterator[Callable[[], None]]:
    """Starts Flower; yields a function that runs the next round."""
    with open_processes(workload.build_config(folder), build_data(workload, folder)) as processes:
        yield processes.run_round


@contextlib.contextmanager
def open_processes(config: RunConfig, data: FederatedData) -> Iterator[Processes]:
    """Starts Flower on a federation, as `open_asked` does, and ends it with the block."""
    # Not below TMPDIR: the paths of sockets are short, and Ray puts 66 characters after its folder. What its processes
    # still write when they are killed does not matter.
    temporary = tempfile.TemporaryDirectory(prefix="ray_", dir="/tmp", ignore_cleanup_errors=True)
    with temporary as ray_folder:
        # Ray lets everybody into its own folder, and only this user gets into that around it.
        command = functools.partial(build_command, f"{ray_folder}/r")
        with open_asked("flower", config, data, command, 1, ENVIRONMENT) as processes:
            yield processes


def build_command(ray_folder: str, settings: dict) -> list[str]:
    """The command of the program."""
    python, own = str(FLOWER_ENVIRONMENT / "bin" / "python"), {"num_workers": count_cores(), "ray_folder": ray_folder}
    return [python, "-c", PROGRAM, json.dumps({**settings, **own})]
