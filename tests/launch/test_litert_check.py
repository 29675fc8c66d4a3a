"""The check of `make test-litert`, with TensorFlow's interpreter and a stand-in for Python in the place of LiteRT's."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest

from launch import export
from launch.runs.tables import write_table

ROOT = pathlib.Path(__file__).parents[2]
FAKE_PYTHON = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
    "-m venv"*) mkdir -p .venv-litert/bin && cp "$0" .venv-litert/bin/python ;;
    *pip*) echo "$PIP_SAYS"; exit "$PIP_EXIT" ;;
    *check_export*) exit "$CHECK_EXIT" ;;
esac
"""


@pytest.fixture(scope="module", autouse=True)
def short_timing():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("launch.tflite.exported_file.TIMED_RUNS", 5)
        yield


@pytest.fixture(scope="module")
def check_export():
    """The module, which finds TensorFlow's interpreter where it looks for LiteRT's."""
    import tensorflow as tf

    litert = types.ModuleType("ai_edge_litert.interpreter")
    litert.Interpreter = tf.lite.Interpreter
    spec = importlib.util.spec_from_file_location("check_export", ROOT / "tests" / "litert" / "check_export.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ai_edge_litert", types.ModuleType("ai_edge_litert"))
        patch.setitem(sys.modules, "ai_edge_litert.interpreter", litert)
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def exported(tmp_path_factory, write_finished_run):
    run_dir = write_finished_run(tmp_path_factory.mktemp("litert") / "run", algo="fedavg", model="perceptron")
    arguments = ["--formats=float32,int8", "--io=int8", "--save_test_set", "--on_device_training=head"]
    assert export.main([f"--run_dir={run_dir}", *arguments]) == 0
    return run_dir / "export"


@pytest.fixture
def folder(exported, tmp_path):
    """A copy of an export folder that a test may change."""
    return shutil.copytree(exported, tmp_path / "export")


def test_an_export_agrees_with_its_report(check_export, folder, capsys):
    assert check_export.main([str(folder)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in out] == [
        "global.float32.tflite",
        "global.int8.tflite",
        "global.training.tflite",
        "all files agree with the report",
    ]
    assert all(line.endswith("; 0 other predictions") for line in out[:2])
    assert "global.training.tflite: 10 steps, loss 2." in out[2]


def change_accuracy(folder):
    rows = [line.split(",") for line in (folder / "report.csv").read_text().splitlines()]
    for row in rows[1:]:
        row[rows[0].index("test_accuracy")] = "0.99"
    write_table(folder / "report.csv", rows[0], rows[1:])


def change_predictions(folder):
    with np.load(folder / "test_set.npz") as arrays:
        changed = {name: (array + 1) % 10 if name.endswith(".tflite") else array for name, array in arrays.items()}
    np.savez(folder / "test_set.npz", **changed)


def change_scale(folder):
    path = folder / "global.int8.json"
    path.write_text(path.read_text().replace('"zero_point": -128', '"zero_point": -90'))


def change_file(folder):
    path = folder / "global.float32.tflite"
    path.write_bytes(path.read_bytes() + b"\0")


def change_weights(folder):
    path = folder / "global.training.json"
    path.write_text(path.read_text().replace('"weight_0": "', '"weight_7": "'))


def empty_report(folder):
    (folder / "report.csv").write_text("file\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_accuracy, "in the report 0.9900"),
        (change_predictions, "359 of 359 predictions differ, at most 1 may"),
        (change_scale, "predictions differ"),
        (change_file, "its sha256 is not that of its JSON"),
        (change_weights, "its weights are weight_0, weight_1"),
        (empty_report, "report.csv: no file in it"),
    ],
)
def test_a_difference_is_found(check_export, folder, change, message, capsys):
    change(folder)
    assert check_export.main([str(folder)]) == 1
    assert message in capsys.readouterr().err


class StubbornPhone:
    """An interpreter whose training does nothing of what it should."""

    def __init__(self, model_content, num_threads):
        self.logits = iter(np.arange(3.0))

    def get_signature_runner(self, name):
        results = {"train": lambda: {"loss": 1.0}, "infer": lambda: {"logits": next(self.logits)}}
        results |= {"get_weights": lambda: {"weight_0": 0}, "set_weights": dict}
        return lambda **inputs: results[name]()


def test_a_fault_in_training_is_found(check_export, monkeypatch):
    test_set = {"x": np.zeros((3, 2), np.uint8), "y": np.zeros(3, np.int64)}
    description = {"file": "a", "batch_size": 4, "weights": {"weight_0": "a"}}
    description |= {"preprocessing": {"scale": 1.0, "offset": 0.0}}
    monkeypatch.setattr(check_export, "Interpreter", StubbornPhone)
    faults = list(check_export.find_training_faults(b"", description, test_set))
    assert faults == [
        "the loss did not fall, from 1.0000 to 1.0000",
        "the weights that were taken out and put in again give other logits",
    ]
    monkeypatch.setattr(StubbornPhone, "get_signature_runner", lambda *_: lambda **inputs: {"loss": 1.0, "logits": 0.0})
    assert "more steps changed nothing" in list(check_export.find_training_faults(b"", description, test_set))


def test_a_training_file_with_operators_of_tensorflow_is_left_out(check_export, folder, capsys):
    path = folder / "global.training.json"
    path.write_text(path.read_text().replace('"select_operators": []', '"select_operators": ["Save"]'))
    (folder / "global.training.tflite").unlink()
    assert check_export.main([str(folder)]) == 0
    assert "global.training.tflite: left out, needs Save of TensorFlow" in capsys.readouterr().out


def test_a_folder_without_a_test_set_is_one_line(check_export, folder, capsys):
    (folder / "test_set.npz").unlink()
    assert check_export.main([str(folder)]) == 2
    error = capsys.readouterr().err
    assert "test_set.npz missing; export the run with --save_test_set first" in error
    assert error.count("\n") == 1


@pytest.fixture
def run_check(tmp_path):
    """A function (run folder, **environment) -> (exit code, stderr, calls of Python) that runs `check.sh`."""
    project = tmp_path / "project"
    (project / "tests" / "litert").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "litert" / "check.sh", project / "tests" / "litert")
    shutil.copy(ROOT / "extra_environment.sh", project)
    (project / "requirements-litert.lock").write_text("a==1\n")
    (project / ".venv" / "bin").mkdir(parents=True)
    python = project / ".venv" / "bin" / "python"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)

    def run(run_dir, **changes):
        calls = tmp_path / "calls"
        calls.write_text("")
        defaults = {"PIP_SAYS": "", "PIP_EXIT": "0", "CHECK_EXIT": "0", "TMPDIR": str(tmp_path)}
        environment = {"PATH": os.environ["PATH"], "CALLS": str(calls), **defaults, **changes}
        command = ["sh", str(project / "tests" / "litert" / "check.sh"), run_dir]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        return ended.returncode, ended.stderr, calls.read_text().splitlines()

    run.project = project
    return run


SET_UP = [
    "-m venv .venv-litert",
    "-m pip --no-input install --no-deps --require-hashes -r requirements-litert.lock",
]
CHECKS = [
    "-m launch.export --run_dir=runs/x --on_device_training --save_test_set",
    "tests/litert/check_export.py runs/x/export",
]


def test_a_run_is_exported_and_checked_in_an_environment_that_is_made_once(run_check):
    assert run_check("runs/x") == (0, "", [*SET_UP, *CHECKS])
    assert run_check("runs/x") == (0, "", CHECKS)
    (run_check.project / "requirements-litert.lock").write_text("a==2\n")
    assert run_check("runs/x", CHECK_EXIT="1") == (1, "", [*SET_UP, *CHECKS])


def test_without_a_run_one_is_trained_and_removed(run_check, tmp_path):
    before = set(tmp_path.iterdir())
    exit_code, _, calls = run_check("")
    assert exit_code == 0
    assert [call.split()[1] for call in calls[2:4]] == ["launch.train", "launch.export"]
    assert "--algo=fedsikd --quantize=qat --rounds=3" in calls[2]
    assert set(tmp_path.iterdir()) <= before | {tmp_path / "calls"}


def test_a_failing_pip_is_one_line_and_tried_again(run_check):
    exit_code, error, calls = run_check("runs/x", PIP_EXIT="1", PIP_SAYS="ERROR: something new")
    assert (exit_code, calls) == (1, SET_UP)
    assert "ERROR: something new" in error and error.count("\n") == 1
    assert run_check("runs/x")[2] == [*SET_UP, *CHECKS]
