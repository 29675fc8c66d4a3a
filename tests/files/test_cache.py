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
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


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


def flip_a_byte(entry):
    (entry / "a").write_bytes(b"aaab")
    forget()


def cut_a_file(entry):
    (entry / "a").write_bytes(b"aaa")


def put_a_pipe(entry):
    (entry / "empty").unlink()
    os.mkfifo(entry / "empty")
    forget()


def remove_a_file(entry):
    (entry / "a").unlink()


def change_the_index(entry):
    text = (entry / "index.json").read_text()
    (entry / "index.json").write_text(text.replace("zwei", "drei"))


def age(entry):
    text = (entry / "index.json").read_text()
    (entry / "index.json").write_text(text.replace('"version": 3', '"version": 2'))


def nest(entry):
    (entry / "index.json").write_text("[" * 100_000)


def be_a_pipe(entry):
    (entry / "index.json").unlink()
    os.mkfifo(entry / "index.json")


def be_full_of_holes(entry):
    os.truncate(entry / "index.json", 10**12)


def be_a_device(entry):
    (entry / "index.json").unlink()
    (entry / "index.json").symlink_to("/dev/zero")


def hold_a_folder(entry):
    (entry / "a").unlink()
    (entry / "a").mkdir()
    (entry / "a" / "b").write_text("in the way")
    forget()


def be_a_file(entry):
    shutil.rmtree(entry)
    entry.write_text("in the way")


DAMAGES = [flip_a_byte, cut_a_file, put_a_pipe, remove_a_file, change_the_index, age, nest, be_a_pipe, be_a_file]
DAMAGES += [be_full_of_holes, be_a_device, hold_a_folder]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_made_anew(cache, damage):
    cache.find_or_write(DIGEST, write_letters)
    entry = pathlib.Path(cache.folder, DIGEST)
    damage(entry)
    assert cache.find(DIGEST) is None
    cache.find_or_write(DIGEST, write_letters)
    assert (entry / "a").read_bytes() == b"aaaa" and cache.find(DIGEST)
    assert list_names(cache.folder) == [".lock-ab", DIGEST]


def test_a_change_while_a_process_lives_is_seen(cache):
    """Zeros of the same size, with the times set back."""
    cache.find_or_write(DIGEST, write_letters)
    assert cache.find(DIGEST)
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
def test_no_byte_of_an_entry_can_change_unseen(tmp_path_factory, place, change):
    cache = Cache(str(tmp_path_factory.getbasetemp() / "flipped"), "letters", 3)
    cache.find_or_write(DIGEST, write_letters)
    entry = pathlib.Path(cache.folder, DIGEST)
    files = [(path, number) for path in sorted(entry.iterdir()) for number in range(path.stat().st_size)]
    path, number = files[place % len(files)]
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
    cache.find_or_write(DIGEST, write_letters)
    assert list_names(folder) == sorted([".lock-ab", DIGEST, f".1234.9a1b2c3d.{OTHER}", ".1234.9a1b2c3d.mine"])


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


WRITER = """
import pathlib, sys, time
from files.cache import Cache

def write(folder):
    pathlib.Path(sys.argv[1], "written").open("a").write("x")
    pathlib.Path(folder, "a").write_bytes(bytes(10**6))
    time.sleep(0.2)
    return {}

print("ready", flush=True)
sys.stdin.readline()
assert Cache(sys.argv[1], "letters", 3).find_or_write("ab" * 32, write)["files"] == {"a": 10**6}
"""


def test_two_processes_write_one_entry_once(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], cwd=ROOT, **pipes) for _ in range(2)]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * 2
    for writer in writers:
        writer.communicate("go\n", timeout=60)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert (tmp_path / "written").read_text() == "x"


@pytest.fixture(autouse=True)
def records(monkeypatch, tmp_path):
    """The folder of records."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "federated_suite" / "digests"


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


def test_records_that_cannot_be_kept_change_nothing(tmp_path, read, records):
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
