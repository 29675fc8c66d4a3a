"""The program as a person runs it: a real run, its folder, and going on after Ctrl-C and SIGKILL."""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from launch import evaluate

ROOT = pathlib.Path(__file__).parents[2]
ARGUMENTS = ("--algo=fedavg", "--num_clients=3", "--seed=1")


def start_train(tmp_path, *arguments):
    """Starts the program with Ctrl-C working as on a terminal, its output in files."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    return subprocess.Popen(
        [sys.executable, "-m", "launch.train", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=open(tmp_path / "out.txt", "w"),
        stderr=open(tmp_path / "err.txt", "w"),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def train(tmp_path, *arguments):
    """Runs the program to its end: (exit code, stdout, stderr)."""
    code = start_train(tmp_path, *arguments).wait(300)
    return code, (tmp_path / "out.txt").read_text(), (tmp_path / "err.txt").read_text()


def wait_for_round(tmp_path, process, round_num):
    deadline_s = time.monotonic() + 200
    while f"round {round_num}/" not in (tmp_path / "out.txt").read_text():
        assert process.poll() is None, (tmp_path / "err.txt").read_text()
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    """(run folder, stdout) of a smoke run."""
    tmp_path = tmp_path_factory.mktemp("train")
    code, out, err = train(tmp_path, "--algo=fedavg", "--smoke", f"--run_dir={tmp_path / 'run'}")
    assert code == 0, err
    assert err == ""
    return tmp_path / "run", out


def test_run_says_what_it_does_and_leaves_its_folder(finished_run):
    run_dir, out = finished_run
    starts = [line.split()[0] for line in out.splitlines()]
    assert starts == ["run", "data", "clients", "model", "round", "round", "done", "next"]
    names = {path.name for path in run_dir.iterdir()}
    assert {"config.json", "metrics.csv", "timing.csv", "clients.csv", "summary.json", "worker.log"} <= names
    assert {"checkpoints", "tensorboard", "plots", "models"} <= names
    assert (run_dir / "plots" / "partition.png").exists()
    with open(run_dir / "metrics.csv", newline="") as file:
        assert [row["round"] for row in csv.DictReader(file)] == ["1", "2"]
    assert list(json.loads((run_dir / "summary.json").read_text())) == [
        *("algo", "dataset", "seed", "rounds", "final", "best", "clients", "bytes_up", "bytes_down"),
        *("virtual_time_s", "train_seconds", "seconds_per_round", "fedavg"),
    ]


def test_finished_run_is_evaluated_to_the_same_numbers(finished_run, capsys):
    run_dir, _ = finished_run
    run = evaluate.read_finished_run(str(run_dir))
    rows = evaluate.evaluate_run(run, evaluate.choose_models(run, ""), "")
    summary = json.loads((run_dir / "summary.json").read_text())
    assert rows[0][:2] == ("global", "global")
    assert rows[0].accuracy == pytest.approx(summary["final"]["test_accuracy"], abs=1e-5)
    own = [row.accuracy for row in rows[1:]]
    assert sum(own) / len(own) == pytest.approx(summary["clients"]["accuracy_mean"], abs=1e-6)


def test_existing_folder_is_refused_in_one_line(finished_run, tmp_path):
    run_dir, _ = finished_run
    code, out, err = train(tmp_path, "--algo=fedavg", f"--run_dir={run_dir}")
    assert (code, out, len(err.splitlines())) == (2, "", 1)


@pytest.mark.slow
def test_run_stopped_and_killed_and_resumed_has_the_bytes_of_a_straight_one(tmp_path):
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    assert train(tmp_path, *ARGUMENTS, "--rounds=12", f"--run_dir={straight}")[0] == 0
    process = start_train(tmp_path, *ARGUMENTS, "--rounds=12", f"--run_dir={broken}")
    wait_for_round(tmp_path, process, 3)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert "--resume --run_dir=" in (tmp_path / "err.txt").read_text()
    process = start_train(tmp_path, "--resume", f"--run_dir={broken}")
    wait_for_round(tmp_path, process, 6)
    process.kill()
    process.wait(60)
    assert train(tmp_path, "--resume", f"--run_dir={broken}")[0] == 0
    assert (broken / "metrics.csv").read_bytes() == (straight / "metrics.csv").read_bytes()
