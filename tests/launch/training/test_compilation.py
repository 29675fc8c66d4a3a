"""Whether a run is compiled is settled when it begins."""

import json
import types

import numpy as np
import pytest
from small_formats import make_spec

from launch.settings.flags import FlagError
from launch.settings.run_config import build_run_config
from launch.train import main
from launch.training.compilation import LEAST_STEPS, count_steps, settle_compilation

SMALL = make_spec("perceptron", (8,), "float32", 4)
DATA = types.SimpleNamespace(num_train=np.array([10, 30, 50]), clients=[None] * 3)


def settle(spec=SMALL, **values):
    config = build_run_config({"algo": "fedavg", "epochs": 5, "batch_size": 16, **values})
    settled, of_run = settle_compilation(config, spec, DATA)
    assert of_run.compiled == (settled.compile == "on" and config.compile == "auto")  # `build_spec` does what is "on"
    return settled.compile


def test_steps_of_full_cohorts():
    """30 examples on average are 2 batches of 16; 5 epochs, 3 clients, or a cohort of 2, and 7 rounds."""
    values = {"algo": "fedavg", "epochs": 5, "batch_size": 16, "rounds": 7}
    assert count_steps(build_run_config(values), DATA) == 2 * 5 * 3 * 7
    assert count_steps(build_run_config({**values, "cohort_size": 2}), DATA) == 2 * 5 * 2 * 7


def test_both_trainings_of_fedsikd_count():
    values = {"algo": "fedsikd", "student_epochs": 2, "teacher_epochs": 3, "batch_size": 16}
    assert count_steps(build_run_config({**values, "rounds": 4}), DATA) == 2 * (2 + 3) * 3 * 4


def test_long_runs_of_small_models_are_compiled():
    rounds = LEAST_STEPS // 30
    assert settle(rounds=rounds) == "on"
    assert settle(rounds=rounds - 1) == "off"
    assert settle(rounds=rounds, runtime="tff") == "off"
    assert settle(rounds=rounds, compile="off") == "off"
    assert settle(make_spec("sensor_student", (32, 3), "float32", 4), rounds=rounds) == "off"


def test_what_is_asked_for_is_done_or_refused():
    assert settle(rounds=1, compile="on") == "on"
    quantized = make_spec("perceptron", (8,), "float32", 4, quantize="qat")
    with pytest.raises(FlagError, match=r"^--compile=on: perceptron cannot be compiled, since quantization"):
        settle(quantized, rounds=1, compile="on")


@pytest.mark.slow
def test_a_compiled_run_goes_on_with_the_same_bytes(tmp_path, monkeypatch):
    """It is compiled as it began, also if the request to go on would not have it so."""
    monkeypatch.chdir(tmp_path)
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    flags = ["--algo=fedavg", "--dataset=building", "--building_num_sensors=3", "--epochs=1", "--compile=on"]
    assert main([*flags, "--rounds=2", f"--run_dir={straight}"]) == 0
    assert main([*flags, "--rounds=1", f"--run_dir={resumed}"]) == 0
    assert main(["--resume", "--rounds=2", "--compile=auto", f"--run_dir={resumed}"]) == 0
    assert json.loads((resumed / "config.json").read_text())["flags"]["compile"] == "on"
    assert (straight / "metrics.csv").read_bytes() == (resumed / "metrics.csv").read_bytes()
