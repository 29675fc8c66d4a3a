"""A search that really trains is killed and started again: the same trials, and runs that were stopped can go on."""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("optuna") is None, reason="Optuna is not installed (make test-tune installs it apart)"
    ),
]
ROOT = pathlib.Path(__file__).parents[2]
ROUNDS = 40
EXPERIMENT = f"""
--algo=fedavg
--runtime=in_process
--num_clients=3
--rounds={ROUNDS}
--optimizer=sgd
"""


def start(folder):
    (folder / "a.flags").write_text(EXPERIMENT)
    arguments = [
        *("--experiment=a.flags", "--search=learning_rate=log(1e-6,0.1);epochs=int(1,3)"),
        *("--trials=10", "--seeds=100", "--pruner=median", "--jobs=1", "--runs_dir=runs", "--output=trials.csv"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "launch.tune", *arguments], cwd=folder, env=environment, stdout=log, stderr=log
        )


def wait_for(path, process):
    deadline_s = time.monotonic() + 600
    while not path.exists():
        assert process.poll() is None and time.monotonic() < deadline_s
        time.sleep(0.05)


def test_a_killed_search_ends_with_the_same_trials_and_consistent_folders(tmp_path):
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    for folder in (straight, killed):
        folder.mkdir()
    assert start(straight).wait(900) == 0, (straight / "log").read_text()[-3000:]
    for trial in (2, 7):
        process = start(killed)
        wait_for(killed / "runs" / "a" / f"trial_{trial}" / "seed_100" / "metrics.csv", process)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        # Its run is killed by the kernel, and lets the folder go.
        time.sleep(2)
    assert start(killed).wait(900) == 0, (killed / "log").read_text()[-3000:]
    assert (killed / "trials.csv").read_bytes() == (straight / "trials.csv").read_bytes()

    # A run may come to its end before it is found to be behind, but hardly every one of 40 rounds.
    run_dir = next(
        path.parent for path in sorted(straight.rglob("pruned.json")) if not path.with_name("summary.json").exists()
    )
    mark = json.loads((run_dir / "pruned.json").read_text())
    rounds = len((run_dir / "metrics.csv").read_text().splitlines()) - 1
    assert mark["round_num"] <= rounds < ROUNDS
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(straight / "cache")}
    resumed = subprocess.run(
        [sys.executable, "-m", "launch.train", "--resume", f"--run_dir={run_dir}"],
        cwd=straight,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    assert len((run_dir / "metrics.csv").read_text().splitlines()) - 1 == ROUNDS
