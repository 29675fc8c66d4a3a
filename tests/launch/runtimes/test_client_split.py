"""The cut of the clients belongs to the run: it gives the same bytes on any number of workers, dying ones too."""

import os
import signal
import threading
import time

import numpy as np
import psutil
import pytest

from launch.runtimes.runtime import WorkerError, quiet_tensorflow, run_tff

NUM_CLIENTS = 7


@pytest.fixture(scope="module")
def computations(tmp_path_factory):
    """(sum over the clients of what takes each of them `steps` steps, the clients' own values of the same)."""
    with quiet_tensorflow(str(tmp_path_factory.mktemp("log") / "tensorflow.log")):
        import tensorflow as tf
        import tensorflow_federated as tff
    vector = tff.TensorType(np.float32, (50,))
    client_type = tff.FederatedType([("x", vector), ("steps", np.int32)], tff.CLIENTS)

    @tff.tensorflow.computation(client_type.member)
    def work(client):
        step = lambda i, x: (i + 1, x + tf.sin(x))
        return tf.while_loop(lambda i, x: i < client["steps"], step, (0, client["x"]))[1]

    add_up = tff.federated_computation(lambda each: tff.federated_sum(tff.federated_map(work, each)), client_type)
    return add_up, tff.federated_computation(lambda each: tff.federated_map(work, each), client_type)


def make_clients(steps=3):
    rng = np.random.default_rng(1)
    return [{"x": rng.normal(0, 1e3, 50).astype(np.float32), "steps": steps} for _ in range(NUM_CLIENTS)]


@pytest.fixture(scope="module")
def expected(computations, tmp_path_factory):
    """The bytes of both computations with 1 and with 2 shares, each on as many workers."""
    results = {}
    for num_shares in (1, 2):
        with run_tff(str(tmp_path_factory.mktemp("log") / "worker.log"), num_workers=num_shares):
            results[num_shares] = compute(computations, make_clients())
    return results


def compute(computations, clients):
    add_up, map_clients = computations
    return add_up(clients).tobytes(), np.stack(map_clients(clients)).tobytes()


def test_the_cut_shows_in_the_bytes_of_a_sum_but_not_in_values_of_clients(expected):
    """Without this, equal bytes would prove nothing."""
    assert expected[1][0] != expected[2][0]
    assert expected[1][1] == expected[2][1]


@pytest.mark.parametrize(("num_shares", "num_workers"), [(1, 2), (2, 1), (2, 3)])
def test_the_number_of_workers_changes_no_byte(computations, tmp_path, expected, num_shares, num_workers):
    with run_tff(str(tmp_path / "worker.log"), num_workers=num_workers, num_shares=num_shares):
        assert compute(computations, make_clients()) == expected[num_shares]


def count_steps(add_up, seconds):
    """How many steps of each client make a call last so long, roughly."""
    steps = 10**4
    start_s = time.monotonic()
    add_up(make_clients(steps))
    return max(steps, int(steps * seconds / (time.monotonic() - start_s)))


@pytest.mark.parametrize("victim", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_worker_that_is_killed_in_a_round_changes_no_byte(computations, tmp_path, victim, capsys):
    add_up, _ = computations
    with run_tff(str(tmp_path / "worker.log"), num_workers=2) as runtime:
        steps = count_steps(add_up, seconds=1.0)
        undisturbed = add_up(make_clients(steps)).tobytes()
        assert capsys.readouterr().out == ""
        killed_s = []

        def kill():
            os.kill(runtime.pids[victim], signal.SIGKILL)
            killed_s.append(time.monotonic())

        threading.Timer(0.2, kill).start()
        assert add_up(make_clients(steps)).tobytes() == undisturbed
        assert killed_s and killed_s[0] < time.monotonic() - 0.2  # it was in the middle
        [line] = capsys.readouterr().out.splitlines()
        assert f"process {runtime.pids[victim]}) was killed by SIGKILL" in line
        assert line.endswith("; the 1 worker that is left computes its clients from now on, with the same results")
        assert not psutil.pid_exists(runtime.pids[victim])
        assert add_up(make_clients(steps)).tobytes() == undisturbed
        assert capsys.readouterr().out == ""
        os.kill(runtime.pids[1 - victim], signal.SIGKILL)
        with pytest.raises(WorkerError, match=rf"process {runtime.pids[1 - victim]}\) was killed by SIGKILL"):
            add_up(make_clients(steps))


def test_a_computation_that_fails_is_not_tried_on_another_worker(tmp_path, computations, capsys):
    import tensorflow as tf
    import tensorflow_federated as tff

    read = tff.tensorflow.computation(lambda path: tf.strings.length(tf.io.read_file(path)), np.str_)
    read_all = tff.federated_computation(
        lambda paths: tff.federated_sum(tff.federated_map(read, paths)), tff.FederatedType(np.str_, tff.CLIENTS)
    )
    with (
        run_tff(str(tmp_path / "worker.log"), num_workers=2),
        pytest.raises(WorkerError, match=r"/no/shard.[xy]; No such file"),
    ):
        read_all(["/no/shard.x", "/no/shard.y"])
    assert capsys.readouterr().out == ""
