"""The cache of client files, of which `tests/files/test_cache.py` has what all caches do."""

import os

import numpy as np
import pytest
from refusals import assert_refused

from datasets import client_files
from datasets.client_files import (
    INDEX_FILE,
    SUFFIXES,
    is_client_whole,
    open_or_write_entry,
    write_client,
)
from files import cache

DIGEST = "ab" * 32


def make_splits(num_examples=5):
    part = (
        np.arange(num_examples * 2, dtype=np.uint8).reshape(num_examples, 2),
        np.arange(num_examples, dtype=np.int32),
    )
    empty = (part[0][:0], part[1][:0])
    return [{"train": part, "validation": empty, "test": empty} for _ in range(2)]


def test_an_entry_is_written_once(tmp_path):
    entry, index = open_or_write_entry(str(tmp_path / "new" / "cache"), DIGEST, make_splits)
    assert entry == str(tmp_path / "new" / "cache" / DIGEST)
    assert index["clients"] == [{"train": 5, "validation": 0, "test": 0}] * 2
    assert index["files"]["client_1.train.x"] == 10 and index["files"]["client_0.train.y"] == 20
    assert open_or_write_entry(str(tmp_path / "new" / "cache"), DIGEST, pytest.fail) == (entry, index)


class FullDisk(np.ndarray):
    def tofile(self, path):
        with open(path, "wb") as file:
            file.write(b"a part")
            raise OSError(28, "No space left on device")


def test_what_cannot_be_written_is_one_line_and_leaves_no_entry(tmp_path):
    splits = make_splits()
    x, y = splits[1]["validation"]
    splits[1]["validation"] = (x.view(FullDisk), y)
    message = "^cannot write client files into .*; choose another --client_dir$"
    said = assert_refused(message, open_or_write_entry, str(tmp_path), DIGEST, lambda: splits)
    assert "No space left on device" in said and os.listdir(tmp_path) == [".lock-ab"]
    # The lock is no way into another file, and a folder below a file cannot be made.
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / ".lock-ab").symlink_to(tmp_path / "precious")
    for folder in ("cache", "precious/cache"):
        assert_refused(message, open_or_write_entry, str(tmp_path / folder), DIGEST, make_splits)
    assert (tmp_path / "precious").read_text() == "keep me"


@pytest.mark.parametrize(("umask", "expected"), [(0o077, 0o700), (0o022, 0o755), (0o002, 0o775)])
def test_an_entry_may_be_read_by_whom_the_umask_says(tmp_path, umask, expected):
    before = os.umask(umask)
    try:
        entry, _ = open_or_write_entry(str(tmp_path), DIGEST, make_splits)
    finally:
        os.umask(before)
    assert os.stat(entry).st_mode & 0o777 == expected
    assert {os.stat(file).st_mode & 0o777 for file in os.scandir(entry)} == {expected & 0o666}


CONTENTS = {suffix: bytes([number]) * number for number, suffix in enumerate(SUFFIXES)}


@pytest.fixture
def prefix(tmp_path):
    """A client of an entry whose clients come one by one."""
    prefix = str(tmp_path / DIGEST / "client_7")
    write_client(prefix, CONTENTS)
    return prefix


def forget():
    """As in another process."""
    client_files._checked.clear()
    cache._checked.clear()


def test_a_client_that_came_by_itself_is_whole(prefix):
    assert is_client_whole(prefix)
    forget()
    assert is_client_whole(prefix)
    assert not is_client_whole(prefix.replace("client_7", "client_8"))
    names = {f"client_7{suffix}" for suffix in (*SUFFIXES, ".sums")}
    assert set(os.listdir(os.path.dirname(prefix))) == {"index.json", *names}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, b"") for name in (".train.y", ".test.y", ".sums")),
        (".test.x", b"\x63" + CONTENTS[".test.x"][1:]),
        *((".sums", content) for content in (b"\x00", b"[" * 100_000, b"[]", b'{".train.x": 1}')),
    ],
)
def test_a_client_whose_files_have_changed_is_not(prefix, name, content):
    with open(prefix + name, "wb") as file:
        file.write(content)
    forget()
    assert not is_client_whole(prefix)
    write_client(prefix, CONTENTS)
    forget()
    assert is_client_whole(prefix)


def test_an_entry_of_an_earlier_version_is_not_mixed_with_this_one(tmp_path):
    entry = tmp_path / DIGEST
    entry.mkdir()
    (entry / INDEX_FILE).write_text(
        '{"format": "federated-suite client shards", "version": 1, "clients": [], "files": {}}'
    )
    for suffix in SUFFIXES:
        (entry / f"client_1{suffix}").write_bytes(b"")
    assert not is_client_whole(str(entry / "client_1"))
    write_client(str(entry / "client_7"), CONTENTS)
    assert not any(entry.glob("client_1.*")) and is_client_whole(str(entry / "client_7"))
