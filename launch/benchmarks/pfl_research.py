"""pfl-research on PyTorch, in an environment of its own that `make setup-pfl` makes.

The processes are `pfl_rank`'s: single-threaded, one a core, under torchrun; they average over gloo on this machine's
loopback. A round is timed from the order to the last process's answer.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import TextIO

import numpy as np
import portpicker

from datasets.federated_data import FederatedData
from launch.benchmarks.workloads import PFL_ENVIRONMENT, Workload, build_data
from launch.runtimes.processor import count_cores
from launch.settings.run_config import RunConfig

POLL_S = 0.2


class Processes:
    """The processes of pfl-research; what one order does, all of them do."""

    def __init__(self, connections, answers):
        self._connections = connections
        self._answers = answers

    def run_round(self) -> None:
        """Runs the next round."""
        self._ask("round")

    def compute_accuracy(self) -> float:
        """The model's accuracy on the federation's test set."""
        return float(self._ask("accuracy")[0])

    def _ask(self, order):
        with contextlib.suppress(ConnectionError):  # then there is no answer either
            for connection in self._connections:
                connection.sendall(f"{order}\n".encode())
        return [read_answer(lines) for lines in self._answers]


def read_answer(lines: TextIO) -> str:
    """The next line of a process. Raises RuntimeError if it has ended."""
    with contextlib.suppress(ConnectionError):
        if answer := lines.readline().strip():
            return answer
    raise RuntimeError("a process of pfl-research has ended")


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
    with tempfile.TemporaryDirectory(prefix="pfl_") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.join(folder, "orders"))
        listener.listen(num_processes)
        path = os.path.join(folder, "arrays.npz")
        splits = [data.read_split(client, "train") for client in data.clients]
        x, y = (np.concatenate(arrays) for arrays in zip(*splits, strict=True))
        test = {"test_x": data.test_x, "test_y": data.test_y}
        np.savez(path, x=x, y=y, sizes=[len(labels) for _, labels in splits], **test)
        settings = {
            "socket": listener.getsockname(),
            "arrays": path,
            "scale": data.format.preprocessing.scale,
            "offset": data.format.preprocessing.offset,
            "batch_size": config.batch_size,
            "epochs": config.algorithm.training.epochs,
            "learning_rate": config.algorithm.training.learning_rate,
            "seed": config.seed,
        }
        started = subprocess.Popen(
            build_command(settings, num_processes),
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PFL_PYTORCH_DEVICE": device, "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": ""},
        )
        with started, contextlib.ExitStack() as stack:
            stack.callback(started.kill)
            connections = [stack.enter_context(accept(listener, started)) for _ in range(num_processes)]
            answers = [stack.enter_context(connection.makefile(encoding="utf-8")) for connection in connections]
            for lines in answers:
                read_answer(lines)
            yield Processes(connections, answers)


def build_command(settings: dict, num_processes: int) -> list[str]:
    """The command of one process, or of torchrun with several."""
    python = str(PFL_ENVIRONMENT / "bin" / "python")
    program = [str(pathlib.Path(__file__).with_name("pfl_rank.py")), json.dumps(settings)]
    if num_processes == 1:
        return [python, *program]
    port = portpicker.pick_unused_port()
    rendezvous = ["--nnodes=1", "--master-addr=127.0.0.1", f"--master-port={port}"]
    return [python, "-m", "torch.distributed.run", *rendezvous, f"--nproc-per-node={num_processes}", *program]


def accept(listener: socket.socket, started: subprocess.Popen) -> socket.socket:
    """The connection of the next process. Raises RuntimeError if they end before."""
    listener.settimeout(POLL_S)
    while True:
        with contextlib.suppress(TimeoutError):
            connection, _ = listener.accept()
            connection.settimeout(None)
            return connection
        if started.poll() is not None:
            raise RuntimeError("pfl-research did not start")
