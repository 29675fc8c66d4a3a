"""Memory stays flat over a long run."""

import os
import pathlib
import subprocess
import sys

import pytest

from launch.runs.run_records import read_columns

ROOT = pathlib.Path(__file__).parents[3]
FIRST_ROUND, LAST_ROUND = 20, 200
MAX_GROWTH = 1.02


@pytest.mark.slow
def test_memory_stays_flat_while_cohorts_vary(tmp_path):
    """In a process of its own, as a user runs it: what other tests left in memory would hide or feign growth."""
    run_dir = tmp_path / "run"
    arguments = [f"--run_dir={run_dir}", f"--client_dir={tmp_path / 'shards'}", f"--rounds={LAST_ROUND}"]
    cohorts = ["--num_clients=10", "--participation=bernoulli", "--cohort_size=5"]
    with open(tmp_path / "log", "wb") as log:
        subprocess.run(
            [sys.executable, "-m", "launch.train", "--algo=fedavg", *cohorts, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=True,
            timeout=900,
        )
    assert len(set(read_columns(run_dir / "metrics.csv")["num_clients"])) > 5
    memory_bytes = read_columns(run_dir / "timing.csv")["host_memory_bytes"]
    early_bytes, late_bytes = memory_bytes[FIRST_ROUND - 1], memory_bytes[LAST_ROUND - 1]
    assert 0 < late_bytes < MAX_GROWTH * early_bytes, f"{early_bytes / 1e6:.1f} to {late_bytes / 1e6:.1f} MB"
