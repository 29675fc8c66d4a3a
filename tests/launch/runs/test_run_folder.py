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
    for number in (3, 4):
        with contextlib.closing(open_run_folder(ask())) as folder:
            assert (folder.path.as_posix(), folder.is_new) == (f"runs/fedavg_digits_{number:03d}", True)


@pytest.mark.parametrize(("data_name", "name"), [("own data", "fedavg_own_data_001"), ("../Ü", "fedavg_.._Ü_001")])
def test_a_run_on_data_that_no_flag_names_is_called_after_them(data_name, name):
    with contextlib.closing(open_run_folder(ask(), data_name)) as folder:
        assert folder.path.as_posix() == f"runs/{name}"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("tables/Our wards (2).csv", "fedavg_Our_wards_2__001"),
        ("x" * 250 + ".csv", f"fedavg_{'x' * 50}_001"),
        ("/", "fedavg_files_001"),
        ("runs/data/0f3a.parquet", "fedavg_files_001"),  # a table that `fit` was given
    ],
)
def test_a_run_on_a_file_is_called_after_it(path, name):
    with contextlib.closing(open_run_folder(ask(dataset="files", data=os.path.abspath(path)))) as folder:
        assert folder.path.as_posix() == f"runs/{name}"


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
def test_overwrite_leaves_folders_with_something_else_alone_and_a_file_is_no_folder(tmp_path, names, message):
    for name, text in names.items():
        write_text(tmp_path / "run" / name, text)
    refuse(message, overwrite=True)
    assert {path.name: path.read_text() for path in (tmp_path / "run").iterdir()} == names
    (tmp_path / "file").touch()
    for run_dir, said in (("file", "expected a folder, found a file"), ("file/run", "cannot write there")):
        with pytest.raises(RunFolderError, match=said):
            open_run_folder(ask(run_dir=run_dir))


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


def test_the_workers_log_changes_nothing_of_a_run_that_is_refused_and_begins_anew_with_one_that_overwrites(run):
    """TensorFlow starts before the rest is cleared."""
    for name in ("worker.log", "worker_2.log"):
        (run / name).write_text("old")
    folder = open_run(overwrite=True)
    with pytest.raises(RunFolderError), folder.start_log() as log:
        pathlib.Path(log).write_text("new")
        raise RunFolderError("the model does not fit the data")
    assert folder.worker_log.read_text() == "old"
    assert list_files(run) == {"config.json", "metrics.csv", "worker.log", "worker_2.log"}
    with folder.start_log() as log:
        pathlib.Path(log).write_text("new")
    folder.clear()
    folder.close()
    assert list_files(run) == {"worker.log"} and folder.worker_log.read_text() == "new"


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


@pytest.mark.parametrize(
    "names", [None, (), (".lock", "worker.log", ".123.config.json"), (".replaced.config.json", "metrics.csv")]
)
def test_folders_without_a_run_are_taken_and_what_one_killed_in_its_start_up_leaves_is_no_hindrance(tmp_path, names):
    for name in names or ():
        write_text(tmp_path / "a" / "run" / name, "")
    if names == ():
        (tmp_path / "a" / "run").mkdir(parents=True)
    folder = open_run_folder(ask(run_dir="a/run"))
    assert folder.is_new and (tmp_path / "a" / "run").is_dir()
    with pytest.raises(RunFolderError, match=r"a run is going on in it|exists already"):  # it may be just starting
        open_run_folder(ask(run_dir="a/run"))
    folder.close()


def test_a_run_that_is_there_is_resumed_or_replaced_when_asked_for_and_by_one_process_at_a_time(run):
    refuse("run: exists already; add --resume to go on, --overwrite to replace it")
    folder = open_run(resume=True)
    assert not folder.is_new and folder.metrics.exists()
    with folder.start_log() as log:
        assert log == str(folder.worker_log)
    for how in ("resume", "overwrite"):
        refuse("a run is going on in it", **{how: True})
    folder.close()
    (run / "config.json").write_text(json.dumps({"flags": {"algo": "my_package.ditto:ALGORITHM"}}))  # a user's own
    open_run(overwrite=True).close()
    with pytest.raises(RunFolderError, match="no run to resume"):
        open_run_folder(ask(run_dir="nothing", resume=True))


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


def test_config_json_holds_flags_sizes_and_versions_and_no_csv_file_is_asked_for_again(tmp_path, make_federation):
    folder, data = open_run(), dataclasses.replace(make_federation([3, 5]), num_dropped=7)
    asked = {"data_dir": "there", "client_dir": "", "dataset": "building", "building_csv": "readings.csv"}
    write_config(folder, ask(run_dir="elsewhere", overwrite=True, **asked), data)
    folder.close()
    content = json.loads(folder.config.read_text())
    expected = {"epochs": ask().algorithm.training.epochs, "run_dir": "run", "overwrite": False, "client_dir": ""}
    expected |= {"data_dir": str(tmp_path / "there"), "dataset": "building", "building_csv": ""}  # in full
    assert expected.items() <= content["flags"].items()
    sizes = {"num_clients": 2, "num_train": 8, "num_dropped": 7, "label_counts": data.label_counts.tolist()}
    assert sizes.items() <= content["data"].items()
    assert content["versions"]["tensorflow-federated"].startswith("0.87")


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
