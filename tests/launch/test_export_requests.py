"""The export command: requests that cannot be met are answered in one line, before anything is converted."""

import json

import pytest

from launch import export
from launch.runs.tables import write_json


@pytest.fixture
def stored_run(write_run, tmp_path):
    """A finished float run with a model file, but without data."""
    run_dir = write_run(tmp_path, "fedavg_mnist_alpha0.1", 0, 2)
    config = json.loads((run_dir / "config.json").read_text())
    data = {"input_shape": [2], "input_dtype": "uint8", "scale": 1.0, "offset": 0.0, "class_names": ["a", "b"]}
    write_json(run_dir / "config.json", {**config, "data": data})
    write_json(run_dir / "summary.json", {"rounds": 2, "fedavg": {}})
    (run_dir / "clients.csv").write_text("client,model\nclient_0,global\n")
    (run_dir / "models" / "global").mkdir(parents=True)
    (run_dir / "models" / "global" / "model.keras").touch()
    return run_dir


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model=local"], "--model=local: expected all, or a shared model (global), or a client (client_0)"),
        (
            ["--formats=int8,fp16"],
            "--formats=int8,fp16: no format fp16; expected some of float32, float16",
        ),
        (
            ["--formats=flaot32,xyz,int8"],
            "no format flaot32, xyz; expected some of float32, float16, dynamic",
        ),
        (["--npz=mine.npz"], "--npz=mine.npz: the run was trained on mnist; expected --data_dir for its files"),
        (["--formats=qat_int8"], "the run's models are float; train with --quantize=qat, or take int8"),
        (["--io=int16"], "--io=int16: expected one of float32, int8"),
        (["--io=int8", "--formats=float32,dynamic"], "--io=int8: only int8 and qat_int8 have that"),
        (["--representative_client=client_9"], "--representative_client=client_9: no such client; expected one of"),
        (["--representative_client=client_0", "--formats=float32"], "does nothing without int8"),
        (["--debug_quantization", "--formats=qat_int8"], "it looks into int8 only; add int8 to --formats"),
        (["--representative_examples=0"], "--representative_examples=0"),
        (["--on_device_training=tail"], "--on_device_training=tail: expected one of none, head, full"),
        (["--on_device_training"], "--on_device_training: no value, expected --on_device_training=<value>"),
        (["--format=int8"], "did you mean --formats"),
        (["--web_page"], "which runs the files in a page, is missing; type: make web"),
        (["--web_page", "--io=int8"], "--web_page with --io=int8: LiteRT.js takes float inputs only"),
    ],
)
def test_a_bad_request_is_one_line_at_once(stored_run, arguments, message, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("launch.tflite.web_page.RUNTIME", tmp_path / "nowhere")
    before = sorted(stored_run.rglob("*"))
    assert export.main([f"--run_dir={stored_run}", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert sorted(stored_run.rglob("*")) == before


def test_a_run_that_cannot_be_exported_is_one_line(stored_run, capsys):
    (stored_run / "models" / "global" / "model.keras").unlink()
    assert export.main([f"--run_dir={stored_run}"]) == 2
    assert "its saved models are gone" in capsys.readouterr().err
    (stored_run / "summary.json").unlink()
    assert export.main([f"--run_dir={stored_run}"]) == 2
    assert "the run is not finished" in capsys.readouterr().err
    assert export.main([]) == 2
    assert "--run_dir is missing" in capsys.readouterr().err
