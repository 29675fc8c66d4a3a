"""A run folder that somebody else may have prepared: nothing is written through it, and no result in it is removed."""

import json
import os
import shutil

import pytest

from files.writing import write_text
from launch import track
from launch.runs.checksums import check_sums
from launch.runs.errors import RunFolderError
from launch.runs.run_folder import RunFolder, keep_inside, open_run_folder
from launch.runs.run_records import RunRecordError, read_settings
from launch.runs.trackers.order import describe_run
from launch.runs.trackers.sender import list_files
from launch.settings.run_config import build_run_config, flag_values
from launch.training.finished_run import read_finished_run


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "precious").write_text("keep me")
    return tmp_path / "run"


@pytest.fixture(autouse=True)
def nothing_is_written_elsewhere(tmp_path, run):
    yield
    assert (tmp_path / "precious").read_text() == "keep me"


@pytest.mark.parametrize("name", [".lock", "worker.log", "worker_2.log"])
def test_a_link_is_not_written_through(tmp_path, run, name):
    (run / name).symlink_to(tmp_path / "precious")
    with pytest.raises(RunFolderError, match=f"its {name} is a symbolic link"):
        RunFolder(run, is_new=False)


@pytest.fixture
def mine(tmp_path):
    """A run of the user's own."""
    for name in ("models/global/model.keras", "checkpoints/round_2.npz", "plots/by_round.png", "export/best/a.tflite"):
        write_text(tmp_path / "mine" / name, name)
    for name in ("metrics.csv", "summary.json", "report.html", "tensorboard/events.out", "kept/0/1_2.bin", "a.csv"):
        write_text(tmp_path / "mine" / name, name)
    flags = flag_values(build_run_config({"algo": "fedavg"}))
    write_text(tmp_path / "mine" / "config.json", json.dumps({"flags": flags}))
    write_text(tmp_path / "mine" / "worker.log", "mine")
    return tmp_path / "mine"


def list_contents(folder):
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "name",
    [
        *("models", "models/global", "models/global/model.keras", "checkpoints", "checkpoints/round_2.npz", "plots"),
        *("tensorboard", "kept", "kept/0", "export", "export/best", "metrics.csv", "summary.json", "report.html"),
        "config.json",
    ],
)
def test_no_command_writes_or_removes_by_a_link(tmp_path, mine, name):
    shared = shutil.copytree(mine, tmp_path / "shared")
    shutil.rmtree(shared / name) if (shared / name).is_dir() else (shared / name).unlink()
    (shared / name).symlink_to(os.path.relpath(mine / name, (shared / name).parent))
    before, said = list_contents(mine), f"--run_dir={shared}: its {name} is a symbolic link, no file of a run; remove"
    for how in ("resume", "overwrite"):
        with pytest.raises(RunFolderError, match=said):
            open_run_folder(build_run_config({"algo": "fedavg", "run_dir": str(shared), how: True}))
    for read in (lambda: read_finished_run(str(shared)), lambda: describe_run(shared)):
        with pytest.raises(RunFolderError, match=said):
            read()
    assert list_contents(mine) == before


@pytest.mark.parametrize("name", ["metrics.csv", "worker.log", "checkpoints/round_3.npz", "models/global/model.keras"])
def test_nobody_waits_at_a_pipe(tmp_path, mine, name):
    (mine / name).unlink(missing_ok=True)
    os.mkfifo(mine / name)
    with pytest.raises(RunFolderError, match=f"its {name} is a pipe or a device, no file of a run; remove it"):
        RunFolder(mine, is_new=False)


@pytest.mark.parametrize("name", ["config.json", "metrics.csv", "timing.csv", "checksums.sha256", "export/report.csv"])
def test_a_comparison_waits_at_none(mine, name):
    (mine / name).unlink(missing_ok=True)
    os.mkfifo(mine / name)
    with pytest.raises(RunRecordError, match=f"{name}: expected a regular file; restore it, or train again"):
        read_settings(mine)
    with pytest.raises(RunFolderError):
        check_sums(mine, [name])


def test_a_log_that_a_copy_by_hard_links_shares_becomes_its_own(tmp_path, mine):
    shared = tmp_path / "shared"
    write_text(mine / "tracking" / "mlflow.json", "{}")
    shutil.copytree(mine, shared, copy_function=os.link)
    keep_inside(shared)
    for name in ("worker.log", "tracking/mlflow.json"):
        with open(shared / name, "ab") as log:  # as whoever writes there does
            log.write(b" and more")
    assert (shared / "worker.log").read_text() == "mine and more"
    assert (mine / "worker.log").read_text() == "mine" and (mine / "tracking/mlflow.json").read_text() == "{}"


def test_a_tracker_is_sent_nothing_that_lies_elsewhere_and_its_files_are_made_in_the_run_alone(tmp_path, mine, capsys):
    (mine / "notes.json").symlink_to(tmp_path / "precious")
    (mine / "own.json").write_text("{}")
    assert {"own.json", "a.csv"} <= list_files(mine, True).keys() - {"notes.json"}
    assert "notes.json" not in list_files(mine, True)
    shutil.rmtree(mine / "tensorboard")
    (tmp_path / "empty").mkdir()
    (mine / "tensorboard").symlink_to(tmp_path / "empty")
    assert track.main([f"--run_dir={mine}", "--to=tensorboard"]) == 2
    assert "its tensorboard is a symbolic link" in capsys.readouterr().err
    assert list((tmp_path / "empty").iterdir()) == []


def test_what_may_be_a_link_is_the_folder_that_the_user_types_and_their_own_things_in_it(tmp_path, mine):
    """A lock that is linked to another file leaves what that holds, and a link where a draft is to be is no draft."""
    (mine / "thesis").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(mine)
    os.link(tmp_path / "precious", mine / ".lock")
    RunFolder(tmp_path / "link", is_new=False).close()
    (mine / f".{os.getpid()}.table.csv").symlink_to(tmp_path / "precious")
    write_text(mine / "table.csv", "a\n")
    assert (mine / "table.csv").read_text() == "a\n"


@pytest.mark.parametrize("left", ["metrics.csv", ".replaced.config.json", "checkpoints", "notes.txt", "worker.log"])
def test_a_folder_that_holds_more_than_a_start_is_never_removed_and_one_that_no_run_began_in_goes(run, left):
    folder = RunFolder(run, is_new=True)
    (run / left).mkdir()
    folder.discard()
    folder.close()
    assert run.is_dir() == (left != "worker.log")
