"""`launch.track`: which runs are meant, what is refused in one line, and what TensorBoard gets."""

import json
import pathlib

import pytest

from launch import track
from launch.runs.tables import write_json, write_table
from launch.settings.run_config import build_run_config, flag_values


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


@pytest.fixture
def put_python(tmp_path, monkeypatch):
    """A function (program) that puts a shell program in the place of the Python that has the trackers."""

    def put(program):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{program}\n")
        python.chmod(0o755)
        monkeypatch.setenv("FL_TRACK_PYTHON", str(python))

    return put


def test_what_is_sent_is_what_is_asked_for_and_its_exit_code_is_the_senders(make_run, put_python, capfd):
    make_run("sweep/seed_0"), make_run("sweep/seed_1"), make_run("other")
    put_python("exec cat")
    for arguments, expected in (
        (["--run_dir=sweep", "--to=mlflow", "--nomodels"], ["mlflow", False, False, ["seed_0", "seed_1"]]),
        (["--run_dir=o*,sweep/seed_*", "--to=wandb", "--follow"], ["wandb", True, True, ["other", "seed_0", "seed_1"]]),
        (["--run_dir=other", "--to=wandb"], ["wandb", False, True, ["other"]]),
    ):
        assert track.main(arguments) == 0
        order = json.loads(capfd.readouterr().out)
        names = [pathlib.Path(run["path"]).name for run in order["runs"]]
        assert [order["tracker"], order["follow"], order["models"], names] == expected
    killed = "error: mlflow: the sender was ended by signal 9; the same command goes on\n"
    for program, said in (("exit 1", ""), ("kill -9 $$", killed)):
        put_python(program)
        assert (track.main(["--run_dir=other", "--to=mlflow"]), capfd.readouterr().err) == (1, said)


def test_tensorboard_reads_what_every_run_writes_and_what_is_missing_is_written(make_run, capsys):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folders = [make_run(f"runs/{name}") / "tensorboard" for name in ("a", "b", "there")]
    folders[2].mkdir()
    (folders[2] / "events.out.tfevents.1").write_bytes(b"")
    assert track.main(["--run_dir=runs", "--to=tensorboard"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "look     tensorboard --logdir=runs"
    assert [len(list(folder.iterdir())) for folder in folders] == [1, 1, 1]
    for folder in folders[:2]:
        events = EventAccumulator(str(folder)).Reload()
        *settings, tag = events.Tags()["tensors"]
        assert [name.partition("/")[0] for name in settings] == ["_hparams_"]
        assert tag == "test_accuracy" and [event.step for event in events.Tensors(tag)] == [1, 2]
