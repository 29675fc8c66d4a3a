"""A worker of ours can be reached by us alone, and it goes on with a port where the kernel does not allow that."""

import contextlib
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest

from launch.runtimes import worker_process
from launch.runtimes.runtime import WorkerError, quiet_tensorflow, run_tff
from launch.runtimes.worker_process import ClosingError, Threads, run_worker

ROOT = pathlib.Path(__file__).parents[3]
THREADS = Threads(1, 2, 4)
COMPUTING_PROGRAM = """
import sys, threading
from launch.runtimes.runtime import run_tff
with run_tff(sys.argv[1]) as runtime:
    import numpy as np, tensorflow as tf, tensorflow_federated as tff
    @tff.tensorflow.computation(np.float32)
    def never_end(x):
        return tf.while_loop(lambda x: x < 2.0, lambda x: (tf.sin(x),), (x,))[0]
    threading.Timer(1.0, print, (runtime.pids[0], runtime.addresses[0]), {"flush": True}).start()
    never_end(0.5)
"""
CONNECTING_PROGRAM = """
import os, socket, sys
if int(sys.argv[2]):
    os.setgroups([])
    os.setresgid(*3 * (int(sys.argv[2]),))
    os.setresuid(*3 * (int(sys.argv[2]),))
socket.socket(socket.AF_UNIX).connect(sys.argv[1])
"""
RELAY_PROGRAM = """
import os, signal, socket, sys
sys.path.append("launch/runtimes")
from worker_relay import relay
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.kill(os.getpid(), signal.SIGTERM)
relay(listener, 1, sys.argv[1], os.path.dirname(sys.argv[1]))
"""
# Runs a command in a user namespace whose kernel refuses network namespaces.
FORBIDDING = ["unshare", "--user", "--map-root-user", "sh", "-c"]
FORBIDDING += ['echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"', "sh"]

pytestmark = pytest.mark.usefixtures("can_close")


def get_network(pid):
    return os.readlink(f"/proc/{pid}/ns/net")


def wait_until(condition, timeout_s=10.0):
    deadline_s = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return condition()


def has_ended(pid):
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_nobody_listens_during_a_round_and_nothing_is_left_of_a_killed_program(as_user, open_folder, find_listening):
    """The worker goes, its relay, and the folder of its socket. TensorFlow's start-up noise is in the log alone."""
    command = [*as_user, sys.executable, "-c", COMPUTING_PROGRAM, str(open_folder / "worker.log")]
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes) as program:
        try:
            pid, address = program.stdout.readline().split()
            processes = psutil.Process(program.pid).children(recursive=True)
            assert processes[0].pid == int(pid)
            assert len(processes) == 2
            assert find_listening(program.pid) == []
            networks = {get_network(process.pid) for process in processes}
            assert len(networks) == 1 and get_network("self") not in networks
            path = pathlib.Path(address.removeprefix("unix:"))
            assert path.is_socket() and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        finally:
            program.kill()
        assert program.stdout.read() == ""
    for process in processes:
        assert wait_until(lambda pid=process.pid: has_ended(pid))
    assert wait_until(lambda: not path.parent.exists())


@pytest.fixture(scope="module")
def double(tmp_path_factory):
    """A computation of a client, summed over the clients."""
    with quiet_tensorflow(str(tmp_path_factory.mktemp("log") / "tensorflow.log")):
        import tensorflow as tf
        import tensorflow_federated as tff

    @tff.tensorflow.computation(np.float32)
    def work(x):
        return tf.sin(x) / 3.0

    @tff.federated_computation(tff.FederatedType(np.float32, tff.CLIENTS))
    def add_up(values):
        return tff.federated_sum(tff.federated_map(work, values))

    return add_up


def test_a_worker_with_a_port_is_found_to_listen(tmp_path, find_listening):
    """Without this, finding nobody would prove nothing."""
    with run_worker(str(tmp_path / "worker.log"), THREADS, closed=False) as worker:
        port = int(worker.address.removeprefix("127.0.0.1:"))
        assert wait_until(lambda: (worker.process.pid, port) in find_listening(os.getpid()))
        assert get_network(worker.process.pid) == get_network("self")


def test_a_foreign_user_cannot_open_the_socket(tmp_path):
    if os.getuid() != 0:
        pytest.skip("needs root to become another user")
    with run_worker(str(tmp_path / "worker.log"), THREADS) as worker:
        path = worker.address.removeprefix("unix:")
        ended = {
            user: subprocess.run(
                [sys.executable, "-I", "-S", "-c", CONNECTING_PROGRAM, path, str(user)], capture_output=True, text=True
            )
            for user in (0, 12345)
        }
    assert ended[0].returncode == 0
    assert "PermissionError" in ended[12345].stderr


def test_the_relay_ends_with_its_worker_and_the_worker_is_known_by_its_own_number(tmp_path):
    with run_worker(str(tmp_path / "worker.log"), THREADS) as worker:
        process = psutil.Process(worker.process.pid)
        assert wait_until(lambda: process.name().startswith("worker_binary"))
        [relay] = process.children()
        process.kill()
        assert "was killed by SIGKILL" in str(worker.describe_death())
        assert wait_until(lambda: has_ended(relay.pid))
        assert wait_until(lambda: not os.path.exists(worker.socket_dir))


def test_a_worker_that_ends_before_its_relay_waits_leaves_no_relay(tmp_path):
    """With SIGTERM pending when the relay starts, the worst moment for it."""
    folder = tmp_path / "worker"
    folder.mkdir()
    command = [sys.executable, "-I", "-S", "-c", RELAY_PROGRAM, str(folder / "worker.sock")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not folder.exists()


def test_a_killed_relay_ends_the_computation_in_one_line(double, tmp_path):
    with run_tff(str(tmp_path / "worker.log")) as runtime:
        double([1.0, 2.0])
        [relay] = psutil.Process(runtime.pids[0]).children()
        relay.kill()
        with pytest.raises(WorkerError, match=f"the TFF worker at {runtime.addresses[0]} does not answer any more"):
            double([1.0, 2.0])


def test_large_values_pass_the_relay_in_both_directions_unchanged(tmp_path, double):
    import tensorflow_federated as tff

    values = np.random.default_rng(0).normal(size=2**22).astype(np.float32)
    negate = tff.tensorflow.computation(lambda x: -x, tff.TensorType(np.float32, values.shape))
    with run_tff(str(tmp_path / "worker.log")):
        np.testing.assert_array_equal(negate(values), -values)


def test_a_long_temporary_folder_is_not_used_for_the_socket(tmp_path, monkeypatch):
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with run_worker(str(tmp_path / "worker.log"), THREADS) as worker:
        assert len(worker.address) < 108
        assert list(folder.iterdir()) == []


@pytest.fixture
def forbid(tmp_path, monkeypatch):
    """Makes the launcher of closed workers give up, as it does where the kernel refuses a namespace."""
    launcher = tmp_path / "launcher.py"
    launcher.write_text("import os, sys\nos.write(int(sys.argv[2]), b'Operation not permitted')\nsys.exit(1)\n")
    monkeypatch.setattr(worker_process, "CLOSED_LAUNCHER", str(launcher))
    worker_process._warn.cache_clear()


def test_where_namespaces_are_forbidden_one_line_says_so_and_the_results_are_the_same(
    double, tmp_path, forbid, capsys, monkeypatch
):
    values = list(np.linspace(0.1, 1.0, 7, dtype=np.float32))
    with run_tff(str(tmp_path / "worker.log"), num_workers=2) as runtime:
        assert [address.split(":")[0] for address in runtime.addresses] == ["127.0.0.1"] * 2
        with_port = double(values)
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("warning  TFF's worker cannot be closed off (")
    assert "Operation not permitted" in line and "--runtime=in_process" in line
    monkeypatch.undo()
    with run_tff(str(tmp_path / "worker.log"), num_workers=2) as runtime:
        assert [address.split(":")[0] for address in runtime.addresses] == ["unix"] * 2
        assert double(values).tobytes() == with_port.tobytes()


def test_a_worker_that_must_be_closed_off_is_refused_where_that_is_forbidden(tmp_path, forbid):
    with (
        pytest.raises(ClosingError, match="Operation not permitted"),
        run_worker(str(tmp_path / "l"), THREADS, closed=True),
    ):
        pass
    assert not [child for child in psutil.Process().children() if "launcher" in " ".join(child.cmdline())]


def test_the_kernel_s_own_refusal_is_reported(tmp_path):
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare of util-linux")
    program = """
import sys
from launch.runtimes.worker_process import Threads, run_worker
with run_worker(sys.argv[1], Threads(1, 1, 1)) as worker:
    print(worker.address)
"""
    command = [*FORBIDDING, sys.executable, "-c", program, str(tmp_path / "worker.log")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    warning, address = ended.stdout.splitlines()
    assert "No space left on device" in warning
    assert address.startswith("127.0.0.1:")


def train(folder, before=(), watch=lambda pid: None):
    """Runs a small training in `folder` as a program; returns its output, and calls `watch` all the time."""
    flags = [f"--client_dir={folder}/shards", f"--run_dir={folder}/run", "--rounds=3"]
    command = [*before, sys.executable, "-m", "launch.train", "--algo=fedavg", "--num_clients=4", *flags]
    environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder)}
    with (
        open(folder / "output.txt", "w+") as output,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output) as program,
    ):
        while program.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError):
                watch(program.pid)
            time.sleep(0.02)
        output.seek(0)
        printed = output.read()
    assert program.returncode == 0, printed
    return printed


@pytest.mark.slow
def test_no_process_of_a_training_run_ever_listens(as_user, open_folder, find_listening):
    seen, workers = [], set()

    def watch(pid):
        seen.extend(find_listening(pid))
        workers.update(each.pid for each in psutil.Process(pid).children() if each.name().startswith("worker_binary"))

    train(open_folder, as_user, watch)
    assert (len(workers), seen) == (1, [])
    assert not list(open_folder.glob("federated_worker_*"))


@pytest.mark.slow
def test_a_training_run_gives_the_same_bytes_where_namespaces_are_forbidden(tmp_path):
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare of util-linux")
    folders = [tmp_path / "closed", tmp_path / "open"]
    for folder in folders:
        folder.mkdir()
    closed, with_port = train(folders[0]), train(folders[1], FORBIDDING)
    assert [line for line in closed.splitlines() if line.startswith("warning")] == []
    assert len([line for line in with_port.splitlines() if line.startswith("warning")]) == 1
    assert (folders[0] / "run/metrics.csv").read_bytes() == (folders[1] / "run/metrics.csv").read_bytes()


def test_the_relay_waits_for_its_port_and_closes_both_sides_when_one_closes():
    """Its threads alone, in this process."""
    from launch.runtimes.worker_relay import _join

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ours, theirs = socket.socketpair()
    joining = threading.Thread(target=_join, args=(theirs, port), daemon=True)
    joining.start()
    ours.sendall(b"before anybody listens")
    time.sleep(0.05)
    with socket.create_server(("127.0.0.1", port)) as server:
        end, _ = server.accept()
        assert end.recv(100) == b"before anybody listens"
        end.sendall(b"answer")
        assert ours.recv(100) == b"answer"
        end.close()
        assert ours.recv(100) == b""
        joining.join(5.0)
        assert not joining.is_alive()
