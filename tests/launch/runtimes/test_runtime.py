"""Runs real workers: results of one and of two, and what happens when they die or are interrupted."""

import contextlib
import logging.handlers
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest

from launch.runtimes import runtime as runtime_module
from launch.runtimes.runtime import WorkerError, quiet_tensorflow, run_tff
from launch.runtimes.worker_process import Threads, run_worker

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope="module")
def computations(tmp_path_factory):
    """(federated round: clients first, then the server's vector; per-client values; an endless computation)."""
    with quiet_tensorflow(str(tmp_path_factory.mktemp("log") / "tensorflow.log")):
        import tensorflow as tf
        import tensorflow_federated as tff
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

    @tff.tensorflow.computation(np.float32)
    def never_end(x):
        return tf.while_loop(lambda x: x < 2.0, lambda x: (tf.sin(x),), (x,))[0]

    @tff.federated_computation(tff.FederatedType(np.float32, tff.CLIENTS))
    def run_for_ever(values):
        return tff.federated_sum(tff.federated_map(never_end, values))

    return run_round, map_clients, run_for_ever


@pytest.fixture
def alone(computations, monkeypatch):
    """A runtime of this test is the only one, whatever other tests have opened."""
    import tensorflow_federated as tff

    from launch.runtimes import tff_contexts

    outer = tff.framework.get_context_stack().current
    monkeypatch.setattr(tff_contexts, "_contexts_in_use", [])
    yield
    tff.framework.set_default_context(outer)


def make_arguments(num_clients: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(5)
    return list(rng.normal(size=(num_clients, 3)).astype(np.float32)), np.float32([1.0, -2.0, 0.5])


def assert_expected_results(computations, num_clients: int) -> None:
    """Compares with NumPy; the values of clients are all different, so their order counts."""
    run_round, map_clients, _ = computations
    values, weights = make_arguments(num_clients)
    deltas, sizes = np.sin(values) * weights, np.abs(values).sum(axis=1)
    mean, total = run_round(values, weights)
    np.testing.assert_allclose(mean, (deltas * sizes[:, None]).sum(axis=0) / sizes.sum(), rtol=0, atol=1e-6)
    np.testing.assert_allclose(total, sizes.sum(), rtol=1e-6)
    mapped = map_clients(values, weights)
    np.testing.assert_allclose([client["delta"] for client in mapped], deltas, rtol=0, atol=1e-6)


def test_one_worker_computes_and_is_gone_afterwards(computations, tmp_path, alone):
    with run_tff(str(tmp_path / "logs" / "worker.log")) as runtime:
        assert_expected_results(computations, num_clients=5)
        assert 10e6 < runtime.worker_memory_bytes() < 4e9
        assert len(runtime.pids) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(runtime.pids[0], 0)
    with pytest.raises(WorkerError, match=r"^no TFF worker is running; call computations inside `with run_tff"):
        computations[0](*make_arguments(1))


def test_the_end_of_an_inner_runtime_gives_the_outer_one_back(computations, tmp_path):
    with run_tff(str(tmp_path / "outer.log")):
        with run_tff(str(tmp_path / "inner.log")):
            pass
        assert_expected_results(computations, num_clients=2)


def test_two_workers_equal_one(computations, tmp_path):
    with run_tff(str(tmp_path / "worker.log"), num_workers=2) as runtime:
        assert len(runtime.pids) == 2
        for num_clients in (1, 2, 7):
            assert_expected_results(computations, num_clients)
    assert (tmp_path / "worker_2.log").exists()


def test_workers_given_by_address_equal_one_and_are_left_running(computations, tmp_path):
    threads = Threads(1, 2, 4)
    with run_worker(str(tmp_path / "a.log"), threads) as first, run_worker(str(tmp_path / "b.log"), threads) as second:
        addresses = [first.address, f" {second.address}"]
        with run_tff(str(tmp_path / "worker.log"), workers=addresses) as runtime:
            assert_expected_results(computations, num_clients=7)
        assert (runtime.pids, runtime.worker_memory_bytes()) == ((), 0)
        with run_tff(str(tmp_path / "worker.log"), workers=[first.address]):
            assert_expected_results(computations, num_clients=3)
        assert first.is_alive()
        assert second.is_alive()


@pytest.mark.parametrize("num_workers", [1, 2])
def test_when_all_workers_are_killed_the_computation_ends_at_once(computations, tmp_path, num_workers):
    _, _, run_for_ever = computations
    with run_tff(str(tmp_path / "worker.log"), num_workers=num_workers) as runtime:
        for pid in runtime.pids:
            threading.Timer(1.0, os.kill, (pid, signal.SIGKILL)).start()
        start_s = time.monotonic()
        with pytest.raises(WorkerError, match=r"the TFF worker \(process \d+\) was killed by SIGKILL") as raised:
            run_for_ever([0.5, 0.5])
        assert 0.9 < time.monotonic() - start_s < 10.0
        assert "\n" not in str(raised.value)


def test_a_worker_killed_between_computations_is_noticed_by_the_next(computations, tmp_path):
    with run_tff(str(tmp_path / "worker.log")) as runtime:
        os.kill(runtime.pids[0], signal.SIGKILL)
        with pytest.raises(WorkerError, match="was killed by SIGKILL"):
            computations[0](*make_arguments(2))


def test_a_worker_elsewhere_that_goes_away_is_noticed(computations, tmp_path):
    log = str(tmp_path / "a.log")
    with run_worker(log, Threads(1, 2, 4)) as worker, run_tff(str(tmp_path / "worker.log"), [worker.address]):
        threading.Timer(1.0, os.kill, (worker.process.pid, signal.SIGKILL)).start()
        with pytest.raises(WorkerError, match=f"the TFF worker at {worker.address} does not answer any more"):
            computations[2]([0.5])


def test_ctrl_c_interrupts_a_computation(computations, tmp_path):
    start_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt), run_tff(str(tmp_path / "worker.log")):
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        computations[2]([0.5, 0.5])
    assert time.monotonic() - start_s < 10.0


def test_a_failed_computation_gives_one_line(tmp_path, computations):
    import tensorflow as tf
    import tensorflow_federated as tff

    @tff.tensorflow.computation(np.str_)
    def read(path):
        return tf.io.read_file(path)

    with (
        run_tff(str(tmp_path / "worker.log")),
        pytest.raises(WorkerError, match=r"/no/shard.x; No such file") as raised,
    ):
        read("/no/shard.x")
    assert "\n" not in str(raised.value)


def test_a_worker_that_does_not_answer_gives_one_line(tmp_path, computations):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(WorkerError) as raised, run_tff(str(tmp_path / "log"), [address], ready_timeout_s=0.5):
            pass
    assert str(raised.value) == f"no TFF worker answers at {address} within 0.5 s; is it running there?"


def test_several_workers_work_at_the_same_time(computations):
    from launch.runtimes.client_split import WorkerLoop

    meeting = threading.Barrier(2, timeout=10.0)

    class MeetingContext:
        async def invoke(self, comp, arg):
            return meeting.wait()  # blocks the event loop, as TFF's contexts do

    futures = [worker.submit(None, None) for worker in (WorkerLoop(MeetingContext()), WorkerLoop(MeetingContext()))]
    assert sorted(future.result(timeout=10.0) for future in futures) == [0, 1]


def test_shares_are_even_in_order_and_never_empty(computations):
    from launch.runtimes.client_split import split_evenly

    assert split_evenly(7, 3) == [(0, 2), (2, 4), (4, 7)]
    assert split_evenly(2, 5) == [(0, 1), (1, 2)]


def test_importing_the_runtime_imports_no_tensorflow():
    heavy = "('tensorflow', 'tensorflow_federated')"
    program = f"import launch.runtimes.runtime, sys; print([m for m in {heavy} if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "[]\n"


def test_notices_of_deprecation_are_switched_off_and_other_warnings_are_not(tmp_path, capsys):
    with quiet_tensorflow(str(tmp_path / "tensorflow.log")):
        pass
    handler = logging.handlers.BufferingHandler(10)
    logger = logging.getLogger("tensorflow")
    logger.addHandler(handler)
    logger.warning("From x.py:1: f (from g) is deprecated and will be removed in a future version.")
    logger.warning("something else")
    logger.removeHandler(handler)
    assert [record.getMessage() for record in handler.buffer] == ["something else"]


def test_our_worker_starts_before_tff_is_imported(tmp_path, monkeypatch):
    """Both take long, and the import keeps only this process busy."""
    events = []

    @contextlib.contextmanager
    def start(*_):
        events.append("worker")
        try:
            yield types.SimpleNamespace(address="127.0.0.1:1", process=None)
        finally:
            events.append("stopped")

    def fail_to_import(name):
        events.append(name)
        if name != "tensorflow":
            raise ImportError(name)

    monkeypatch.setattr(runtime_module, "run_worker", start)
    monkeypatch.setattr(runtime_module, "import_quickly", fail_to_import)
    with pytest.raises(ImportError), run_tff(str(tmp_path / "worker.log")):
        pass
    assert events == ["worker", "tensorflow", "launch.runtimes.tff_contexts", "stopped"]
