"""pfl-research on PyTorch, in an environment of its own that `make setup-pfl` makes.

The processes are `pfl_rank`'s: single-threaded, one a core, under torchrun; they average over gloo on this machine's
loopback. A round is timed from the order to the last process's answer.
"""

import contextlib
import functools
import json
import pathlib
from collections.abc import Callable, Iterator

import portpicker

from datasets.federated_data import FederatedData
from launch.benchmarks.asked_program import Processes, open_asked
from launch.benchmarks.workloads import PFL_ENVIRONMENT, Workload, build_data
from launch.runtimes.processor import count_cores
from launch.settings.run_config import RunConfig


@contextlib.contextmanager
def open_rounds(
    workload: Workload, folder: str, num_processes: int = 0, device: str = "cpu"
) -> Iterator[Callable[[], None]]:
    """Starts the processes (0: one a core); yields a function that runs the next round."""
    config, data = workload.build_config(folder), build_data(workload, folder)
    with open_processes(config, data, num_processes, device) as processes:
        yield processes.run_round


@contextlib.contextmanager
def open_processes(
    config: RunConfig, data: FederatedData, num_processes: int = 0, device: str = "cpu"
) -> Iterator[Processes]:
    """Starts the processes on a federation and ends them with the block.

    Args:
      config: of FedAvg with MNIST's student and Adam; its batch size, epochs, learning rate and seed count.
      data: images like MNIST's.
      num_processes: how many, 0 for one a core; on a GPU it is one.
      device: "cpu" or "cuda".

    Raises:
      RuntimeError: a process ended.
    """
    num_processes = num_processes or count_cores()
    environment = {"PFL_PYTORCH_DEVICE": device, "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": ""}
    command = functools.partial(build_command, num_processes=num_processes)
    with open_asked("pfl-research", config, data, command, num_processes, environment) as processes:
        yield processes


def build_command(settings: dict, num_processes: int) -> list[str]:
    """The command of one process, or of torchrun with several."""
    python = str(PFL_ENVIRONMENT / "bin" / "python")
    program = [str(pathlib.Path(__file__).with_name("pfl_rank.py")), json.dumps(settings)]
    if num_processes == 1:
        return [python, *program]
    port = portpicker.pick_unused_port()
    rendezvous = ["--nnodes=1", "--master-addr=127.0.0.1", f"--master-port={port}"]
    return [python, "-m", "torch.distributed.run", *rendezvous, f"--nproc-per-node={num_processes}", *program]
