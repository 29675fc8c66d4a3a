"""A client's personal model leaves the run under the client's name, as good as the run says."""

import csv
import json

import pytest

from launch import export


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_exported_model_is_the_clients_own(resumed_run, capsys):
    client = read_rows(resumed_run / "clients.csv")[1]
    arguments = ["--formats=float32", "--on_device_training"]
    assert export.main([f"--run_dir={resumed_run}", f"--model={client['client']}", *arguments]) == 0
    [row] = read_rows(resumed_run / "export" / "report.csv")
    assert {"test_accuracy", "keras_test_accuracy", "top1_agreement"} <= row.keys()
    assert float(row["client_test_accuracy"]) == pytest.approx(float(client["accuracy"]), abs=1e-6)
    assert float(row["top1_agreement"]) == 1
    assert (
        json.loads((resumed_run / "export" / f"{client['client']}.float32.json").read_text())["source_model"]
        == "global"
    )
    assert (resumed_run / "export" / f"{client['client']}.training.tflite").stat().st_size > 10_000

    assert export.main([f"--run_dir={resumed_run}", "--model=global", "--formats=float32"]) == 0
    own, shared = (resumed_run / "export" / f"{name}.float32.tflite" for name in (client["client"], "global"))
    assert own.read_bytes() != shared.read_bytes()


def test_a_run_whose_checkpoints_ended_early_is_one_line(resumed_run, capsys):
    summary = json.loads((resumed_run / "summary.json").read_text())
    (resumed_run / "checksums.sha256").unlink()
    (resumed_run / "summary.json").write_text(json.dumps({**summary, "rounds": 7}))
    name = read_rows(resumed_run / "clients.csv")[0]["client"]
    assert export.main([f"--run_dir={resumed_run}", f"--model={name}"]) == 2
    assert "its last checkpoint is of round 3, not 7" in capsys.readouterr().err.strip().splitlines()[-1]
    (resumed_run / "summary.json").write_text(json.dumps(summary))
