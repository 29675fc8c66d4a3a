"""Copies of clients' files on another machine."""

import dataclasses
import os

import numpy as np
import pytest

from datasets.client_files import (
    clean_client_dir,
    find_files,
    flip_labels,
    is_client_path,
    measure_files,
    open_or_write_entry,
    read_files,
    write_copy,
)
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.federated_data import SPLITS, ClientFiles, DeviceProfiles, FederatedData

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


def test_files_are_used_where_they_lie_or_as_a_copy_of_the_same_bytes(files, tmp_path):
    copies_dir = str(tmp_path / "copies")
    sizes, contents = measure_files(files), read_files(files)
    assert find_files(files, sizes, copies_dir) == files
    os.rename(os.path.dirname(files), tmp_path / "elsewhere")
    assert find_files(files, sizes, copies_dir) is None
    copy = write_copy(files, contents, copies_dir)
    assert find_files(files, sizes, copies_dir) == copy == str(tmp_path / "copies" / DIGEST / "client_7")
    assert read_files(copy) == contents
    os.truncate(copy + ".test.x", 3)
    assert find_files(files, sizes, copies_dir) is None
    assert clean_client_dir(copies_dir) > 0 and os.listdir(copies_dir) == []


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


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        (f"/any/where/{DIGEST}/client_12", True),
        *((path, False) for path in ("", "client_1", f"/any/{DIGEST[1:]}/client_1", f"{DIGEST}/client_1")),
        (f"/any/{DIGEST}/client_1.train.x", False),
    ],
)
def test_only_a_client_in_a_folder_named_by_a_digest_counts(path, is_one):
    assert is_client_path(path) == is_one


DIGEST_OF_FLIPPED_LABELS = "ab" * 32


def make_splits():
    part = np.arange(8, dtype=np.uint8).reshape(4, 2), np.array([0, 1, 2, 2], np.int32)
    return [dict.fromkeys(SPLITS, part) for _ in range(2)]


@pytest.fixture
def data(tmp_path):
    """Two clients with the labels 0, 1, 2, 2 of three classes in each split."""
    entry, _ = open_or_write_entry(str(tmp_path), DIGEST_OF_FLIPPED_LABELS, make_splits)
    clients = tuple(ClientFiles(i, f"client_{i}", f"{entry}/client_{i}", 4, 4, 4) for i in range(2))
    profiles = DeviceProfiles(*[np.ones(2)] * 4)
    test = np.zeros((1, 2), np.uint8), np.zeros(1, np.int32)
    names = ("a", "b", "c")
    return FederatedData("tiny", ExampleFormat((2,), "uint8", names), clients, np.zeros((2, 3)), *test, profiles)


def test_the_train_labels_of_these_clients_alone(data):
    flipped = flip_labels(data, [1])
    assert flipped.clients[0] is data.clients[0]
    assert not os.path.exists(os.path.dirname(flipped.clients[1].prefix))  # until somebody asks
    old, new = data.clients[1], flipped.clients[1]
    assert flipped.read_labels(new, "train").tolist() == [2, 1, 0, 0]
    np.testing.assert_array_equal(flipped.read_split(new, "train")[0], data.read_split(old, "train")[0])
    for split in ("validation", "test"):
        for ours, theirs in zip(flipped.read_split(new, split), data.read_split(old, split), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert data.read_labels(old, "train").tolist() == [0, 1, 2, 2]
    assert (new.name, new.index, new.num_train) == (old.name, old.index, old.num_train)


def test_the_files_are_an_entry_of_the_cache(data, tmp_path):
    path = flip_labels(data, [1]).clients[1].path
    assert flip_labels(data, [1]).clients[1].path == path  # found again
    assert os.path.dirname(os.path.dirname(path)) == str(tmp_path)
    clean_client_dir(str(tmp_path))
    assert not os.path.exists(os.path.dirname(path))


def test_a_client_that_is_read_when_it_is_needed(data):
    asked = []
    clients = (data.clients[0], ClientFiles(1, "client_1", data.clients[1].prefix, 4, 4, 4, lambda: asked.append(1)))
    flipped = flip_labels(dataclasses.replace(data, clients=clients), [1])
    assert not asked
    assert flipped.read_labels(flipped.clients[1], "train").tolist() == [2, 1, 0, 0] and asked


def test_a_folder_that_cannot_be_written_is_one_line(data, monkeypatch):
    def fail(prefix, contents):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("datasets.client_files.write_client", fail)
    with pytest.raises(DatasetError, match=r"cannot write client files into .*No space left"):
        _ = flip_labels(data, [1]).clients[1].path
