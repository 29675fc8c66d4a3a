"""Runs sent to W&B offline, and what it wrote read back. `make test-track` runs it."""

import json
import pathlib
import subprocess
import sys

import pytest

from launch import track
from launch.runs.trackers.order import ENVIRONMENT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ENVIRONMENT / "setup_done").exists(), reason=f"no {ENVIRONMENT.name}: make setup-track"),
]
ROOT = pathlib.Path(__file__).parents[3]
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f6"
    "45400000000049454e44ae426082"
)


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    """W&B's folders are the test's own, and nothing goes over a network."""
    monkeypatch.delenv("FL_TRACK_PYTHON", raising=False)
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("WANDB_DIR", "WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_ARTIFACT_DIR"):
        monkeypatch.setenv(name, str(tmp_path))


@pytest.fixture
def finished(start_run):
    """A finished run of three rounds with a picture that is one."""
    run = start_run("fedavg_mnist_alpha0.1/seed_2", seed=2)
    run.add_rounds(3)
    run.end()
    (run.run_dir / "plots" / "by_round.png").write_bytes(PNG)
    (run.run_dir / "report.html").write_text("<p>report</p>")
    return run


def read_offline(tmp_path):
    """What the last offline run holds."""
    folder = max((tmp_path / "wandb").glob("offline-run-*"))
    command = [str(ENVIRONMENT / "bin" / "python"), "-I", str(ROOT / "tests" / "track" / "read_wandb.py"), str(folder)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout)


def test_a_run_is_written_with_settings_metrics_and_files(finished, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    assert track.main([f"--run_dir={finished.run_dir}", "--to=wandb"]) == 0
    found = read_offline(tmp_path)
    run = found["run"]
    assert (run["project"], run["name"]) == ("mine", "fedavg_mnist_alpha0.1/seed_2")
    assert run["group"].startswith("fedavg_mnist_alpha0.1_")
    assert run["tags"] == ["algo: fedavg", "dataset: digits", "seed: 2"]
    assert found["config"]["rounds"] == 20 and found["config"]["epochs"] == 5
    assert found["config"]["data.num_train"] == "30"
    history = found["history"]
    assert list(history) == ["1", "2", "3"]
    assert [history[step]["test_accuracy"] for step in history] == [0.01, 0.02, 0.03]
    assert [history[step].get("test_loss") for step in history] == [None, 0.5, None]
    assert history["2"]["_timestamp"] - history["1"]["_timestamp"] == 2.0
    assert history["3"]["plots/by_round.png/_type"] == "image-file"
    assert found["summary"]["summary/best.test_accuracy"] == 0.5
    expected = {"config.json", "metrics.csv", "models/global/model.keras", "plots/by_round.png", "report.html"}
    assert expected <= set(found["artifacts"]["run-folder"])
    assert found["exit_code"] == 0
    assert "wandb sync " in capfd.readouterr().out


def test_again_is_the_same_run_and_is_not_doubled(finished, tmp_path):
    for _ in range(2):
        assert track.main([f"--run_dir={finished.run_dir}", "--to=wandb"]) == 0
    (place,) = json.loads((finished.run_dir / "tracking" / "wandb.json").read_text()).values()
    found = read_offline(tmp_path)
    assert found["run"]["id"] == place["run_id"] and list(found["history"]) == ["1", "2", "3"]


def test_a_stopped_run_is_resumed(start_run, tmp_path):
    run = start_run()
    run.add_rounds(2)
    run.end(is_finished=False)
    assert track.main([f"--run_dir={run.run_dir}", "--to=wandb", "--follow"]) == 0
    assert read_offline(tmp_path)["exit_code"] == 1
    run.add_rounds(2)
    run.end()
    (run.run_dir / "plots" / "by_round.png").write_bytes(PNG)
    assert track.main([f"--run_dir={run.run_dir}", "--to=wandb", "--follow"]) == 0
    found = read_offline(tmp_path)
    assert list(found["history"]) == ["1", "2", "3", "4"] and found["exit_code"] == 0


def test_a_training_run_is_followed(tmp_path):
    command = [sys.executable, "-m", "launch.train", "--algo=fedavg", "--num_clients=2", "--epochs=1"]
    command += ["--rounds=3", f"--run_dir={tmp_path}/run", "--track=wandb"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "sent     run: 3 rounds, finished; look: " in run.stdout
    found = read_offline(tmp_path)
    assert list(found["history"]) == ["1", "2", "3"] and found["config"]["num_clients"] == 2
    assert "models/global/model.keras" in found["artifacts"]["run-folder"]


def test_without_a_key_it_is_one_line(finished, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("HOME", str(tmp_path))  # where a key of this machine might be
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    assert track.main([f"--run_dir={finished.run_dir}", "--to=wandb"]) == 1
    error = capfd.readouterr().err
    assert error.startswith("error: wandb: UsageError: No API key configured") and error.count("\n") == 1
