"""What a run is in a tracker's words, and how the program is started that speaks to one."""

import json
import subprocess
import sys

import pytest

from launch.runs.tables import write_json
from launch.runs.trackers import order
from launch.runs.trackers.order import describe_run, find_python, start_sender
from launch.settings.flags import FlagError
from launch.settings.run_config import build_run_config, flag_values
from launch.training.tracking import Tracking, open_tracking


def test_a_run_in_a_trackers_words(start_run):
    """Parameters are the flags that do something, and those of another version as they are."""
    flags = {"seed": 4, "dataset": "mnist", "rounds": 7, "epochs": 3, "data_dir": "/somewhere"}
    run = start_run("fedavg_mnist_alpha0.1/trial_3/seed_4", **flags)
    described = describe_run(run.run_dir)
    assert described["name"] == "fedavg_mnist_alpha0.1/trial_3/seed_4"
    assert described["group"].startswith("fedavg_mnist_alpha0.1_")
    tags = {"algo": "fedavg", "dataset": "mnist", "seed": "4", "data.num_train": "30", "run_dir": str(run.run_dir)}
    assert described["tags"] == tags
    assert {"rounds": 7, "epochs": 3}.items() <= described["params"].items()
    # Empty, of another data set or partition, places on this machine, requests.
    idle = {"ray_address", "har_features", "labels_per_client", "data_dir", "run_dir", "resume", "track"}
    assert not described["params"].keys() & idle
    other = {"algo": "gone", "colour": "red", "seed": 3}
    write_json(run.run_dir / "config.json", {"flags": other})
    assert describe_run(run.run_dir)["params"] == other


@pytest.mark.parametrize("config", [[], {}, {"flags": 3}, {"flags": {"seed": 0}}])
def test_no_run_is_one_line(config, tmp_path):
    write_json(tmp_path / "config.json", config)
    with pytest.raises(FlagError, match=r"config\.json"):
        describe_run(tmp_path)


def test_runs_that_differ_in_the_seed_alone_are_a_group(start_run):
    changes = [{"seed": 1}, {"seed": 2, "rounds": 9}, {"seed": 1, "batch_size": 7}]
    groups = [describe_run(start_run(f"run_{i}", **flags).run_dir)["group"] for i, flags in enumerate(changes)]
    assert groups[0] == groups[1] != groups[2]
    assert groups[0].startswith("fedavg_digits_")


def test_runs_on_a_corrected_file_are_another_group(start_run):
    run = start_run(dataset="npz", npz="/x/mine.npz")
    content = json.loads((run.run_dir / "config.json").read_text())
    groups = []
    for changes in ({}, {"source_digest": "a"}, {"source_digest": "b"}):
        write_json(run.run_dir / "config.json", content | {"data": {**content.get("data", {}), **changes}})
        groups.append(describe_run(run.run_dir)["group"])
    write_json(run.run_dir / "config.json", content | {"own_modules": {"own_net": "a"}})
    assert len({*groups, describe_run(run.run_dir)["group"]}) == 4


def test_without_its_environment_it_says_how_to_make_it(monkeypatch, tmp_path):
    monkeypatch.delenv("FL_TRACK_PYTHON", raising=False)
    monkeypatch.setattr(order, "ENVIRONMENT", tmp_path / ".venv-track")
    with pytest.raises(FlagError, match=r"--to=mlflow: \.venv-track is not set up; make it with: make setup-track"):
        find_python("--to=mlflow")
    monkeypatch.setenv("FL_TRACK_PYTHON", "/nowhere/python")
    with pytest.raises(FlagError, match="FL_TRACK_PYTHON=/nowhere/python: no such program"):
        find_python("--to=mlflow")


def test_a_python_without_the_tracker_is_one_line(start_run):
    run = start_run()
    run.end()
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    sender = start_sender(sys.executable, "wandb", [describe_run(run.run_dir)], False, True, "do this", **options)
    assert sender.communicate(timeout=60) == (
        "", "error: wandb: ModuleNotFoundError: No module named 'wandb'; do this\n"
    )  # fmt: skip
    assert sender.returncode == 1
    assert "Traceback" in (run.run_dir / "tracking" / "wandb.log").read_text()


@pytest.fixture
def start(tmp_path):
    """A function (program) that starts to follow a run, with a shell program in the place of the sender."""
    write_json(tmp_path / "run" / "config.json", {"flags": flag_values(build_run_config({"algo": "fedavg"}))})
    (tmp_path / "run" / "tracking").mkdir()
    (tmp_path / "run" / "tracking" / "mlflow.log").write_text("warning  of an earlier process\n")

    def call(program):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{program}\n")
        python.chmod(0o755)
        tracking = Tracking("mlflow", str(python))
        tracking.start(tmp_path / "run")
        return tracking

    return call


def test_a_run_that_was_sent_says_where(start, capsys):
    start("echo noise; echo 'sent     run: 3 rounds, finished; look: http://there'").wait()
    assert capsys.readouterr().out.splitlines()[1:] == ["sent     run: 3 rounds, finished; look: http://there"]


@pytest.mark.parametrize(
    ("program", "warning"),
    [
        ("echo 'error: mlflow: refused; go on with: this' >&2; exit 1", "mlflow: refused; go on with: this"),
        ("kill -9 $$", "its process was ended by signal 9"),
    ],
)
def test_what_fails_is_one_warning(program, warning, start, capsys):
    tracking = start(program)
    tracking._process.wait(20)
    tracking.check()
    tracking.wait()
    assert capsys.readouterr().out.splitlines()[1:] == [f"warning  not all is sent: {warning}"]


def test_a_tracker_that_cannot_be_reached_is_a_warning_while_the_run_goes_on(start, tmp_path, capsys):
    tracking = start("echo 'warning  mlflow: refused; trying again'; exec sleep 60")
    try:
        while "refused" not in (tmp_path / "run" / "tracking" / "mlflow.log").read_text():
            assert tracking._process.poll() is None
        tracking.check()
        tracking.check()
        assert capsys.readouterr().out.splitlines()[1:] == ["warning  mlflow: refused; trying again"]
        tracking.wait(0.1)
        assert "still being sent to mlflow" in capsys.readouterr().out
    finally:
        tracking._process.kill()
        tracking._process.wait()


@pytest.mark.parametrize(
    ("tracking", "said"),
    [
        (Tracking("none"), ""),
        (Tracking("tensorboard"), ""),
        (Tracking("mlflow", "/nowhere"), "warning  nothing is sent to mlflow: "),
    ],
)
def test_nothing_is_sent_where_nothing_is_to_be_sent_or_no_program_can_be_started(tracking, said, tmp_path, capsys):
    tracking.start(tmp_path)
    tracking.check()
    tracking.wait()
    out = capsys.readouterr().out
    assert out.startswith(said) and bool(out) == bool(said) == any(tmp_path.iterdir())


def test_what_cannot_be_tracked_is_refused_before_the_run(tmp_path, monkeypatch):
    monkeypatch.delenv("FL_TRACK_PYTHON", raising=False)
    monkeypatch.setattr(order, "ENVIRONMENT", tmp_path / ".venv-track")
    config = build_run_config({"algo": "fedavg", "track": "wandb"})
    with pytest.raises(FlagError, match=r"--track=wandb: \.venv-track is not set up"), open_tracking(config):
        raise AssertionError("not refused")
    smoke = build_run_config({"algo": "fedavg", "track": "wandb", "smoke": True})
    with pytest.raises(FlagError, match="the folder of a smoke run is removed"), open_tracking(smoke):
        raise AssertionError("not refused")
