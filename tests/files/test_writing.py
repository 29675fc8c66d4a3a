"""Files and folders that are whole or not there: writes that fail, full disks, other processes."""

import errno
import fcntl
import os
import pathlib
import subprocess
import sys

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


DEAD = 2**22 + 1


def make_old(path):
    for each in (*path.rglob("*"), path):
        os.utime(each, (0, 0))


@pytest.mark.parametrize("write", [replace_whole, replace_folder])
def test_what_another_container_writes_stays(tmp_path, monkeypatch, write):
    monkeypatch.setattr(os, "getpid", lambda: DEAD)  # in its own numbers, where no process of ours has that one
    with write(tmp_path / "a") as draft:
        if write is replace_whole:
            draft.write_bytes(b"half")
        remove_unfinished(tmp_path)
        assert draft.exists() and draft.name.startswith(f".{DEAD}.")
        assert list_names(tmp_path) == [draft.name]
    (tmp_path / f".{DEAD}.0a1b2c3d.a").touch()
    remove_unfinished(tmp_path)
    assert list_names(tmp_path) == ["a"]


def test_a_draft_goes_as_soon_as_its_writer_is_killed(tmp_path):
    code = (
        "import sys, pathlib; sys.path[:] = sys.argv[2:]\n"
        "import os; os.getpid = lambda: 4194305\n"
        "from files.writing import replace_folder\n"
        "with replace_folder(sys.argv[1]) as draft: (draft / 'x').write_text('half'); print(1, flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "entry"), *sys.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        before = list_names(tmp_path)
        remove_unfinished(tmp_path)
        assert list_names(tmp_path) == before != []
        writer.kill()
    remove_unfinished(tmp_path)
    assert list_names(tmp_path) == []


def no_locks(*_):
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize("flock", [no_locks, lambda *_: None, "remote"], ids=["none", "lying", "remote"])
def test_where_locks_do_nothing_only_what_is_old_goes(tmp_path, monkeypatch, flock):
    if flock == "remote":
        monkeypatch.setattr("files.locks._is_remote", lambda _: True)
    else:
        monkeypatch.setattr("fcntl.flock", flock)
    young, old = tmp_path / f".{DEAD}.0a1b2c3d.a", tmp_path / f".{DEAD}.0a1b2c3d.b"
    for draft in (young, old):
        draft.mkdir()
        (draft / "x").touch()
    make_old(old)
    os.utime(young, (0, 0))  # its folder is old, but what it writes is not
    remove_unfinished(tmp_path)
    assert list_names(tmp_path) == [young.name]
    write_whole(tmp_path / "c", b"new")
    assert (tmp_path / "c").read_bytes() == b"new"


def test_what_a_living_number_left_goes_when_it_is_old(tmp_path):
    draft = tmp_path / f".{os.getppid()}.0a1b2c3d.a"
    draft.touch()
    remove_unfinished(tmp_path)
    assert draft.exists()
    make_old(draft)
    remove_unfinished(tmp_path)
    assert not draft.exists()


def test_a_folder_that_somebody_keeps_locked_stops_no_write(tmp_path, monkeypatch):
    monkeypatch.setattr("files.locks._PATIENCE_S", 0.05)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    write_whole(tmp_path / "a", b"new")
    os.close(descriptor)
    assert (tmp_path / "a").read_bytes() == b"new"
