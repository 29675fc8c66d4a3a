"""Copies of clients' files on another machine."""

import os

import pytest

from datasets.client_file_copies import find_files, is_client_path, measure_files, read_files, write_copy
from datasets.client_files import clean_client_dir

DIGEST = "0123456789abcdef" * 4


@pytest.fixture
def files(tmp_path):
    """The path of a client's files as a run writes them."""
    entry = tmp_path / "shards" / DIGEST
    entry.mkdir(parents=True)
    for number, split in enumerate(("train", "validation", "test")):
        (entry / f"client_7.{split}.x").write_bytes(bytes(range(10 * number)))
        (entry / f"client_7.{split}.y").write_bytes(bytes(4 * number))
    return str(entry / "client_7")


def test_files_that_are_here_are_used_where_they_lie(files, tmp_path):
    assert find_files(files, measure_files(files), str(tmp_path / "copies")) == files


def test_a_copy_has_the_same_bytes_and_is_found_again(files, tmp_path):
    copies_dir = str(tmp_path / "copies")
    sizes, contents = measure_files(files), read_files(files)
    os.rename(os.path.dirname(files), tmp_path / "elsewhere")
    assert find_files(files, sizes, copies_dir) is None
    copy = write_copy(files, contents, copies_dir)
    assert find_files(files, sizes, copies_dir) == copy
    assert copy == str(tmp_path / "copies" / DIGEST / "client_7")
    assert read_files(copy) == contents


def test_a_copy_of_another_size_does_not_count(files, tmp_path):
    copies_dir = str(tmp_path / "copies")
    sizes = measure_files(files)
    copy = write_copy(files, read_files(files), copies_dir)
    os.truncate(copy + ".test.x", 3)
    os.unlink(files + ".train.x")
    assert find_files(files, sizes, copies_dir) is None


@pytest.mark.parametrize("is_in_place", [True, False])
def test_zeros_of_the_same_size_do_not_count(files, tmp_path, is_in_place):
    copies_dir = str(tmp_path / "copies")
    sizes = measure_files(files)
    path = write_copy(files, read_files(files), copies_dir)
    if is_in_place:  # as a run writes the clients of a large federation, each with sums of its own
        files, copies_dir = path, str(tmp_path / "none")
    else:
        os.unlink(files + ".train.x")
    assert find_files(files, sizes, copies_dir) == path
    with open(path + ".test.x", "r+b") as file:
        file.write(bytes(sizes[".test.x"]))
    assert find_files(files, sizes, copies_dir) is None


def test_copies_are_cleaned_like_other_files(files, tmp_path):
    copies_dir = str(tmp_path / "copies")
    write_copy(files, read_files(files), copies_dir)
    assert clean_client_dir(copies_dir) > 0
    assert os.listdir(copies_dir) == []


def test_only_a_client_in_a_folder_named_by_a_digest_counts():
    assert is_client_path(f"/any/where/{DIGEST}/client_12")
    for text in (
        "",
        "client_1",
        f"/any/{DIGEST[1:]}/client_1",
        f"/any/{DIGEST}/client_1.train.x",
        f"{DIGEST}/client_1",
    ):
        assert not is_client_path(text)
