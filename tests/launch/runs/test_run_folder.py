"""The run folder: when it may be made, reused or replaced, and what is written into it."""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import shutil

import numpy as np
import pytest
from made_up_process import Killed

from files.writing import write_text
from launch.runs.errors import RunFolderError
from launch.runs.run_description import find_git_revision, write_config
from launch.runs.run_folder import open_run_folder
from launch.runs.tables import format_cell, write_json
from launch.settings.run_config import build_run_config, flag_values

OTHER_CONFIGS = ("{}", "[]", "no JSON", '{"flags": {"algo": "other program"}}', '{"flags": []}')


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(tmp_path):
    """A run of one round."""
    write_text(tmp_path / "run" / "config.json", json.dumps({"flags": flag_values(ask())}))
    write_text(tmp_path / "run" / "metrics.csv", "round\n1\n")
    return tmp_path / "run"


def ask(**values):
    return build_run_config({"algo": "fedavg", **values})


def open_run(**options):
    return open_run_folder(ask(run_dir="run", **options))


def refuse(message, **options):
    with pytest.raises(RunFolderError, match=message):
        open_run(**options)


def test_runs_without_a_name_take_the_next_free_number(tmp_path):
    for name in ("fedavg_digits_002", "fedavg_digits_old", "fedavg_mnist_007"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    first, second = open_run_folder(ask()), open_run_folder(ask())
    assert [folder.path.as_posix() for folder in (first, second)] == [
        "runs/fedavg_digits_003",
        "runs/fedavg_digits_004",
    ]
    assert first.is_new
    first.close()
    second.close()


def test_new_and_empty_folders_are_taken(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "a/b"):
        open_run_folder(ask(run_dir=name)).close()
        assert (tmp_path / name).is_dir()


def test_existing_folder_is_refused_by_name(run):
    refuse("run: exists already; add --resume to go on, --overwrite to replace it")
    assert (run / "metrics.csv").exists()


@pytest.mark.parametrize(
    ("run_dir", "message"), [("file", "expected a folder, found a file"), ("file/run", "cannot write there")]
)
def test_a_file_is_no_folder(tmp_path, run_dir, message):
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match=message):
        open_run_folder(ask(run_dir=run_dir))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        *(({"config.json": text}, "holds no run alone") for text in OTHER_CONFIGS),
        ({".replaced.config.json": "", "thesis.tex": ""}, r"thesis\.tex is no part of one"),
        (
            {"config.json": json.dumps({"flags": {"algo": "fedavg"}}), "thesis.tex": ""},
            r"thesis\.tex is no part of one",
        ),
    ],
)
def test_overwrite_leaves_folders_with_something_else_alone(tmp_path, names, message):
    for name, text in names.items():
        write_text(tmp_path / "run" / name, text)
    refuse(message, overwrite=True)
    assert {path.name: path.read_text() for path in (tmp_path / "run").iterdir()} == names


def test_overwrite_takes_nothing_away_before_the_new_run_begins(run, make_federation):
    (run / "models" / "global").mkdir(parents=True)
    config = ask(run_dir="run", overwrite=True, rounds=7)
    folder = open_run_folder(config)
    assert folder.is_new and not folder.has_begun
    assert folder.metrics.exists() and folder.models.exists()
    folder.clear()
    write_config(folder, config, make_federation([3]))
    folder.close()
    assert sorted(path.name for path in run.iterdir()) == [".lock", "config.json"]
    assert json.loads(folder.config.read_text())["flags"]["rounds"] == 7


def test_overwrite_starts_the_workers_logs_anew(run):
    for name in ("worker.log", "worker_2.log"):
        (run / name).write_text("what the old run's worker said")
    folder = open_run(overwrite=True)
    with folder.start_log() as log:
        pathlib.Path(log).write_text("new")  # TensorFlow starts before the rest is cleared
    folder.clear()
    folder.close()
    assert sorted(path.name for path in run.iterdir()) == [".lock", "worker.log"]
    assert folder.worker_log.read_text() == "new"


def test_the_log_of_a_run_that_is_refused_changes_nothing(run):
    (run / "worker.log").write_text("old")
    folder = open_run(overwrite=True)
    with pytest.raises(RunFolderError), folder.start_log() as log:
        pathlib.Path(log).write_text("new")
        raise RunFolderError("the model does not fit the data")
    folder.close()
    assert folder.worker_log.read_text() == "old"
    assert {path.name for path in folder.path.iterdir()} == {".lock", "config.json", "metrics.csv", "worker.log"}


def list_files(path):
    return {str(inner.relative_to(path)) for inner in path.rglob("*") if inner.is_file() and inner.name != ".lock"}


@pytest.mark.parametrize("fatal_call", range(1, 8))
def test_a_kill_while_a_folder_is_cleared_leaves_no_config_of_what_is_gone(run, monkeypatch, fatal_call):
    """Whichever step is the last: the old config goes with the old run, and the folder may be taken again."""
    for name in ("checkpoints/round_1.npz", "models/global/model.keras", "summary.json"):
        write_text(run / name, "")
    whole = list_files(run)
    calls = itertools.count(1)

    def die_in(name, owner):
        function = getattr(owner, name)

        def call(*arguments, **options):
            if next(calls) == fatal_call:
                raise Killed
            return function(*arguments, **options)

        monkeypatch.setattr(owner, name, call)

    folder = open_run(overwrite=True)
    with monkeypatch.context() as patched:
        monkeypatch = patched
        die_in("replace", os)
        die_in("rmtree", shutil)
        die_in("unlink", pathlib.Path)
        with contextlib.suppress(Killed):
            folder.clear()
    folder.close()
    left = list_files(run)
    assert left == whole if "config.json" in left else left < {*whole, ".replaced.config.json"}
    assert (fatal_call == 7) == (not left), "seven steps would be one too many"
    for options in ({"overwrite": True}, {}) if "config.json" not in left else ({"overwrite": True},):
        again = open_run(**options)
        assert again.is_new
        again.close()
    if "config.json" not in left:
        refuse("no run to resume there", resume=True)
    again.clear()
    assert not list_files(run)


def test_a_run_of_the_users_own_algorithm_may_be_overwritten(run):
    (run / "config.json").write_text(json.dumps({"flags": {"algo": "my_package.ditto:ALGORITHM"}}))
    open_run(overwrite=True).close()


def test_what_a_run_killed_in_its_start_up_leaves_is_no_hindrance(tmp_path):
    (tmp_path / "run").mkdir()
    for name in (".lock", "worker.log", ".123.config.json"):
        (tmp_path / "run" / name).write_text("")
    folder = open_run()
    assert folder.is_new
    refuse("a run is going on in it")  # it may be just starting
    folder.close()


def test_resume_keeps_a_run_and_needs_one(run):
    folder = open_run(resume=True)
    assert not folder.is_new and folder.metrics.exists()
    with folder.start_log() as log:
        assert log == str(folder.worker_log)
    folder.close()
    with pytest.raises(RunFolderError, match="no run to resume"):
        open_run_folder(ask(run_dir="nothing", resume=True))


def test_folder_in_use_is_refused(run):
    first = open_run(resume=True)
    for how in ("resume", "overwrite"):
        refuse("a run is going on in it", **{how: True})
    first.close()
    open_run(resume=True).close()


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, ""),
        ("global", "global"),
        (3, "3"),
        (3.0, "3"),
        (0.123456789, "0.123457"),
        (1e-9, "1e-09"),
        (123456789012, "123456789012"),
        (1.5e300, "1.5e+300"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (True, "1"),
    ],
)
def test_cells(value, cell):
    assert format_cell(value) == cell


def test_json_has_no_nan_and_short_lists_on_one_line(tmp_path):
    write_json(
        tmp_path / "x.json", {"a": float("nan"), "b": np.arange(3), "c": [[np.float32(0.5)], ["x"]], "d": np.int64(2)}
    )
    text = (tmp_path / "x.json").read_text()
    assert json.loads(text) == {"a": None, "b": [0, 1, 2], "c": [[0.5], ["x"]], "d": 2}
    assert '"b": [ 0, 1, 2 ]' in text


def test_config_json_holds_flags_sizes_and_versions(tmp_path, make_federation):
    folder = open_run()
    data = make_federation([3, 5])
    write_config(folder, ask(run_dir="elsewhere", overwrite=True, data_dir="there", client_dir=""), data)
    content = json.loads(folder.config.read_text())
    assert content["flags"]["epochs"] == ask().algorithm.training.epochs
    assert (content["flags"]["run_dir"], content["flags"]["overwrite"]) == ("run", False)
    places = content["flags"]["data_dir"], content["flags"]["client_dir"]
    assert places == (str(tmp_path / "there"), ""), "in full"
    assert (content["data"]["num_clients"], content["data"]["num_train"]) == (2, 8)
    assert content["data"]["label_counts"] == data.label_counts.tolist()
    assert content["versions"]["tensorflow-federated"].startswith("0.87")
    folder.close()


def test_what_was_dropped_is_told_and_the_csv_file_not_asked_for_again(tmp_path, make_federation):
    data = dataclasses.replace(make_federation([3]), num_dropped=7)
    folder = open_run_folder(ask(run_dir=str(tmp_path / "run")))
    write_config(folder, ask(dataset="building", building_csv="readings.csv", run_dir=str(tmp_path / "run")), data)
    content = json.loads(folder.config.read_text())
    assert content["data"]["num_dropped"] == 7
    assert (content["flags"]["dataset"], content["flags"]["building_csv"]) == ("building", "")
    folder.close()


def test_git_revision_is_none_without_git(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert find_git_revision() is None


def test_unfinished_files_of_dead_processes_go_when_a_run_is_resumed(run):
    dead, living = 2**22 + 1, os.getppid()  # no process has a number beyond 2**22
    for name in (
        f".{dead}.metrics.csv",
        f"plots/.{dead}.clusters.png",
        f".{dead}.export/x",
        f".{living}.evaluation.csv",
    ):
        write_text(run / name, "")
    open_run(resume=True).close()
    assert list_files(run) == {"config.json", "metrics.csv", f".{living}.evaluation.csv"}
