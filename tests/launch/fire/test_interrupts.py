"""Ctrl-C while a run is still loading TensorFlow, tracing its model or training: it ends, in one line, every time."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).parents[3]
DELAYS_S = (0.0, 0.3, 0.7, 1.2, 2.0, 3.0, 4.5, 6.0, 9.0, 13.0)
DEADLINE_S = 60


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["in_process", pytest.param("tff", marks=pytest.mark.tff)])
def test_ctrl_c_ends_a_run_that_is_being_loaded(tmp_path, runtime, request):
    if runtime == "tff":
        request.getfixturevalue("can_close")
    for i, delay_s in enumerate(DELAYS_S):
        run_dir, errors, output = tmp_path / f"run_{i}", tmp_path / "err.txt", tmp_path / "out.txt"
        flags = ["--algo=fedavg", f"--runtime={runtime}", "--rounds=1000", "--num_clients=4"]
        with output.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "launch.train",
                    *flags,
                    f"--run_dir={run_dir}",
                    f"--client_dir={tmp_path / 's'}",
                ],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
                stdout=out,
                stderr=err,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
        while "clients " not in output.read_text():  # what is said before TensorFlow is imported
            assert process.poll() is None, errors.read_text()
            time.sleep(0.01)
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        try:
            exit_code = process.wait(DEADLINE_S)
        finally:
            process.kill()
        assert exit_code == 130
        [line] = errors.read_text().splitlines()
        assert line.startswith("stopped; ")
