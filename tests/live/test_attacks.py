"""Strangers and clients that mean harm do none to a run that trains meanwhile; a short form of `attacks.py`."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
LIMIT_S = 900


def test_a_run_trains_on_under_attack_and_loses_nothing(live_python):
    command = (
        sys.executable,
        str(ROOT / "tests/live/attacks.py"),
        f"--python={live_python}",
        "--scale=0.1",
        "--rounds=25",
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
