"""Ctrl-C while a run is still loading TensorFlow, tracing its model or training: it ends, in one line, every time."""

import signal
import time

import pytest
from lives import Life


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["in_process", pytest.param("tff", marks=pytest.mark.tff)])
@pytest.mark.parametrize("delay_s", [0.0, 0.3, 0.7, 1.2, 2.0, 3.0, 4.5, 6.0, 9.0, 13.0])
def test_ctrl_c_ends_a_run_that_is_being_loaded(tmp_path, runtime, delay_s, request):
    if runtime == "tff":
        request.getfixturevalue("can_close")
    flags = ["--algo=fedavg", f"--runtime={runtime}", "--rounds=1000", "--num_clients=4"]
    life = Life(tmp_path, flags, PYTHONUNBUFFERED="1")
    while "clients " not in life.output.read_text():  # what is said before TensorFlow is imported
        assert life.process.poll() is None, life.output.read_text()
        time.sleep(0.01)
    time.sleep(delay_s)
    pressed_s = time.monotonic()
    life.process.send_signal(signal.SIGINT)
    life.end((130,))
    assert time.monotonic() - pressed_s < 60
    assert life.output.read_text().splitlines()[-1].startswith("stopped; ")
