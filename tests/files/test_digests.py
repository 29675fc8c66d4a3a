"""The identity of files: every byte, and records that spare reading large ones again."""

import os
import pathlib
import time

import pytest

from files import digests
from files.digests import clean_digest_records, compute_source_digest, compute_sum


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
