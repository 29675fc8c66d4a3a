"""The cache of entries: made anew when a byte is wrong, safe from hostile indices, cleaned alone."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from files import cache as cache_module
from files import digests
from files.cache import Cache
from files.digests import clean_digest_records, compute_source_digest, compute_sum

ROOT = pathlib.Path(__file__).parents[2]
DIGEST, OTHER = "ab" * 32, "cd" * 32


@pytest.fixture(autouse=True)
def records(monkeypatch, tmp_path):
    """The folder of records."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg" / "federated_suite" / "digests"


@pytest.fixture
def cache(tmp_path):
    return Cache(str(tmp_path / "cache"), "letters", 3)


def write_letters(folder):
    pathlib.Path(folder, "a").write_bytes(b"aaaa")
    pathlib.Path(folder, "empty").write_bytes(b"")
    return {"known": [1, "zwei"]}


def fail(_):
    pytest.fail("written again")


def list_names(folder):
    return sorted(os.listdir(folder))


def forget():
    """As in another process."""
    cache_module._checked.clear()


def test_an_entry_is_written_once_and_found(cache):
    assert cache.find(DIGEST) is None
    index = cache.find_or_write(DIGEST, write_letters)
    assert index["known"] == [1, "zwei"] and index["files"] == {"a": 4, "empty": 0}
    assert cache.find_or_write(DIGEST, fail) == index
    forget()
    assert cache.find(DIGEST) == index
    assert list_names(cache.folder) == [".lock-ab", DIGEST]


def put(path, what):
    """Puts bytes, or what is no file, in place of a file or folder; of two texts, the second for the first in it."""
    content = path.read_text().replace(*what).encode() if isinstance(what, tuple) else what
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        (path / "b").mkdir(parents=True)
    elif what == "endless device":
        path.symlink_to("/dev/zero")
    elif content is not None:
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        *(("a", what) for what in (b"aaab", b"aaa", None, "folder")),
        ("empty", "pipe"),
        *(("index.json", what) for what in (("zwei", "drei"), ('"version": 3', '"version": 2'))),
        *(("index.json", what) for what in (b"[" * 100_000, b"{", "pipe", "endless device")),
        (".", b"a file in the way"),
    ],
)
def test_a_damaged_entry_is_made_anew(cache, name, what):
    cache.find_or_write(DIGEST, write_letters)
    entry = pathlib.Path(cache.folder, DIGEST)
    put(entry / name, what)
    forget()
    assert cache.find(DIGEST) is None
    cache.find_or_write(DIGEST, write_letters)
    assert (entry / "a").read_bytes() == b"aaaa" and cache.find(DIGEST)
    assert list_names(cache.folder) == [".lock-ab", DIGEST]


def test_an_index_full_of_holes_is_not_read(cache):
    cache.find_or_write(DIGEST, write_letters)
    os.truncate(pathlib.Path(cache.folder, DIGEST, "index.json"), 10**12)
    assert cache.find(DIGEST) is None


def test_a_change_while_a_process_lives_is_seen(cache):
    """Zeros of the same size, with the times set back."""
    assert cache.find_or_write(DIGEST, write_letters) == cache.find(DIGEST)
    path = pathlib.Path(cache.folder, DIGEST, "a")
    before = path.stat()
    path.write_bytes(bytes(4))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.find(DIGEST) is None


LOCKS = {"link": lambda path: path.symlink_to("elsewhere"), "pipe": os.mkfifo, "folder": os.mkdir}


@pytest.mark.parametrize("kind", LOCKS)
def test_a_lock_file_that_is_none_is_said_and_not_waited_at(cache, kind):
    os.mkdir(cache.folder)
    LOCKS[kind](pathlib.Path(cache.folder, ".lock-ab"))
    expected = {"link": "its .lock-ab is a symbolic link", "pipe": "its .lock-ab is a pipe", "folder": "Is a directory"}
    with pytest.raises(OSError, match=expected[kind]):
        cache.find_or_write(DIGEST, fail)


HOSTILE = [
    *([], None, 7, {"files": 3}, {"files": {"a": 4}}, {"files": {"a": "4"}, "sums": {}}, {"files": {"\0": 4}}),
    *({"files": {"../../a": 4}, "sums": []}, {"files": [], "sums": []}, {"files": None, "sums": 1}),
]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_index_is_none(cache, content):
    cache.find_or_write(DIGEST, write_letters)
    if isinstance(content, dict):
        content = {"format": "letters", "version": 3, **content}
        content["sum"] = cache_module._sum_up(content)
    pathlib.Path(cache.folder, DIGEST, "index.json").write_text(json.dumps(content))
    assert cache.find(DIGEST) is None


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 255))
def test_no_byte_of_an_entry_can_change_unseen(tmp_path_factory, position, change):
    cache = Cache(str(tmp_path_factory.getbasetemp() / "flipped"), "letters", 3)
    cache.find_or_write(DIGEST, write_letters)
    entry = pathlib.Path(cache.folder, DIGEST)
    files = [(path, number) for path in sorted(entry.iterdir()) for number in range(path.stat().st_size)]
    path, number = files[position % len(files)]
    content = bytearray(path.read_bytes())
    content[number] ^= change
    path.write_bytes(content)
    forget()
    found = cache.find(DIGEST)
    assert found is None or found["known"] == [1, "zwei"]  # such as another spelling of the same JSON


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_leaves_nothing(cache, failure):
    def write(folder):
        write_letters(folder)
        raise failure

    with pytest.raises((OSError, KeyboardInterrupt)):
        cache.find_or_write(DIGEST, write)
    assert list_names(cache.folder) == [".lock-ab"]


def test_old_drafts_go_with_the_next_write(cache):
    folder = pathlib.Path(cache.folder)
    drafts = [f".1234.0a1b2c3d.{OTHER}", f".writing-{OTHER}-0a1b"]
    for name in (*drafts, f".1234.9a1b2c3d.{OTHER}", ".1234.9a1b2c3d.mine"):
        (folder / name).mkdir(parents=True)
    for name in (*drafts, ".1234.9a1b2c3d.mine"):
        os.utime(folder / name, (time.time() - 10**6,) * 2)
    gone = folder / f".writing-{OTHER}-gone"  # as one that another process has put in place meanwhile
    gone.symlink_to(folder / "elsewhere")
    cache.find_or_write(DIGEST, write_letters)
    young = [f".1234.9a1b2c3d.{OTHER}", ".1234.9a1b2c3d.mine", gone.name]
    assert list_names(folder) == sorted([".lock-ab", DIGEST, *young])


def test_cleaning_takes_entries_alone_and_counts_them(cache):
    folder = pathlib.Path(cache.folder)
    assert cache.clean() == 0
    cache.find_or_write(DIGEST, write_letters)
    num_bytes = sum(path.stat().st_size for path in (folder / DIGEST).iterdir())
    for name in (f".1.0a1b2c3d.{OTHER}", f".writing-{OTHER}-0a1b", "copy"):
        shutil.copytree(folder / DIGEST, folder / name)
    Cache(cache.folder, "numbers", 1).find_or_write(OTHER, write_letters)
    (folder / ("ef" * 32)).symlink_to(folder / "copy")
    (folder / "notes").touch()
    assert cache.clean() == 3 * num_bytes
    assert list_names(folder) == sorted([OTHER, "ef" * 32, "copy", "notes"])


RACER = """
import pathlib, sys
from files import cache

def write(folder):
    with open(pathlib.Path(folder_of_all, "written"), "a") as file:
        file.write("x")
    pathlib.Path(folder, "a").write_bytes(bytes(10**6))

folder_of_all, has_locks = sys.argv[1], sys.argv[2] == "True"
if not has_locks:
    cache.fcntl.flock = lambda *_: None
print("ready", flush=True)
sys.stdin.readline()
for number in range(10):
    index = cache.Cache(folder_of_all, "letters", 3).find_or_write(f"{number:064x}", write)
    size = pathlib.Path(folder_of_all, f"{number:064x}", "a").stat().st_size
    assert index["files"] == {"a": size} == {"a": 10**6}, (number, size)
"""


@pytest.mark.parametrize("has_locks", [True, False])
def test_racing_processes_agree_and_with_locks_write_once(tmp_path, has_locks):
    """Four programs start at once on the same entries, one after another."""
    command = [sys.executable, "-c", RACER, str(tmp_path), str(has_locks)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen(command, cwd=ROOT, **pipes) for _ in range(4)]
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 4
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    errors = [racer.communicate(timeout=60)[1] for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 4, errors
    assert list_names(tmp_path) == sorted([".lock-00", "written", *(f"{number:064x}" for number in range(10))])
    assert len((tmp_path / "written").read_text()) == 10 or not has_locks


@pytest.fixture
def read(monkeypatch):
    """Every file is a large one, and changed long ago; the paths of those that were read."""
    monkeypatch.setattr(digests, "RECORDED_BYTES", 1)
    monkeypatch.setattr(digests, "SETTLED_NS", -(10**9))
    original, paths = digests._read_sum, []
    monkeypatch.setattr(digests, "_read_sum", lambda path: paths.append(path) or original(path))
    return paths


def write(tmp_path, **contents):
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return [str(tmp_path / name) for name in contents]


def test_bytes_and_reading_make_the_digest_and_names_do_not(tmp_path):
    first, same, other = write(tmp_path, first=b"1,2", same=b"1,2", other=b"1,3")
    digest = compute_source_digest([first], {"label": "y"})
    assert digest == "b912142630caee139d6c28dc09efee70c7c54ef825f759fc16e1affc3c054f46"  # as ever: it names folders
    assert compute_source_digest([same], {"label": "y"}) == digest
    assert compute_source_digest([other], {"label": "y"}) != digest
    assert compute_source_digest([first], {"label": "z"}) != digest


def test_the_order_of_files_and_where_one_ends_count(tmp_path):
    a, b, ab, nothing = write(tmp_path, a=b"a", b=b"b", ab=b"ab", nothing=b"")
    found = {compute_source_digest(paths) for paths in ([a, b], [b, a], [ab], [ab, nothing], [nothing, ab], [])}
    assert len(found) == 6


def test_small_files_have_no_record(tmp_path, records):
    compute_source_digest(write(tmp_path, a=b"a"))
    assert not records.exists()


def test_a_record_spares_reading_and_gives_the_same(tmp_path, read, records):
    paths = write(tmp_path, a=b"aaa", b=b"bbb")
    digest, other = compute_source_digest(paths), compute_source_digest(paths, "otherwise")
    assert read == paths and digest != other  # one record for every way of reading
    assert compute_source_digest(paths) == digest and read == paths
    assert compute_source_digest(paths[::-1]) != digest and len(read) == 4
    records.rename(tmp_path / "away")
    assert compute_source_digest(paths) == digest and len(read) == 6


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path, read):
    """The time of the inode cannot be set back."""
    [path] = write(tmp_path, a=bytes(1000))
    os.utime(path, (1, 1))
    digest = compute_source_digest([path])
    time.sleep(0.02)  # the clock of the disk ticks
    with open(path, "r+b") as file:
        file.seek(500)
        file.write(b"\x01")
    os.utime(path, (1, 1))
    assert compute_source_digest([path]) != digest


def test_files_that_changed_just_now_have_no_record(tmp_path, read, records, monkeypatch):
    """A change within the same tick of the clock would leave the times as they are."""
    monkeypatch.setattr(digests, "SETTLED_NS", 2 * 10**9)
    [path] = write(tmp_path, a=b"aaa")
    digest = compute_source_digest([path])
    state = digests._describe_state(path)
    monkeypatch.setattr(digests, "_describe_state", lambda _: state)  # a clock that stands still
    pathlib.Path(path).write_bytes(b"aab")
    assert compute_source_digest([path]) != digest and not records.exists()


def test_files_that_change_while_they_are_read_have_no_record(tmp_path, read, records, monkeypatch):
    [path] = write(tmp_path, a=b"aaa")
    original = digests._read_sum

    def change(path):
        found = original(path)
        pathlib.Path(path).write_bytes(b"longer")
        return found

    monkeypatch.setattr(digests, "_read_sum", change)
    compute_source_digest([path])
    assert not records.exists()


@pytest.mark.parametrize("content", [b"", b"short", bytes(64), bytes(96)], ids=len)
def test_a_damaged_record_is_a_miss(tmp_path, read, records, content):
    paths = write(tmp_path, a=b"aaa")
    digest = compute_source_digest(paths)
    [record] = records.iterdir()
    record.write_bytes(content)
    assert compute_source_digest(paths) == digest and len(read) == 2


def test_records_that_cannot_be_written_change_nothing(tmp_path, read, records):
    records.parent.mkdir(parents=True)
    records.write_text("no folder")
    paths = write(tmp_path, a=b"aaa")
    assert compute_source_digest(paths) == compute_source_digest(paths) and len(read) == 2


def test_a_sum_is_of_the_file_alone_and_trusts_records_if_it_may(tmp_path, read):
    [path] = write(tmp_path, a=b"")
    assert compute_sum(path) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    [path] = write(tmp_path, a=b"aaa")
    assert len({compute_sum(path), compute_sum(path, True), compute_sum(path, True)}) == 1
    assert len(read) == 3


def test_cleaning_takes_the_records_alone(tmp_path, read, records):
    assert clean_digest_records() == 0
    compute_source_digest(write(tmp_path, a=b"aaa"))
    (records / "mine").touch()
    assert clean_digest_records() == 64
    assert os.listdir(records) == ["mine"]


def test_what_cannot_be_read_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        compute_source_digest([str(tmp_path / "none")])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"):
        compute_source_digest([str(tmp_path / "pipe")])
