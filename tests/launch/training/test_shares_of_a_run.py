"""A run that began on two workers gives the same bytes when one dies, and when it goes on with fewer or more."""

import contextlib
import json
import os
import signal
import threading
import time

import numpy as np
import pytest

from launch import train
from launch.runtimes.worker_process import Threads, run_worker

ROUNDS = 4
TRAINING = ("--algo=fedavg", "--num_clients=7", f"--rounds={ROUNDS}")


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """The addresses of three workers."""
    folder = tmp_path_factory.mktemp("workers")
    with contextlib.ExitStack() as stack:
        logs = [str(folder / f"{name}.log") for name in "abc"]
        yield [stack.enter_context(run_worker(log, Threads(1, 2, 4))).address for log in logs]


def train_on(run_dir, workers, *flags):
    """Trains; returns what is in metrics.csv and in the checkpoint of the last round."""
    assert train.main([f"--run_dir={run_dir}", f"--workers={','.join(workers)}", *flags]) == 0
    [*_, checkpoint] = sorted((run_dir / "checkpoints").iterdir())
    with np.load(checkpoint) as arrays:
        state = {name: arrays[name].tobytes() for name in arrays}
    return (run_dir / "metrics.csv").read_bytes(), state


@pytest.fixture(scope="module")
def straight(tmp_path_factory, workers):
    """What an undisturbed run on two workers gives."""
    return train_on(tmp_path_factory.mktemp("runs") / "straight", workers[:2], *TRAINING)


@pytest.mark.slow
def test_the_cut_shows_in_the_bytes(tmp_path, workers, straight):
    """Without this, equal bytes would prove nothing."""
    assert train_on(tmp_path / "run", workers[:1], *TRAINING) != straight


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_a_run_resumed_on_another_number_of_workers_gives_the_same_bytes(tmp_path, workers, straight, num_workers):
    """Without a worker of others, the run starts one of its own."""
    train_on(tmp_path / "run", workers[:2], *TRAINING, "--rounds=2")
    assert train_on(tmp_path / "run", workers[:num_workers], "--resume", f"--rounds={ROUNDS}") == straight
    assert json.loads((tmp_path / "run" / "config.json").read_text())["num_shares"] == 2


@pytest.mark.slow
def test_a_worker_killed_in_mid_run_changes_no_byte(tmp_path, workers, straight, capsys):
    with run_worker(str(tmp_path / "victim.log"), Threads(1, 2, 4)) as victim:

        def kill():
            metrics = tmp_path / "run" / "metrics.csv"
            while not metrics.exists() or len(metrics.read_text().splitlines()) < 3:
                time.sleep(0.01)
            os.kill(victim.process.pid, signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        assert train_on(tmp_path / "run", [workers[0], victim.address], *TRAINING) == straight
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning")]
    assert line.startswith(f"warning  the TFF worker at {victim.address} does not answer any more; the 1 worker")
