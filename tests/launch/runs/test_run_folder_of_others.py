"""A run folder that somebody else may have prepared: nothing is written through it, and no result in it is removed."""

import os

import pytest

from files.writing import write_text
from launch.runs.errors import RunFolderError
from launch.runs.run_folder import RunFolder


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


def test_taking_the_lock_keeps_what_the_file_holds(tmp_path, run):
    os.link(tmp_path / "precious", run / ".lock")
    RunFolder(run, is_new=False).close()


def test_a_link_where_a_file_is_to_be_written_first_is_not_written_through(tmp_path, run):
    (run / f".{os.getpid()}.table.csv").symlink_to(tmp_path / "precious")
    write_text(run / "table.csv", "a\n")
    assert (run / "table.csv").read_text() == "a\n"


@pytest.mark.parametrize("left", ["metrics.csv", ".replaced.config.json", "checkpoints", "notes.txt"])
def test_a_folder_that_holds_more_than_a_start_is_never_removed(run, left):
    folder = RunFolder(run, is_new=True)
    (run / left).mkdir()
    folder.discard()
    folder.close()
    assert (run / left).is_dir()


def test_a_folder_that_no_run_began_in_goes(run):
    folder = RunFolder(run, is_new=True)
    (run / "worker.log").write_text("what TensorFlow said")
    folder.discard()
    folder.close()
    assert not run.exists()


@pytest.mark.parametrize("is_new", [True, False])
def test_what_a_killed_start_left_goes_with_the_next(run, is_new):
    gone = 2**22 + 1  # beyond the numbers of processes
    for process in (gone, os.getppid()):
        (run / f".{process}.worker.log").write_text("")
    RunFolder(run, is_new=is_new).close()
    assert [path.name for path in run.glob(".*.worker.log")] == [f".{os.getppid()}.worker.log"]
