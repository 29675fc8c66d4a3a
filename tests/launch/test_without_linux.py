"""Commands where Python finds nothing that macOS lacks: no list of cores, no death signal, no /proc/cpuinfo."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.slow
def test_a_run_its_export_and_a_sweep_work(tmp_path, without_linux):
    def run(command, *arguments):
        subprocess.run(
            [sys.executable, "-m", f"launch.{command}", *arguments],
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": without_linux},
        )

    run_dir, sweep_dir = tmp_path / "run", tmp_path / "sweep"
    run("train", "--algo=fedavg", "--smoke", f"--run_dir={run_dir}")
    run("export", f"--run_dir={run_dir}", "--formats=float32")
    run("sweep", "--algos=fedavg", "--seeds=0,1", "--jobs=2", f"--runs_dir={sweep_dir}", "--", "--smoke")
    assert (run_dir / "export" / "global.float32.tflite").exists()
    metrics = [path.read_bytes() for path in sorted(sweep_dir.glob("*/seed_*/metrics.csv"))]
    assert len(metrics) == 2 and metrics[0] == (run_dir / "metrics.csv").read_bytes()
