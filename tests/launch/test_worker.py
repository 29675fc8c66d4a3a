"""`launch.worker` keeps a worker for other machines, which reach it through ssh or anything that joins two sockets."""

import contextlib
import getpass
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest

from launch import worker as worker_command
from launch.runtimes.runtime import WorkerError, quiet_tensorflow, run_tff
from launch.runtimes.worker_relay import _move

ROOT = pathlib.Path(__file__).parents[2]
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SSHD_CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
"""

pytestmark = pytest.mark.usefixtures("can_close")


@contextlib.contextmanager
def run_command(folder, *arguments):
    """Runs the command in `folder`; yields (process, what it printed up to the last line of its announcement)."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "launch.worker", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            lines = []
            while not (lines and lines[-1].startswith("stop ")):
                lines.append(process.stdout.readline())
                assert lines[-1], "".join(lines)
            yield process, "".join(lines)
        finally:
            process.kill()


def find_socket(printed):
    return re.search(r"^socket +(.+)$", printed, re.M)[1]


def wait_until(condition, timeout_s=10.0):
    deadline_s = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize(
    ("ending", "exit_code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_the_worker_and_its_socket_go_with_the_command(tmp_path, ending, exit_code):
    with run_command(tmp_path) as (process, printed):
        path = pathlib.Path(find_socket(printed))
        processes = psutil.Process(process.pid).children(recursive=True)
        assert path.is_socket() and len(processes) == 2
        process.send_signal(ending)
        assert process.wait(20) == exit_code
        assert wait_until(lambda: not path.parent.exists())
        assert wait_until(lambda: not any(each.is_running() and each.status() != "zombie" for each in processes))


def test_a_worker_that_dies_ends_the_command_with_one_line(tmp_path):
    with run_command(tmp_path) as (process, _):
        psutil.Process(process.pid).children()[0].kill()
        assert process.wait(20) == 1
        assert re.fullmatch(r"error: the TFF worker \(process \d+\) was killed by SIGKILL.*\n", process.stdout.read())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--socket=no/folder"], "no such folder"),
        (["--socket=there"], "exists already"),
        (["--socket=a:b"], "no path with a colon"),
        (["--socket=" + "long" * 30], "too long for a socket"),
        (["--sockets=x"], "unknown flag; did you mean --socket?"),
        (["here"], "expected flags only"),
        (["--", "here"], "nothing is expected after --"),
    ],
)
def test_a_wrong_request_is_one_line(tmp_path, monkeypatch, capsys, arguments, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").touch()
    assert worker_command.main(arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and expected in line


def test_where_workers_cannot_be_closed_off_none_is_started(tmp_path, monkeypatch, capsys):
    launcher = tmp_path / "launcher.py"
    launcher.write_text("import os, sys\nos.write(int(sys.argv[2]), b'Operation not permitted')\nsys.exit(1)\n")
    monkeypatch.setattr("launch.runtimes.worker_process.CLOSED_LAUNCHER", str(launcher))
    monkeypatch.chdir(tmp_path)
    assert worker_command.main([]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: this system allows no network namespace: Operation not permitted; docs/cluster.md")


@contextlib.contextmanager
def tunnel_by_ssh(folder, local, remote):
    """Joins the sockets by the ssh command that is printed, to an sshd of our own at 127.0.0.1."""
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "sshd_config").write_text(SSHD_CONFIG.format(port=port, folder=folder))
    if os.getuid() == 0:
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # sshd of Debian wants it
    server = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
    options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes", "LogLevel=ERROR"]
    options += ["ExitOnForwardFailure=yes", "StreamLocalBindUnlink=yes", "ConnectionAttempts=20"]
    client = ["ssh", "-F", "none", "-N", "-i", str(folder / "user_key"), "-p", str(port)]
    client += [part for option in options for part in ("-o", option)]
    client += ["-L", f"{local}:{remote}", f"{getpass.getuser()}@127.0.0.1"]
    with open(folder / "ssh.log", "w") as log, contextlib.ExitStack() as stack:
        for command in (server, client):
            process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
            stack.callback(process.terminate)
        assert wait_until(local.is_socket, 20.0), (folder / "ssh.log").read_text()
        yield


@contextlib.contextmanager
def tunnel_by_threads(folder, local, remote):
    """Joins the sockets by threads of this process."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(local))
        listener.listen()

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    near, _ = listener.accept()
                    far = socket.socket(socket.AF_UNIX)
                    far.connect(remote)
                    for ends in ((near, far), (far, near)):
                        threading.Thread(target=_move, args=ends, daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("open_tunnel", [tunnel_by_ssh, tunnel_by_threads])
def test_a_worker_is_used_through_a_tunnel_between_two_sockets(tmp_path, open_tunnel):
    if open_tunnel is tunnel_by_ssh and not (SSHD and shutil.which("ssh") and shutil.which("ssh-keygen")):
        pytest.skip("needs ssh and sshd (apt-get install openssh-server)")
    with quiet_tensorflow(str(tmp_path / "tensorflow.log")):
        import tensorflow_federated as tff
    double = tff.tensorflow.computation(lambda x: x + x, tff.TensorType(np.float32, (2**20,)))
    values = np.random.default_rng(0).normal(size=2**20).astype(np.float32)
    local = tmp_path / "local.sock"
    with run_command(tmp_path, "--socket=remote.sock") as (process, printed):
        assert find_socket(printed) == str(tmp_path / "remote.sock")
        with open_tunnel(tmp_path, local, find_socket(printed)), run_tff(str(tmp_path / "log"), [f"unix:{local}"]):
            np.testing.assert_array_equal(double(values), 2 * values)
            process.terminate()
            with pytest.raises(WorkerError, match=f"the TFF worker at unix:{local} does not answer any more"):
                for _ in range(100):
                    double(values)
        assert process.wait(20) == 143
        assert wait_until(lambda: not (tmp_path / "remote.sock").exists())
