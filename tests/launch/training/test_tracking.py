"""`--track`: a process beside the training, which cannot harm it."""

import pytest

from launch.runs.tables import write_json
from launch.runs.trackers import order
from launch.settings.flags import FlagError
from launch.settings.run_config import build_run_config, flag_values
from launch.training.tracking import Tracking, open_tracking


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


def test_a_program_that_cannot_be_started_is_a_warning(tmp_path, capsys):
    Tracking("mlflow", "/nowhere").start(tmp_path)
    assert capsys.readouterr().out.startswith("warning  nothing is sent to mlflow: ")


@pytest.mark.parametrize("tracker", ["none", "tensorboard"])
def test_nothing_is_sent_where_nothing_is_to_be_sent(tracker, tmp_path, capsys):
    tracking = Tracking(tracker)
    tracking.start(tmp_path)
    tracking.check()
    tracking.wait()
    assert capsys.readouterr().out == "" and not list(tmp_path.iterdir())


def test_what_cannot_be_tracked_is_refused_before_the_run(tmp_path, monkeypatch):
    monkeypatch.delenv("FL_TRACK_PYTHON", raising=False)
    monkeypatch.setattr(order, "ENVIRONMENT", tmp_path / ".venv-track")
    config = build_run_config({"algo": "fedavg", "track": "wandb"})
    with pytest.raises(FlagError, match=r"--track=wandb: \.venv-track is not set up"), open_tracking(config):
        raise AssertionError("not refused")
    smoke = build_run_config({"algo": "fedavg", "track": "wandb", "smoke": True})
    with pytest.raises(FlagError, match="the folder of a smoke run is removed"), open_tracking(smoke):
        raise AssertionError("not refused")
