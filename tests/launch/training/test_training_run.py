"""What comes before and around the rounds of a run: how it is stopped, and what it must not know."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import types

import numpy as np
import pytest
from small_formats import make_spec

from launch.pages.report import page
from launch.runs.errors import RunStopped
from launch.runs.run_folder import RunFolder
from launch.runs.run_records import read_columns
from launch.runtimes.runtime import ComputationError, WorkerError
from launch.settings.algorithms import ALGORITHMS
from launch.settings.flags import FlagError
from launch.settings.run_config import build_run_config
from launch.train import main
from launch.training.announcements import find_models
from launch.training.run_runtime import LEAST_STEPS, count_steps, settle_compilation
from launch.training.training_run import (
    _open_folder,
    _stop_in_one_line,
    has_one_model,
    write_page,
)

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("first\nout of memory", "error: it died (out of memory); nothing was trained yet"),
        ("x" * 1000, "error: it died; nothing was trained yet"),
        ("", "error: it died; nothing was trained yet"),
    ],
)
def test_a_dead_worker_is_one_line_with_its_last_words(tmp_path, tail, expected):
    folder = RunFolder(tmp_path, is_new=True)
    with pytest.raises(RunStopped) as caught, _stop_in_one_line(folder, build_run_config({"algo": "fedavg"})):
        raise WorkerError("it died", tail)
    folder.close()
    assert (str(caught.value), caught.value.exit_code) == (expected, 1)


@pytest.mark.parametrize(
    ("model", "expected", "exit_code"),
    [
        ("auto", "error: a computation failed: too large; nothing was trained yet", 1),
        ("own:build", "error: --model=own:build, round 1: a computation failed: too large", 2),
    ],
)
def test_numbers_that_an_operation_refuses_are_a_mistake_of_own_code_where_there_is_some(
    tmp_path, model, expected, exit_code
):
    folder, config = RunFolder(tmp_path, is_new=True), build_run_config({"algo": "fedavg", "model": model})
    error = ComputationError("a computation failed: too large")
    error.add_note("round 1")
    with pytest.raises(RunStopped) as caught, _stop_in_one_line(folder, config):
        raise error
    folder.close()
    assert str(caught.value).startswith(expected) and caught.value.exit_code == exit_code


@pytest.mark.parametrize(
    ("left", "is_passing", "expected"),
    [
        ({}, False, "nothing was trained yet"),
        ({"config.json"}, False, "go on with: python -m launch.train --resume --run_dir="),
        ({"metrics.csv"}, False, "config.json is gone, without which the run cannot go on; its results so far are"),
        ({"config.json", "metrics.csv"}, True, "nothing is kept of a smoke run"),
    ],
)
def test_how_to_go_on_is_named_only_where_it_works(tmp_path, left, is_passing, expected):
    (tmp_path / "run").mkdir()
    folder = RunFolder(tmp_path / "run", is_new=True, is_passing=is_passing)
    for name in left:
        (folder.path / name).write_text("{}")
    folder.has_begun = bool(left)
    with pytest.raises(RunStopped) as caught, _stop_in_one_line(folder, build_run_config({"algo": "fedavg"})):
        raise KeyboardInterrupt
    folder.discard()
    folder.close()
    assert str(caught.value).startswith("stopped; ") and expected in str(caught.value)
    assert folder.path.exists() == (bool(left) and not is_passing)


@pytest.mark.parametrize(
    ("names", "is_personal", "has_one"),
    [
        (["global", "global"], False, True),
        # A start to fine-tune from.
        (["global", "global"], True, False),
        (["cluster_0", "cluster_1"], False, False),
        # Others are alive, but nobody uses them.
        (["model_3", "model_3"], False, True),
    ],
)
def test_only_one_model_for_all_has_to_know_all_labels(names, is_personal, has_one):
    process = types.SimpleNamespace(is_personal=is_personal, client_model=lambda state: names)
    assert has_one_model(process, None) == has_one


def test_models_are_built_once_to_be_measured_and_announced():
    """student and teacher: 4 bytes times so many weights each, and both numbers of parameters in the line."""
    builds = []

    def count(spec):
        return dataclasses.replace(spec, build=lambda: builds.append(spec.name) or spec.build())

    spec = make_spec("auto", (8, 8, 1), "uint8", 10)
    counted = dataclasses.replace(count(spec), teacher=count(spec.teacher))
    assert sum(shape[0] for shape in counted.weight_shapes) > 0
    [(_, text)] = find_models(build_run_config({"algo": "fedsikd"}), counted)
    assert text == "image_student (17,194 parameters), its teacher image_teacher (93,322)"
    assert builds == ["image_student", "image_teacher"]


@pytest.mark.parametrize("flags", [{"algo": "fedavg"}, {"algo": "fedcd"}, {"algo": "fedsikd", "label_weight": 1.0}])
def test_a_teacher_that_is_not_trained_is_not_announced(flags):
    found = find_models(build_run_config(flags), make_spec("auto", (8, 8, 1), "uint8", 10))
    assert list(found) == [("model", "image_student (17,194 parameters)")]


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_run_that_is_wrong_in_its_first_round_leaves_no_folder(tmp_path, rounds):
    """As of a user's algorithm whose `next` gives a dict; with a round in it, it stays."""
    config = build_run_config({"algo": "fedavg", "run_dir": str(tmp_path / "run")})
    with pytest.raises(FlagError, match="expected a RoundOutput"), _open_folder(config, "") as folder:
        folder.config.write_text("{}")
        folder.has_begun = True
        if rounds:
            folder.metrics.write_text("round\n1\n")
        raise FlagError("next: expected a RoundOutput")
    assert (tmp_path / "run").exists() == bool(rounds)


def test_importing_the_training_run_imports_no_tensorflow():
    program = "import sys, launch.training.training_run; print('tensorflow' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "False\n", ended.stderr


def test_no_algorithm_is_known_by_name():
    """Nor a module of one: the rounds are those of `FederatedProcess`, whatever it is."""
    names = {*ALGORITHMS, *(path.name for path in (ROOT / "tff_algos").iterdir() if (path / "config.py").exists())}
    for module in ("training_run", "round_loop", "announcements", "results", "evaluation"):
        text = (ROOT / "launch" / "training" / f"{module}.py").read_text(encoding="utf-8")
        assert not {name for name in names if re.search(rf"(?<!settings\.)\b{name}\b", text)}, module


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({}, "new"),
        # Nor does the page of a run that went on stay.
        ({"run_page": False}, None),
        # The folder of a smoke run is removed, unless it is named.
        ({"smoke": True}, None),
        ({"smoke": True, "run_dir": "named"}, "new"),
    ],
)
def test_a_run_has_a_page_where_it_is_wanted(tmp_path, monkeypatch, config, text):
    report = tmp_path / "report.html"
    report.write_text("earlier")
    monkeypatch.setattr(page, "write_run_page", lambda run_dir: (run_dir / "report.html").write_text("new"))
    write_page(build_run_config({"algo": "fedavg", **config}), types.SimpleNamespace(path=tmp_path))
    assert (report.read_text() if report.exists() else None) == text


SMALL = make_spec("perceptron", (8,), "float32", 4)
# 30 examples on average.
DATA = types.SimpleNamespace(num_train=np.array([10, 30, 50]), clients=[None] * 3)


def settle(spec=SMALL, **values):
    config = build_run_config({"algo": "fedavg", "epochs": 5, "batch_size": 16, **values})
    settled, of_run = settle_compilation(config, spec, DATA)
    # `build_spec` does what is "on".
    assert of_run.compiled == (settled.compile == "on" and config.compile == "auto")
    return settled.compile


@pytest.mark.parametrize(
    ("flags", "steps"),
    [
        # 30 examples on average are 2 batches of 16; 5 epochs, 3 clients, or a cohort of 2, and 7 rounds.
        ({"algo": "fedavg", "epochs": 5, "rounds": 7}, 2 * 5 * 3 * 7),
        ({"algo": "fedavg", "epochs": 5, "rounds": 7, "cohort_size": 2}, 2 * 5 * 2 * 7),
        # Both trainings of FedSiKD count.
        ({"algo": "fedsikd", "student_epochs": 2, "teacher_epochs": 3, "rounds": 4}, 2 * (2 + 3) * 3 * 4),
    ],
)
def test_steps_are_those_of_full_cohorts_and_of_every_training(flags, steps):
    assert count_steps(build_run_config({"batch_size": 16, **flags}), DATA) == steps


LONG = LEAST_STEPS // 30  # rounds


@pytest.mark.parametrize(
    ("spec", "values", "compiled"),
    [
        (SMALL, {"rounds": LONG}, "on"),
        (SMALL, {"rounds": LONG - 1}, "off"),
        (SMALL, {"rounds": LONG, "runtime": "tff"}, "off"),
        (SMALL, {"rounds": LONG, "compile": "off"}, "off"),
        (SMALL, {"rounds": 1, "compile": "on"}, "on"),
        # XLA makes convolutions slower.
        (make_spec("sensor_student", (32, 3), "float32", 4), {"rounds": LONG}, "off"),
    ],
)
def test_long_runs_of_small_models_are_compiled_and_what_is_asked_for_is_done(spec, values, compiled):
    assert settle(spec, **values) == compiled


def test_a_model_that_cannot_be_compiled_is_refused_where_that_is_asked_for():
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
