"""The cache of client files: atomic, rebuilt when damaged, safe between processes, cleaned alone."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from refusals import assert_refused

from datasets import client_files
from datasets.client_files import (
    INDEX_FILE,
    SUFFIXES,
    clean_client_dir,
    is_client_whole,
    open_or_write_entry,
    write_client,
)
from files import cache

ROOT = pathlib.Path(__file__).parents[2]
DIGEST = "ab" * 32


def make_splits(num_examples=5):
    part = (
        np.arange(num_examples * 2, dtype=np.uint8).reshape(num_examples, 2),
        np.arange(num_examples, dtype=np.int32),
    )
    empty = (part[0][:0], part[1][:0])
    return [{"train": part, "validation": empty, "test": empty} for _ in range(2)]


def fail():
    pytest.fail("written again")


def read_all(entry):
    return {item.name: open(item.path, "rb").read() for item in os.scandir(entry)}


def test_an_entry_is_written_once(tmp_path):
    entry, index = open_or_write_entry(str(tmp_path / "new" / "cache"), DIGEST, make_splits)
    assert entry == str(tmp_path / "new" / "cache" / DIGEST)
    assert index["clients"] == [{"train": 5, "validation": 0, "test": 0}] * 2
    assert index["files"]["client_1.train.x"] == 10 and index["files"]["client_0.train.y"] == 20
    assert open_or_write_entry(str(tmp_path / "new" / "cache"), DIGEST, fail) == (entry, index)


def damage_by_deleting(entry):
    os.remove(os.path.join(entry, "client_0.test.y"))


def damage_by_truncating(entry):
    os.truncate(os.path.join(entry, "client_1.train.x"), 3)


def damage_a_byte(entry):
    with open(os.path.join(entry, "client_1.train.x"), "r+b") as file:
        file.write(b"\x63")
    cache._checked.clear()  # as in another process


def damage_the_index(entry):
    os.truncate(os.path.join(entry, INDEX_FILE), 10)


def age_the_index(entry):
    with open(os.path.join(entry, INDEX_FILE)) as file:
        index = json.load(file)
    with open(os.path.join(entry, INDEX_FILE), "w") as file:
        json.dump({**index, "version": 0}, file)


@pytest.mark.parametrize(
    "damage", [damage_by_deleting, damage_by_truncating, damage_a_byte, damage_the_index, age_the_index]
)
def test_a_damaged_entry_is_rebuilt(tmp_path, damage):
    entry, _ = open_or_write_entry(str(tmp_path), DIGEST, make_splits)
    intact = read_all(entry)
    damage(entry)
    open_or_write_entry(str(tmp_path), DIGEST, make_splits)
    assert read_all(entry) == intact
    assert sorted(os.listdir(tmp_path)) == [".lock-ab", DIGEST]


class FullDisk(np.ndarray):
    def tofile(self, path):
        with open(path, "wb") as file:
            file.write(b"a part")
            raise OSError(28, "No space left on device")


def test_a_broken_write_leaves_no_entry(tmp_path):
    splits = make_splits()
    x, y = splits[1]["validation"]
    splits[1]["validation"] = (x.view(FullDisk), y)
    assert_refused(
        "No space left on device; choose another --client_dir",
        open_or_write_entry,
        str(tmp_path),
        DIGEST,
        lambda: splits,
    )
    assert os.listdir(tmp_path) == [".lock-ab"]


def test_a_draft_that_goes_away_under_the_eyes_is_no_error(tmp_path):
    (tmp_path / f".writing-{DIGEST}-gone").symlink_to(tmp_path / "put in place by another process")
    entry, _ = open_or_write_entry(str(tmp_path), DIGEST, make_splits)
    assert os.path.isdir(entry)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    assert_refused(
        "choose another --client_dir", open_or_write_entry, str(tmp_path / "file" / "cache"), DIGEST, make_splits
    )


RACER = """
import os, sys
import numpy as np
from files import cache
from datasets import client_files

client_dir, has_locks, digests = sys.argv[1], sys.argv[2] == "True", sys.argv[3:]
if not has_locks:
    cache.fcntl.flock = lambda *_: None
x, y = np.arange(40_000, dtype=np.uint8).reshape(-1, 2), np.arange(20_000, dtype=np.int32)
splits = [{"train": (x, y), "validation": (x[:0], y[:0]), "test": (x[:0], y[:0])}] * 2
print("ready", flush=True)
sys.stdin.readline()
for digest in digests:
    entry, index = client_files.open_or_write_entry(client_dir, digest, lambda: splits)
    sizes = {name: os.path.getsize(os.path.join(entry, name)) for name in index["files"]}
    assert sizes == index["files"], (digest, sizes)
"""


@pytest.mark.parametrize("has_locks", [True, False])
def test_racing_processes_agree(tmp_path, has_locks):
    """Four programs start at once on the same entries, one after another."""
    digests = [f"{number:064x}" for number in range(10)]
    command = [sys.executable, "-c", RACER, str(tmp_path), str(has_locks), *digests]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen(command, cwd=ROOT, **pipes) for _ in range(4)]
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 4
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    errors = [racer.communicate(timeout=60)[1] for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 4, errors
    assert sorted(os.listdir(tmp_path)) == [".lock-00", *digests]


def test_clean_deletes_entries_and_abandoned_drafts_only(tmp_path):
    entry, index = open_or_write_entry(str(tmp_path), DIGEST, make_splits)
    entry_bytes = sum(index["files"].values()) + os.path.getsize(os.path.join(entry, INDEX_FILE))
    shutil.copytree(entry, tmp_path / f".writing-{DIGEST}-a1b2c3_d")
    shutil.copytree(entry, tmp_path / "my_copy")
    (tmp_path / ("cd" * 32)).mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ("ef" * 32)).symlink_to(tmp_path / "my_copy")
    assert clean_client_dir(str(tmp_path)) == 2 * entry_bytes
    assert sorted(os.listdir(tmp_path)) == sorted(["my_copy", "notes.txt", "cd" * 32, "ef" * 32])
    assert clean_client_dir(str(tmp_path)) == 0
    assert clean_client_dir(str(tmp_path / "missing")) == 0


def test_old_drafts_of_killed_processes_go_when_an_entry_is_written(tmp_path):
    young, old = (tmp_path / f".writing-{'cd' * 32}-{name}" for name in ("young", "old"))
    for draft in (young, old):
        draft.mkdir()
        (draft / "index.json").write_text("{")
    two_days_ago_s = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago_s, two_days_ago_s))
    open_or_write_entry(str(tmp_path), DIGEST, make_splits)
    assert young.exists() and not old.exists()


@pytest.mark.parametrize(("umask", "expected"), [(0o077, 0o700), (0o022, 0o755), (0o002, 0o775)])
def test_an_entry_may_be_read_by_whom_the_umask_says(tmp_path, umask, expected):
    before = os.umask(umask)
    try:
        entry, _ = open_or_write_entry(str(tmp_path), DIGEST, make_splits)
    finally:
        os.umask(before)
    assert os.stat(entry).st_mode & 0o777 == expected
    assert {os.stat(file).st_mode & 0o777 for file in os.scandir(entry)} == {expected & 0o666}


def test_the_lock_is_no_way_into_another_file(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "cache" / ".lock-ab").symlink_to(tmp_path / "precious")
    assert_refused("cannot write client files", open_or_write_entry, str(tmp_path / "cache"), DIGEST, make_splits)
    assert (tmp_path / "precious").read_text() == "keep me"


CONTENTS = {suffix: bytes([number]) * number for number, suffix in enumerate(SUFFIXES)}


@pytest.fixture
def place(tmp_path):
    """A client of an entry whose clients come one by one."""
    place = str(tmp_path / DIGEST / "client_7")
    write_client(place, CONTENTS)
    return place


def forget():
    """As in another process."""
    client_files._checked.clear()
    cache._checked.clear()


def test_a_client_that_came_by_itself_is_whole(place):
    assert is_client_whole(place)
    forget()
    assert is_client_whole(place)
    assert not is_client_whole(place.replace("client_7", "client_8"))
    assert sorted(os.listdir(os.path.dirname(place))) == sorted(
        ["index.json", "client_7.sums", *(f"client_7{suffix}" for suffix in SUFFIXES)]
    )


@pytest.mark.parametrize("name", [".train.y", ".test.y", ".sums"])
@pytest.mark.parametrize("content", [b"", b"\x00", b"[" * 100_000, b"[]", b'{".train.x": 1}'], ids=len)
def test_a_client_whose_files_have_changed_is_not(place, name, content):
    with open(place + name, "wb") as file:
        file.write(content)
    forget()
    assert not is_client_whole(place)
    write_client(place, CONTENTS)
    forget()
    assert is_client_whole(place)


def test_a_client_whose_bytes_have_changed_is_not(place):
    with open(f"{place}.test.x", "r+b") as file:
        file.write(b"\x63")
    forget()
    assert not is_client_whole(place)


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
