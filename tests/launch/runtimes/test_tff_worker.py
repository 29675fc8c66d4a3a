"""TFF's worker computes, can be reached by us alone, and is gone when its program ends, however that happens."""

import contextlib
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from launch import train
from launch.runtimes import tff_worker
from launch.runtimes.runtime import WorkerError
from launch.runtimes.tff_worker import run_tff

ROOT = pathlib.Path(__file__).parents[3]
# The worker alone, without TensorFlow in our own process.
PROGRAM = """
import os, signal, sys, time
from launch.runtimes.tff_worker import _run_worker
with _run_worker(sys.argv[1], sys.argv[1] + ".sock") as worker:
    print(worker.process.pid, flush=True)
    {ending}
"""
ENDINGS = {
    "end of the block": "pass",
    "exception": "raise RuntimeError('expected by the test')",
    "sys.exit": "sys.exit(3)",
    "os._exit": "os._exit(3)",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    "SIGINT": "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
}
COMPUTING_PROGRAM = """
import sys, threading
from launch.runtimes.runtime import WorkerError
from launch.runtimes.tff_worker import run_tff
with run_tff(sys.argv[1]):
    import numpy as np, tensorflow as tf, tensorflow_federated as tff
    @tff.tensorflow.computation(np.float32)
    def never_end(x):
        return tf.while_loop(lambda x: x < 2.0, lambda x: (tf.sin(x),), (x,))[0]
try:
    never_end(0.5)
except WorkerError as error:
    print(error, flush=True)
with run_tff(sys.argv[1]) as runtime:
    threading.Timer(1.0, print, (runtime.worker_pid,), {"flush": True}).start()
    never_end(0.5)
"""
# Runs a command in a user namespace whose kernel refuses network namespaces.
FORBIDDING = ["unshare", "--user", "--map-root-user", "sh", "-c"]
FORBIDDING += ['echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"', "sh"]

needs_network = pytest.mark.usefixtures("can_close")


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ("aarch64", "runs on x86-64 Linux only, and this is Linux on aarch64; --runtime=in_process needs no worker"),
        ("x86_64", "is not installed; to get it: make setup-tff"),
    ],
)
def test_without_a_worker_it_is_one_line(machine, expected, monkeypatch, tmp_path):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(tff_worker, "has_worker", lambda: False)
    with pytest.raises(WorkerError) as error, run_tff(str(tmp_path / "log")):
        pass
    assert str(error.value) == f"TFF's worker {expected}"


def test_a_missing_worker_is_got_before_a_run_or_ends_it_in_one_line_and_leaves_no_folder(monkeypatch, capfd, tmp_path):
    monkeypatch.setattr(tff_worker, "has_worker", lambda: False)
    monkeypatch.setattr(tff_worker, "SETUP", tmp_path / "setup_tff.sh")
    tff_worker.SETUP.write_text('echo "getting it for $PYTHON"')
    tff_worker.install_worker()
    assert capfd.readouterr().out == f"getting it for {sys.executable}\n"
    tff_worker.SETUP.write_text("echo 'setup-tff: no network; make setup-tff again' >&2; exit 1")
    run_dir = tmp_path / "run"
    assert train.main(["--algo=fedavg", "--runtime=tff", f"--run_dir={run_dir}"]) == 2
    assert capfd.readouterr() == ("", "error: --runtime=tff: no network; make setup-tff again\n")
    assert not run_dir.exists()


def get_network(pid):
    return os.readlink(f"/proc/{pid}/ns/net")


def wait_until_gone(*pids, timeout_s=10.0):
    """Whether the processes end within the time (a zombie, which its new parent has yet to reap, has ended)."""
    deadline_s = time.monotonic() + timeout_s
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() > deadline_s:
                    return False
                time.sleep(0.05)
    return True


@pytest.fixture(scope="module")
def computations():
    """(federated round: clients first, then the server's vector; per-client values)."""
    vector = tff.TensorType(np.float32, (3,))
    clients = tff.FederatedType(vector, tff.CLIENTS)
    server = tff.FederatedType(vector, tff.SERVER)

    @tff.tensorflow.computation(vector, vector)
    def work(x, weights):
        return {"delta": tf.sin(x) * weights, "num_examples": tf.reduce_sum(tf.abs(x))}

    @tff.federated_computation(clients, server)
    def run_round(values, weights):
        result = tff.federated_map(work, (values, tff.federated_broadcast(weights)))
        return tff.federated_mean(result.delta, result.num_examples), tff.federated_sum(result.num_examples)

    @tff.federated_computation(clients, server)
    def map_clients(values, weights):
        return tff.federated_map(work, (values, tff.federated_broadcast(weights)))

    return run_round, map_clients


@pytest.fixture
def alone(computations, monkeypatch):
    """A runtime of this test is the only one, whatever other tests have opened."""
    from launch.runtimes import tff_contexts

    outer = tff.framework.get_context_stack().current
    monkeypatch.setattr(tff_contexts, "_contexts_in_use", [])
    yield
    tff.framework.set_default_context(outer)


def make_arguments(num_clients: int) -> tuple[list[np.ndarray], np.ndarray]:
    values = np.random.default_rng(5).normal(size=(num_clients, 3)).astype(np.float32)
    return list(values), np.float32([1.0, -2.0, 0.5])


def assert_expected_results(computations, num_clients: int) -> None:
    """Compares with NumPy; the values of clients are all different, so their order counts."""
    run_round, map_clients = computations
    values, weights = make_arguments(num_clients)
    deltas, sizes = np.sin(values) * weights, np.abs(values).sum(axis=1)
    mean, total = run_round(values, weights)
    np.testing.assert_allclose(mean, (deltas * sizes[:, None]).sum(axis=0) / sizes.sum(), rtol=0, atol=1e-6)
    np.testing.assert_allclose(total, sizes.sum(), rtol=1e-6)
    mapped = map_clients(values, weights)
    np.testing.assert_allclose([client["delta"] for client in mapped], deltas, rtol=0, atol=1e-6)


@needs_network
def test_it_computes_and_is_gone_afterwards(computations, tmp_path, alone):
    with run_tff(str(tmp_path / "logs" / "worker.log")) as runtime:
        assert_expected_results(computations, num_clients=5)
        assert 10e6 < runtime.worker_memory_bytes() < 4e9
    assert not psutil.pid_exists(runtime.worker_pid)
    with pytest.raises(WorkerError, match=r"^no runtime is open; call computations inside `with run_in_process"):
        computations[0](*make_arguments(1))


@needs_network
def test_a_worker_that_is_killed_ends_the_running_and_the_next_computation_at_once(
    computations, run_for_ever, tmp_path
):
    run_round, _ = computations
    with run_tff(str(tmp_path / "worker.log")) as runtime:
        threading.Timer(1.0, os.kill, (runtime.worker_pid, signal.SIGKILL)).start()
        start_s = time.monotonic()
        with pytest.raises(WorkerError, match=r"the TFF worker \(process \d+\) was killed by SIGKILL") as raised:
            run_for_ever([0.5, 0.5])
        assert 0.9 < time.monotonic() - start_s < 10.0
        assert "\n" not in str(raised.value)
        with pytest.raises(WorkerError, match="was killed by SIGKILL"):
            run_round(*make_arguments(2))
        start_s = time.monotonic()
        with pytest.raises(KeyboardInterrupt), run_tff(str(tmp_path / "inner.log")):  # at whose end the outer is back
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
            run_for_ever([0.5, 0.5])
        assert time.monotonic() - start_s < 10.0
        with pytest.raises(WorkerError, match="was killed by SIGKILL"):
            run_round(*make_arguments(2))


@needs_network
def test_a_failed_computation_gives_one_line(tmp_path, computations):
    @tff.tensorflow.computation(np.str_)
    def read(path):
        return tf.io.read_file(path)

    with (
        run_tff(str(tmp_path / "worker.log")),
        pytest.raises(WorkerError, match=r"/no/shard.x; No such file") as raised,
    ):
        read("/no/shard.x")
    assert "\n" not in str(raised.value)


@needs_network
def test_a_killed_relay_ends_the_computation_in_one_line(computations, tmp_path):
    with run_tff(str(tmp_path / "worker.log")) as runtime:
        assert_expected_results(computations, num_clients=2)
        [relay] = psutil.Process(runtime.worker_pid).children()
        relay.kill()
        with pytest.raises(WorkerError, match=r"^the TFF worker does not answer any more$"):
            computations[0](*make_arguments(2))


@needs_network
def test_large_values_pass_in_both_directions_unchanged(tmp_path, computations):
    values = np.random.default_rng(0).normal(size=2**22).astype(np.float32)
    negate = tff.tensorflow.computation(lambda x: -x, tff.TensorType(np.float32, values.shape))
    with run_tff(str(tmp_path / "worker.log")):
        np.testing.assert_array_equal(negate(values), -values)


@needs_network
@pytest.mark.parametrize("ending", ENDINGS)
def test_no_worker_outlives_its_program_nor_holds_its_pipe(tmp_path, ending):
    command = [sys.executable, "-c", PROGRAM.format(ending=ENDINGS[ending]), str(tmp_path / "worker.log")]
    # `run` returns when the pipe is closed by all who hold it, as `tee` does
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert wait_until_gone(int(ended.stdout.splitlines()[0])), ended.stdout


@needs_network
def test_nobody_listens_during_a_round_and_nothing_is_left_of_a_killed_program(as_user, open_folder, find_listening):
    """The worker goes, and its relay. The socket has gone before. TensorFlow's start-up noise is in the log alone."""
    command = [*as_user, sys.executable, "-c", COMPUTING_PROGRAM, str(open_folder / "worker.log")]
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    environment |= {"TMPDIR": str(open_folder)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes) as program:
        try:
            refusal, pid = program.stdout.readline(), program.stdout.readline()
            assert refusal == "no runtime is open; call computations inside `with run_in_process(...)`\n"
            processes = psutil.Process(program.pid).children(recursive=True)
            assert [process.pid for process in processes][:1] == [int(pid)] and len(processes) == 2
            assert find_listening(program.pid) == []
            networks = {get_network(process.pid) for process in processes}
            assert len(networks) == 1 and get_network("self") not in networks
            assert not list(open_folder.glob("federated_worker_*"))
        finally:
            program.kill()
        assert program.stdout.read() == ""
    assert wait_until_gone(*(process.pid for process in processes))


@needs_network
def test_the_worker_is_separate_from_our_terminal_and_pipes_and_its_death_is_told_in_one_line(tmp_path):
    log = tmp_path / "worker.log"
    log.write_text("of an earlier run\n")
    with tff_worker._run_worker(str(log), str(tmp_path / "socket")) as worker:
        pid = worker.process.pid
        assert os.getsid(pid) != os.getsid(0)
        targets = [os.readlink(f"/proc/{pid}/fd/{descriptor}") for descriptor in (0, 1, 2)]
        assert targets == ["/dev/null", str(log), str(log)]
        assert worker.find_death(0.0) is None
        with open(log, "a") as file:
            file.writelines(f"line {i}\n" for i in range(100))
        os.kill(pid, signal.SIGKILL)
        death = worker.find_death(5.0)
    assert isinstance(death, WorkerError)
    assert str(death).endswith(f"was killed by SIGKILL, probably because memory ran out; its log: {log}")
    assert "\n" not in str(death)
    assert death.log_tail.splitlines() == [f"line {i}" for i in range(80, 100)]


@pytest.mark.tff
def test_where_no_network_can_be_had_a_run_ends_in_one_line(tmp_path):
    """No port is opened instead."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare of util-linux")
    flags = ["--algo=fedavg", "--runtime=tff", "--smoke", "--model=perceptron"]
    command = [*FORBIDDING, sys.executable, "-m", "launch.train", *flags, f"--run_dir={tmp_path / 'run'}"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    if "max_net_namespaces" in ended.stderr or ended.stderr.startswith("unshare:"):
        pytest.skip(f"no kernel that forbids networks can be had here: {ended.stderr}")
    [line] = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert line.startswith("error: TFF's worker cannot be closed off from others here (No space left on device); ")
    assert "--runtime=in_process" in line


def test_a_worker_that_does_not_answer_gives_one_line(tmp_path, computations):
    import socket

    from launch.runtimes.tff_contexts import connect

    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(path)
        silent.listen()
        with (
            pytest.raises(WorkerError, match=r"^the TFF worker does not answer within 0.5 s$"),
            connect(path, lambda seconds: None, 0.5),
        ):
            pass
