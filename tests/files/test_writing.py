"""Files and folders that are whole or not there: writes that fail, full disks, other processes."""

import errno
import fcntl
import os
import pathlib
import pickle
import re
import signal
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.reading import describe, explain_errors, find_files, open_regular, read_regular
from files.unpickling import read_pickled_dictionary
from files.writing import name_in_errors, remove_unfinished, replace_folder, replace_whole, write_text, write_whole


def fill_disk(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


DEAD = 2**22 + 1  # no process has a number beyond 2**22


def make_old(path):
    for each in (*path.rglob("*"), path):
        os.utime(each, (0, 0))


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


@given(st.lists(st.binary(max_size=20), max_size=4))
def test_a_write_replaces_all_of_a_file(tmp_path_factory, parts):
    path = tmp_path_factory.getbasetemp() / "parts" / "a.bin"
    write_text(path, "Zoë, long and old\n")
    assert path.read_bytes() == "Zoë, long and old\n".encode()
    write_whole(path, *parts)
    assert path.read_bytes() == b"".join(parts) and list_names(path.parent) == ["a.bin"]


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


def test_errors_name_the_file_that_is_missing(tmp_path):
    path = tmp_path / "nowhere" / "a.bin"
    with pytest.raises(FileNotFoundError) as caught, replace_whole(path, makes_folder=False) as draft:
        draft.write_bytes(b"new")
    assert caught.value.filename == str(path)
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
    make = {"folder": lambda: write_folder(path, "old"), "file": path.touch, "empty": path.mkdir}
    make.get(before, list)()
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


def test_what_dead_processes_left_and_what_is_old_is_removed_and_nothing_else(tmp_path):
    living = os.getppid()
    (tmp_path / f".{DEAD}.0a1b2c3d.export").mkdir()
    for name in (f".{DEAD}.0a1b2c3d.a.csv", f".{DEAD}.a.csv", f".{living}.0a1b2c3d.a.csv", ".hidden", "1.2.a"):
        (tmp_path / name).touch()
    remove_unfinished(tmp_path)
    assert list_names(tmp_path) == sorted([f".{living}.0a1b2c3d.a.csv", ".hidden", "1.2.a"])
    make_old(tmp_path / f".{living}.0a1b2c3d.a.csv")
    remove_unfinished(tmp_path)
    assert list_names(tmp_path) == [".hidden", "1.2.a"]


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


def test_a_folder_that_somebody_keeps_locked_stops_no_write(tmp_path, monkeypatch):
    monkeypatch.setattr("files.locks._PATIENCE_S", 0.05)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    write_whole(tmp_path / "a", b"new")
    os.close(descriptor)
    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.fixture
def no_waiting():
    """A pipe that is opened would be waited at for ever."""
    signal.alarm(20)
    yield
    signal.alarm(0)


def test_errors_are_one_line(tmp_path):
    missing, full = "cannot be read (No such file or directory)", "cannot be written (it is full); make room"
    with pytest.raises(ValueError, match=re.escape(f"here: {missing}")), explain_errors("here", ValueError):
        (tmp_path / "none").read_bytes()
    explained = explain_errors("here", ValueError, "cannot be written", "make room")
    with pytest.raises(ValueError, match=re.escape(f"here: {full}")), explained:
        raise OSError("it is full")
    with pytest.raises(ZeroDivisionError), explain_errors("here", ValueError):
        raise ZeroDivisionError
    assert [describe(error) for error in (OSError("odd"), OSError(), "text")] == ["odd", "OSError", "text"]


def test_only_regular_files_are_listed(tmp_path, no_waiting):
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


def test_a_pipe_is_not_waited_at(tmp_path, no_waiting):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(OSError, match="no regular file"):
            read_regular(path)
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    (tmp_path / "file").write_bytes(b"content")
    assert read_regular(tmp_path / "file") == b"content"


def test_checkpoints_that_are_pipes_are_none_and_no_run_is_left_out_without_a_word(tmp_path, no_waiting):
    from launch.runs.checkpoints import find_checkpoints
    from launch.runs.run_records import find_run_dirs

    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / "config.json")
    os.mkfifo(tmp_path / "round_3.npz")
    (tmp_path / "round_2.npz").touch()
    assert find_run_dirs(tmp_path) == [tmp_path / "run"] and list(find_checkpoints(tmp_path)) == [2]


def write_string(content):
    return b"T" + struct.pack("<i", len(content)) + content


def dump_as_python_2(array):
    """{"data": an array of uint8} as Python 2 pickles it, with bytes as text, which the files of CIFAR-10 are."""
    shape = b"(" + b"".join(b"M" + struct.pack("<H", number) for number in array.shape) + b"t"
    kind = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    return b"\x80\x02}U\x04data" + made + b"(K\x01" + shape + kind + b"\x89" + write_string(array.tobytes()) + b"tbs."


def test_arrays_of_python_2():
    array = np.arange(600, dtype=np.uint8).reshape(2, 300)
    content = dump_as_python_2(array)
    np.testing.assert_array_equal(pickle.loads(content, encoding="bytes")[b"data"], array)  # the test's own pickle
    np.testing.assert_array_equal(read_pickled_dictionary(content, "bytes")[b"data"], array)


TEXT = st.text("aé\n\0李")  # of few letters: to list all of Unicode takes seconds
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXT, st.binary())


@given(st.dictionaries(TEXT, st.one_of(PLAIN, st.lists(PLAIN), st.tuples(PLAIN, PLAIN))), st.integers(2, 5))
def test_plain_values_come_out_as_they_went_in(values, protocol):
    assert read_pickled_dictionary(pickle.dumps(values, protocol)) == values


@given(st.binary(max_size=60))
def test_noise_is_an_error_or_a_dictionary(noise):
    try:
        assert isinstance(read_pickled_dictionary(b"\x80\x02" + noise), dict)
    except Exception as error:
        assert not isinstance(error, AssertionError)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cos\nmkdir\n(U\x04madetR.", "asks for os.mkdir"),
        (b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x07\x00\x00\x00unicodetR.", "not written by Python"),
        (pickle.dumps([1]), "no dictionary but list"),
    ],
)
def test_nothing_is_called(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        read_pickled_dictionary(content)
    assert os.listdir(tmp_path) == []
