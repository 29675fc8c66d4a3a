"""The relay between a Unix socket and the worker's port, in a process of this network."""

import pathlib
import socket
import subprocess
import sys

import pytest

from launch.runtimes.tff_worker_main import become

ROOT = pathlib.Path(__file__).parents[3]
PROGRAM = """
import socket, sys
from launch.runtimes.tff_worker_main import relay
relay(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
"""


@pytest.fixture
def start_relay(tmp_path):
    """A function (port) -> (our end of the relayed connection, the relay's process, its socket's path)."""
    started = []

    def start(port):
        path = str(tmp_path / "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1)
            command = [sys.executable, "-c", PROGRAM, str(listener.fileno()), str(port)]
            started.append(subprocess.Popen(command, cwd=ROOT, pass_fds=[listener.fileno()]))
        ours = socket.socket(socket.AF_UNIX)
        ours.connect(path)
        return ours, started[-1], path

    yield start
    for process in started:
        process.kill()
        process.wait()


def find_free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_binary_that_cannot_run_is_named(capfd):
    with pytest.raises(SystemExit) as ended:
        become(["/no/program"])
    assert ended.value.code == 127
    assert capfd.readouterr().out == "cannot run /no/program: No such file or directory\n"


@pytest.mark.parametrize("who", ["worker", "we"])
def test_it_waits_for_the_port_carries_bytes_both_ways_and_ends_when_a_side_closes(start_relay, who):
    port = find_free_port()
    ours, process, path = start_relay(port)
    ours.sendall(b"before anybody listens")
    with socket.create_server(("127.0.0.1", port)) as server:
        end, _ = server.accept()
    assert end.recv(100) == b"before anybody listens"
    with socket.socket(socket.AF_UNIX) as second, pytest.raises(ConnectionRefusedError):
        second.connect(path)
    end.sendall(b"answer")
    assert ours.recv(100) == b"answer"
    closed, other = (end, ours) if who == "worker" else (ours, end)
    closed.close()
    assert other.recv(100) == b""
    assert process.wait(20) == 0
    other.close()
