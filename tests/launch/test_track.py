"""`launch.track`: which runs are meant, what is refused in one line, and what TensorBoard gets."""

import pytest

from launch import track
from launch.runs.tables import write_json, write_table
from launch.settings.run_config import build_run_config, flag_values
from launch.trackers import sender_process


@pytest.fixture
def make_run(tmp_path, monkeypatch):
    """A function (name) -> the folder of a finished run of two rounds, below the current folder."""
    monkeypatch.chdir(tmp_path)

    def make(name):
        run_dir = tmp_path / name
        write_json(run_dir / "config.json", {"flags": flag_values(build_run_config({"algo": "fedavg"})), "data": {}})
        write_table(run_dir / "metrics.csv", ["round", "test_accuracy"], [["1", "0.5"], ["2", "0.75"]])
        write_json(run_dir / "summary.json", {"rounds": 2})
        return run_dir

    return make


def fails(capsys, *arguments):
    """Checks that a request is refused in one line, and returns it."""
    assert track.main([*arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err


def test_what_is_sent_is_what_is_asked_for(make_run, monkeypatch):
    make_run("sweep/seed_0"), make_run("sweep/seed_1"), make_run("other")
    sent = []
    monkeypatch.setattr(track, "find_python", lambda flag: "python")
    monkeypatch.setattr(track, "send_runs", lambda order, find: sent.append((order, [str(each) for each in find()])))
    assert track.main(["--run_dir=sweep", "--to=mlflow", "--tracking_uri=http://127.0.0.1:1", "--nomodels"]) == 0
    assert track.main(["--run_dir=o*,sweep/seed_*", "--to=wandb", "--follow", "--project=p"]) == 0
    assert track.main(["--run_dir=other", "--to=wandb", "--follow"]) == 0
    (sweep, sweep_dirs), (pattern, pattern_dirs), (single, _) = sent
    assert sweep_dirs == ["sweep/seed_0", "sweep/seed_1"]
    assert sweep.variables == {"MLFLOW_TRACKING_URI": "http://127.0.0.1:1"} and not sweep.with_models
    assert not sweep.follows and sweep.project == ""
    assert sorted(pattern_dirs) == ["other", "sweep/seed_0", "sweep/seed_1"] and pattern.project == "p"
    assert pattern.follows and pattern.lingers and single.follows and not single.lingers


def test_without_its_environment_it_says_how_to_make_it(make_run, monkeypatch, capsys, tmp_path):
    make_run("run")
    monkeypatch.delenv("FL_TRACK_PYTHON", raising=False)
    monkeypatch.setattr(sender_process, "ENVIRONMENT", tmp_path / ".venv-track")
    expected = "error: --to=mlflow: .venv-track is not set up; make it with: make setup-track"
    assert fails(capsys, "--run_dir=run", "--to=mlflow").startswith(expected)
    monkeypatch.setenv("FL_TRACK_PYTHON", "/nowhere/python")
    assert "FL_TRACK_PYTHON=/nowhere/python: no such program" in fails(capsys, "--run_dir=run", "--to=mlflow")
    monkeypatch.setenv("FL_TRACK_PYTHON", "/")
    assert "FL_TRACK_PYTHON=/: no such program" in fails(capsys, "--run_dir=run", "--to=mlflow")


def test_a_tracker_that_fails_is_one_line_that_says_how_to_go_on(make_run, monkeypatch, capsys):
    make_run("run")

    def fail(order, find):
        raise sender_process.TrackerError("no answer")

    monkeypatch.setattr(track, "find_python", lambda flag: "python")
    monkeypatch.setattr(track, "send_runs", fail)
    assert track.main(["--run_dir=run", "--to=mlflow", "--tracking_uri=http://me:secret@host:1/"]) == 1
    expected = "error: mlflow: no answer; go on with: python -m launch.track --run_dir=run --to=mlflow "
    assert capsys.readouterr().err == expected + "--tracking_uri=http://host:1/\n"


def test_a_python_without_the_tracker_is_one_line(make_run, monkeypatch, capsys, tmp_path):
    make_run("run")
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    monkeypatch.setenv("FL_TRACK_PYTHON", str(python))
    assert track.main(["--run_dir=run", "--to=wandb"]) == 1
    assert capsys.readouterr().err.startswith("error: wandb: the program that speaks to the tracker has ended; go on")


def test_tensorboard_reads_what_every_run_writes(make_run, capsys):
    run_dir = make_run("runs/a")
    (run_dir / "tensorboard").mkdir()
    (run_dir / "tensorboard" / "events.out.tfevents.1").write_bytes(b"")
    assert track.main(["--run_dir=runs/a", "--to=tensorboard"]) == 0
    assert capsys.readouterr().out == "look     tensorboard --logdir=runs/a\n"
    assert len(list((run_dir / "tensorboard").iterdir())) == 1


def test_event_files_that_are_missing_are_written(make_run, capsys):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run_dirs = [make_run("runs/a"), make_run("runs/b")]
    assert track.main(["--run_dir=runs", "--to=tensorboard"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "look     tensorboard --logdir=runs"
    for run_dir in run_dirs:
        events = EventAccumulator(str(run_dir / "tensorboard")).Reload()
        (tag,) = events.Tags()["tensors"]
        assert tag == "test_accuracy" and [event.step for event in events.Tensors(tag)] == [1, 2]
