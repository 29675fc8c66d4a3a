"""Files and folders that are whole or not there: writes that fail, full disks, other processes."""

import errno
import os
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.writing import name_in_errors, remove_unfinished, replace_folder, replace_whole, write_text, write_whole


def fill_disk(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_write_replaces_all_of_a_file(tmp_path):
    path = tmp_path / "new" / "a.bin"
    write_whole(path, b"long and old")
    write_whole(path, b"n", b"ew")
    assert path.read_bytes() == b"new" and list_names(path.parent) == ["a.bin"]
    write_text(path, "Zoë\n")
    assert path.read_bytes() == "Zoë\n".encode()


@given(st.lists(st.binary(max_size=20), max_size=4))
def test_what_is_written_is_read(tmp_path_factory, parts):
    path = tmp_path_factory.getbasetemp() / "parts"
    write_whole(path, *parts)
    assert path.read_bytes() == b"".join(parts)


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError, OSError(errno.ENOSPC, "No space left on device")])
def test_a_write_that_fails_half_way_changes_nothing(tmp_path, failure):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    with pytest.raises((KeyboardInterrupt, ValueError, OSError)), replace_whole(path) as draft:
        assert draft.suffix == ".json"
        draft.write_bytes(b"ne")
        raise failure
    assert path.read_bytes() == b"old" and list_names(tmp_path) == ["a.json"]


def test_a_full_disk_is_named_by_the_file(tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    monkeypatch.setattr("os.replace", fill_disk)
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(path, b"new")
    assert caught.value.filename == str(path) and list_names(tmp_path) == []


def test_a_missing_folder_is_an_error_where_none_is_to_be_made(tmp_path):
    path = tmp_path / "nowhere" / "a.bin"
    with pytest.raises(FileNotFoundError) as caught, replace_whole(path, makes_folder=False) as draft:
        draft.write_bytes(b"new")
    assert caught.value.filename == str(path)


def test_errors_of_other_files_keep_their_names(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, name_in_errors(tmp_path / "a"):
        pathlib.Path("/no/such/file").read_bytes()
    assert caught.value.filename == "/no/such/file"


@pytest.mark.parametrize(("mode", "expected"), [(0o666, 0o644), (0o600, 0o600)])
def test_a_file_may_be_read_by_whom_mode_and_umask_say(tmp_path, mode, expected):
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "a", b"new", mode=mode)
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == expected


def write_folder(path, content, **options):
    with replace_folder(path, **options) as draft:
        (draft / "a").write_text(content)


@pytest.mark.parametrize("before", ["nothing", "folder", "file", "empty"])
def test_a_folder_takes_the_place_of_what_was_there(tmp_path, before):
    path = tmp_path / "entry"
    if before == "folder":
        write_folder(path, "old")
    if before == "empty":
        path.mkdir()
    if before == "file":
        path.write_text("old")
    write_folder(path, "new")
    assert (path / "a").read_text() == "new" and list_names(tmp_path) == ["entry"]


def test_a_whole_folder_of_another_process_stays(tmp_path):
    path = tmp_path / "entry"
    with replace_folder(path, lambda: True) as draft:
        (draft / "a").write_text("slow")
        write_folder(path, "quick")
    assert (path / "a").read_text() == "quick" and list_names(tmp_path) == ["entry"]


def test_a_folder_that_fails_changes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "entry"
    write_folder(path, "old")
    with pytest.raises(OSError, match="No space left") as caught, replace_folder(path) as draft:
        (draft / "a").write_text("ne")
        fill_disk()
    assert caught.value.filename == str(path)
    assert (path / "a").read_text() == "old" and list_names(tmp_path) == ["entry"]
    monkeypatch.setattr("os.rename", fill_disk)
    with pytest.raises(OSError, match="No space left"):
        write_folder(path, "new")
    assert (path / "a").read_text() == "old" and list_names(tmp_path) == ["entry"]


def test_what_dead_processes_left_is_removed_and_nothing_else(tmp_path):
    dead, living = 2**22 + 1, os.getppid()  # no process has a number beyond 2**22
    (tmp_path / f".{dead}.0a1b2c3d.export").mkdir()
    for name in (f".{dead}.0a1b2c3d.a.csv", f".{dead}.a.csv", f".{living}.0a1b2c3d.a.csv", ".hidden", "1.2.a"):
        (tmp_path / name).touch()
    remove_unfinished(tmp_path)
    assert list_names(tmp_path) == sorted([f".{living}.0a1b2c3d.a.csv", ".hidden", "1.2.a"])
