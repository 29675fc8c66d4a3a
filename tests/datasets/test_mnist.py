"""MNIST's formats on small files, and the real files where they lie."""

import gzip
import hashlib
import os
import struct

import numpy as np
import pytest
from refusals import assert_refused

from datasets import mnist
from datasets.catalog import DATASETS, load_arrays
from datasets.dataset import DatasetOptions
from datasets.mnist import IDX_FILES

SMALL = {
    "x_train": np.arange(5 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(5, 28, 28),
    "y_train": np.array([0, 1, 2, 3, 9], np.uint8),
    "x_test": np.full((2, 28, 28), 7, np.uint8),
    "y_test": np.array([4, 5], np.uint8),
}


def encode_idx(array):
    return struct.pack(f">BBBB{array.ndim}i", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def small_mnist(monkeypatch, tmp_path):
    """Takes the small arrays for the canonical ones and an empty folder for the cache."""
    digests = {key: hashlib.sha256(array.tobytes()).hexdigest() for key, array in SMALL.items()}
    monkeypatch.setattr(mnist, "CONTENT_SHA256", digests)
    return tmp_path


def write_idx_files(folder, suffix):
    folder.mkdir(exist_ok=True)
    for key, name in mnist.IDX_FILES.items():
        content = encode_idx(SMALL[key])
        (folder / (name + suffix)).write_bytes(gzip.compress(content) if suffix else content)


def check_small(arrays):
    np.testing.assert_array_equal(arrays.train_x[..., 0], SMALL["x_train"])
    np.testing.assert_array_equal(arrays.test_y, SMALL["y_test"])
    assert arrays.train_x.shape == (5, 28, 28, 1)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("subfolder", ["mnist", "."])
def test_idx_files_are_read_plain_and_gzipped(small_mnist, suffix, subfolder):
    write_idx_files(small_mnist / subfolder, suffix)
    check_small(mnist.load_mnist(DatasetOptions(str(small_mnist), download=False)))


def test_every_container_gives_one_digest(small_mnist):
    write_idx_files(small_mnist / "a", ".gz")
    (small_mnist / "b").mkdir()
    np.savez(small_mnist / "b" / "mnist.npz", **SMALL)
    from_idx, from_npz = (
        mnist.load_mnist(DatasetOptions(str(small_mnist / folder), download=False)) for folder in "ab"
    )
    check_small(from_npz)
    assert from_idx.source_digest == from_npz.source_digest


def test_a_look_alike_is_named(small_mnist):
    write_idx_files(small_mnist, "")
    foreign = encode_idx(SMALL["x_train"][::-1])
    (small_mnist / "train-images-idx3-ubyte").write_bytes(foreign)
    assert_refused(
        r"train-images-idx3-ubyte: x_train .* is not MNIST's",
        mnist.load_mnist,
        DatasetOptions(str(small_mnist), download=False),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(encode_idx(SMALL["x_train"]))[:-20], "damaged or truncated gzip"),
        (encode_idx(SMALL["x_train"])[:-1], "3919 bytes of data, expected 3920"),
        (encode_idx(SMALL["x_train"]) + b"x", "3921 bytes of data"),
        (encode_idx(SMALL["x_train"])[:9], "not an idx file"),
        (b"<html>not found</html>", "not an idx file"),
        (b"", "nothing"),
    ],
)
def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path, content, message):
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(content)
    caught = assert_refused(message, mnist.read_idx_file, str(path))
    assert str(path) in caught


def test_a_truncated_npz_is_named(small_mnist):
    path = small_mnist / "mnist.npz"
    np.savez(path, **SMALL)
    path.write_bytes(path.read_bytes()[:2000])
    assert_refused(
        r"mnist\.npz: damaged, truncated", mnist.load_mnist, DatasetOptions(str(small_mnist), download=False)
    )


def test_a_missing_file_is_named_with_its_folder(small_mnist):
    write_idx_files(small_mnist, "")
    (small_mnist / "t10k-labels-idx1-ubyte").unlink()
    assert_refused(
        rf"t10k-labels-idx1-ubyte\.gz into {small_mnist / 'mnist'}",
        mnist.load_mnist,
        DatasetOptions(str(small_mnist), download=False),
    )


def test_the_four_files_are_downloaded_when_absent(small_mnist, monkeypatch):
    write_idx_files(small_mnist / "server", ".gz")
    asked = []

    def fetch(remote, folder):
        asked.append((remote.name, folder))
        return str(small_mnist / "server" / remote.name)

    monkeypatch.setattr("datasets.download.fetch_file", fetch)
    check_small(mnist.load_mnist(DatasetOptions(str(small_mnist / "data"))))
    assert asked == [(f"{name}.gz", str(small_mnist / "data" / "mnist")) for name in mnist.IDX_FILES.values()]


@pytest.mark.skipif(not os.environ.get("FL_DATA_DIR"), reason="FL_DATA_DIR is not set: no real data here")
def test_the_real_files():
    arrays = mnist.load_mnist(DatasetOptions(os.environ["FL_DATA_DIR"], download=False))
    assert np.bincount(arrays.train_y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert arrays.test_x.shape == (10000, 28, 28, 1)
    for remote in mnist.MNIST_FILES.remotes:
        with open(os.path.join(os.environ["FL_DATA_DIR"], "mnist", remote.name), "rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == remote.sha256


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(mnist, "IMAGES_PER_CLASS", {"train": 2, "test": 1})
    return tmp_path / "fashion_mnist"


def write(folder, counts=((2,) * 10, (1,) * 10), suffix=".gz"):
    folder.mkdir(parents=True)
    arrays = {}
    for part, each in zip(("train", "test"), counts, strict=True):
        y = np.repeat(np.arange(10, dtype=np.uint8), each)
        arrays[f"y_{part}"] = y
        arrays[f"x_{part}"] = np.random.default_rng(1).integers(0, 256, (len(y), 28, 28), np.uint8)
    for key, name in IDX_FILES.items():
        content = struct.pack(f">BBBB{arrays[key].ndim}i", 0, 0, 8, arrays[key].ndim, *arrays[key].shape)
        content += arrays[key].tobytes()
        (folder / (name + suffix)).write_bytes(gzip.compress(content) if suffix else content)
    return arrays


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files_are_read_plain_and_gzipped_of_fashion_mnist(folder, suffix):
    written = write(folder, suffix=suffix)
    arrays = load_arrays("fashion_mnist", DatasetOptions(str(folder.parent), False))
    np.testing.assert_array_equal(arrays.train_x[..., 0], written["x_train"])
    np.testing.assert_array_equal(arrays.test_y, written["y_test"])
    assert arrays.format.class_names[9] == "Ankle boot"
    assert DATASETS["fashion_mnist"].find(str(folder.parent)).found


def test_files_of_other_counts_such_as_mnists_are_refused(folder):
    write(folder, ((3, 1, *(2,) * 8), (1,) * 10))
    assert_refused(
        "the train part has 20 images, 1 to 3 of a class",
        load_arrays,
        "fashion_mnist",
        DatasetOptions(str(folder.parent), False),
    )


def test_the_files_of_mnist_are_not_looked_at(folder):
    write(folder.parent / "mnist")
    write(folder.parent / "below")
    for data_dir in (folder.parent, folder.parent / "below"):
        assert not DATASETS["fashion_mnist"].find(str(data_dir)).found
        assert_refused(
            r"not found; put train-images-idx3-ubyte\.gz",
            load_arrays,
            "fashion_mnist",
            DatasetOptions(str(data_dir), False),
        )
