"""`--track`: a process beside the training, which cannot harm it."""

import sys

import pytest

from launch.settings.flags import FlagError
from launch.settings.run_config import build_run_config
from launch.trackers import sender_process
from launch.training import tracking
from launch.training.tracking import Tracking, open_tracking

STAND_IN = """
import pathlib, sys, time
folder = pathlib.Path(next(each for each in sys.argv if each.startswith("--run_dir=")).split("=", 1)[1])
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A function (program) that puts it in the place of launch.track."""
    monkeypatch.setattr(tracking, "COMMAND", "stand_in_track")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def put(program):
        (tmp_path / "stand_in_track.py").write_text(STAND_IN + program)

    return put


@pytest.fixture
def run_dir(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def start(run_dir, tracker="mlflow"):
    companion = Tracking(tracker)
    companion.start(run_dir)
    return companion


def test_a_run_that_was_sent_says_where(stand_in, run_dir, capsys):
    stand_in("""
place = '{"here": {"run_id": "1", "where": "http://there"}}'
(folder / "tracking" / "mlflow.json").write_text(place)
print(*sys.argv[1:])
""")
    start(run_dir).wait()
    assert capsys.readouterr().out.splitlines()[-1] == "tracked  http://there"
    log = (run_dir / "tracking" / "mlflow.log").read_text()
    assert log == f"--run_dir={run_dir} --to=mlflow --follow\n"


def test_what_fails_is_one_warning(stand_in, run_dir, capsys):
    stand_in("sys.exit('error: mlflow: refused; go on with: this')")
    companion = start(run_dir)
    companion._process.wait(20)
    companion.check()
    companion.check()
    companion.wait()
    assert capsys.readouterr().out.splitlines()[1:] == ["warning  not all is sent: mlflow: refused; go on with: this"]


def test_a_tracker_that_cannot_be_reached_is_one_warning_while_the_run_goes_on(stand_in, run_dir, capsys):
    (run_dir / "tracking").mkdir()
    (run_dir / "tracking" / "mlflow.log").write_text("warning  of an earlier process\n")
    stand_in("print('warning  mlflow: refused; trying again', flush=True); time.sleep(20)")
    companion = start(run_dir)
    try:
        while "refused" not in (run_dir / "tracking" / "mlflow.log").read_text():
            assert companion._process.poll() is None
        companion.check()
        companion.check()
        warning = "warning  mlflow: refused; trying again; the run goes on"
        assert capsys.readouterr().out.splitlines()[1:] == [warning]
        companion.wait(0.1)
        assert "still being sent to mlflow" in capsys.readouterr().out
    finally:
        companion._process.kill()
        companion._process.wait()


@pytest.mark.parametrize("tracker", ["none", "tensorboard"])
def test_nothing_is_sent_where_nothing_is_to_be_sent(tracker, run_dir, monkeypatch, capsys):
    monkeypatch.setattr(sys, "executable", "/nowhere")
    companion = start(run_dir, tracker)
    companion.check()
    companion.wait()
    assert capsys.readouterr().out == "" and not list(run_dir.iterdir())


def test_what_cannot_be_tracked_is_refused_before_the_run(tmp_path, monkeypatch):
    monkeypatch.delenv("FL_TRACK_PYTHON", raising=False)
    monkeypatch.setattr(sender_process, "ENVIRONMENT", tmp_path / ".venv-track")
    config = build_run_config({"algo": "fedavg", "track": "wandb"})
    with pytest.raises(FlagError, match=r"--track=wandb: \.venv-track is not set up"), open_tracking(config):
        raise AssertionError("not refused")
    smoke = build_run_config({"algo": "fedavg", "track": "wandb", "smoke": True})
    with pytest.raises(FlagError, match="the folder of a smoke run is removed"), open_tracking(smoke):
        raise AssertionError("not refused")
