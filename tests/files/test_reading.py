"""Errors in one line, and listings that leave out what nobody can read."""

import os
import signal

import pytest

from files.reading import describe, explain_errors, find_files, open_regular, read_regular


@pytest.fixture(autouse=True)
def no_waiting():
    """A pipe that is opened would be waited at for ever."""
    signal.alarm(20)
    yield
    signal.alarm(0)


def test_errors_are_one_line(tmp_path):
    with pytest.raises(ValueError, match="here") as caught, explain_errors("here", ValueError):
        (tmp_path / "none").read_bytes()
    assert str(caught.value) == "here: cannot be read (No such file or directory)"
    explained = explain_errors("here", ValueError, "cannot be written", "make room")
    with pytest.raises(ValueError, match="here") as caught, explained:
        raise OSError("it is full")
    assert str(caught.value) == "here: cannot be written (it is full); make room"
    with pytest.raises(ZeroDivisionError), explain_errors("here", ValueError):
        raise ZeroDivisionError


def test_descriptions():
    assert describe(PermissionError(13, "Permission denied", "/x")) == "Permission denied"
    assert (describe(OSError("odd")), describe(OSError()), describe("text")) == ("odd", "OSError", "text")


def test_only_regular_files_are_listed(tmp_path):
    (tmp_path / "b" / "c.csv").mkdir(parents=True)
    for name in ("b.csv", "a.csv", "a.txt", "b/d.csv"):
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to("a.csv")
    (tmp_path / "pipe_link.csv").symlink_to("pipe.csv")
    (tmp_path / "gone.csv").symlink_to("none")
    names = [str(path.relative_to(tmp_path)) for path in find_files(tmp_path, "*.csv")]
    assert names == ["a.csv", "b.csv", "link.csv"]
    assert len(find_files(tmp_path, "*.csv", "**/*.csv")) == 4
    assert find_files(tmp_path / "none", "*") == []


def test_a_pipe_is_not_waited_at(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(OSError, match="no regular file"):
            read_regular(path)
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    (tmp_path / "file").write_bytes(b"content")
    assert read_regular(tmp_path / "file") == b"content"


def test_checkpoints_that_are_pipes_are_none_and_no_run_is_left_out_without_a_word(tmp_path):
    from launch.runs.checkpoints import find_checkpoints
    from launch.runs.run_records import find_run_dirs

    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / "config.json")
    os.mkfifo(tmp_path / "round_3.npz")
    (tmp_path / "round_2.npz").touch()
    assert find_run_dirs(tmp_path) == [tmp_path / "run"] and list(find_checkpoints(tmp_path)) == [2]
