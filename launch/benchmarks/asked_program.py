"""Programs on PyTorch in environments of their own, asked for rounds on a Unix socket; see `torch_student`."""

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TextIO

import numpy as np

from datasets.federated_data import FederatedData
from launch.settings.run_config import RunConfig

POLL_S = 0.2


class Processes:
    """The processes of a peer; what one order does, all of them do."""

    def __init__(self, name, connections, answers):
        self._name = name
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
        return [read_answer(self._name, lines) for lines in self._answers]


def read_answer(name: str, lines: TextIO) -> str:
    """The next line of a process. Raises RuntimeError if it has ended."""
    with contextlib.suppress(ConnectionError):
        if answer := lines.readline().strip():
            return answer
    raise RuntimeError(f"a process of {name} has ended")


@contextlib.contextmanager
def open_asked(
    name: str,
    config: RunConfig,
    data: FederatedData,
    build_command: Callable[[dict], Sequence[str]],
    num_processes: int,
    environment: Mapping[str, str],
) -> Iterator[Processes]:
    """Starts a program on a federation and ends it with the block.

    Args:
      name: of the peer, for errors.
      config: of FedAvg with MNIST's student and Adam; its batch size, epochs, learning rate and seed count.
      data: images like MNIST's.
      build_command: (settings) -> the command; settings are what JSON can hold.
      num_processes: how many of its processes connect.
      environment: variables of it besides.

    Raises:
      RuntimeError: a process ended.
    """
    with tempfile.TemporaryDirectory(prefix="peer_") as folder, socket.socket(socket.AF_UNIX) as listener:
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
        started = subprocess.Popen(build_command(settings), stdin=subprocess.DEVNULL, env={**os.environ, **environment})
        with started, contextlib.ExitStack() as stack:
            stack.callback(started.kill)
            connections = [stack.enter_context(accept(name, listener, started)) for _ in range(num_processes)]
            answers = [stack.enter_context(connection.makefile(encoding="utf-8")) for connection in connections]
            for lines in answers:
                read_answer(name, lines)
            yield Processes(name, connections, answers)


def accept(name: str, listener: socket.socket, started: subprocess.Popen) -> socket.socket:
    """The connection of the next process. Raises RuntimeError if they end before."""
    listener.settimeout(POLL_S)
    while True:
        with contextlib.suppress(TimeoutError):
            connection, _ = listener.accept()
            connection.settimeout(None)
            return connection
        if started.poll() is not None:
            raise RuntimeError(f"{name} did not start")
