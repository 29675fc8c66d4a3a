"""Copies of clients' shards on another machine."""

import os

import pytest

from datasets.shard_copies import find_shard, is_shard_path, measure_shard, read_shard, write_copy
from datasets.shards import clean_shard_dir

DIGEST = "0123456789abcdef" * 4


@pytest.fixture
def shard(tmp_path):
    """The path of a client's shard as a run writes it."""
    entry = tmp_path / "shards" / DIGEST
    entry.mkdir(parents=True)
    for number, split in enumerate(("train", "validation", "test")):
        (entry / f"client_7.{split}.x").write_bytes(bytes(range(10 * number)))
        (entry / f"client_7.{split}.y").write_bytes(bytes(4 * number))
    return str(entry / "client_7")


def test_a_shard_that_is_here_is_used_where_it_lies(shard, tmp_path):
    assert find_shard(shard, measure_shard(shard), str(tmp_path / "copies")) == shard


def test_a_copy_has_the_same_bytes_and_is_found_again(shard, tmp_path):
    copies_dir = str(tmp_path / "copies")
    sizes, contents = measure_shard(shard), read_shard(shard)
    os.rename(os.path.dirname(shard), tmp_path / "elsewhere")
    assert find_shard(shard, sizes, copies_dir) is None
    copy = write_copy(shard, contents, copies_dir)
    assert find_shard(shard, sizes, copies_dir) == copy
    assert copy == str(tmp_path / "copies" / DIGEST / "client_7")
    assert read_shard(copy) == contents


def test_a_copy_of_another_size_does_not_count(shard, tmp_path):
    copies_dir = str(tmp_path / "copies")
    sizes = measure_shard(shard)
    copy = write_copy(shard, read_shard(shard), copies_dir)
    os.truncate(copy + ".test.x", 3)
    os.unlink(shard + ".train.x")
    assert find_shard(shard, sizes, copies_dir) is None


def test_copies_are_cleaned_like_shards(shard, tmp_path):
    copies_dir = str(tmp_path / "copies")
    write_copy(shard, read_shard(shard), copies_dir)
    assert clean_shard_dir(copies_dir) > 0
    assert os.listdir(copies_dir) == []


def test_only_a_client_in_a_folder_named_by_a_digest_is_a_shard():
    assert is_shard_path(f"/any/where/{DIGEST}/client_12")
    for text in (
        "",
        "client_1",
        f"/any/{DIGEST[1:]}/client_1",
        f"/any/{DIGEST}/client_1.train.x",
        f"{DIGEST}/client_1",
    ):
        assert not is_shard_path(text)
