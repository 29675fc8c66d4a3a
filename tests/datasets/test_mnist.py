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


def write_idx_files(folder, suffix, arrays=SMALL):
    folder.mkdir(parents=True, exist_ok=True)
    for key, name in mnist.IDX_FILES.items():
        content = encode_idx(arrays[key])
        (folder / (name + suffix)).write_bytes(gzip.compress(content) if suffix else content)


def load(folder, name="mnist"):
    return load_arrays(name, DatasetOptions(str(folder), download=False))


def check(loaded, arrays=SMALL):
    np.testing.assert_array_equal(loaded.train_x, arrays["x_train"][..., np.newaxis])
    np.testing.assert_array_equal(loaded.test_y, arrays["y_test"])


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("subfolder", ["mnist", "."])
def test_idx_files_are_read_plain_and_gzipped(small_mnist, suffix, subfolder):
    write_idx_files(small_mnist / subfolder, suffix)
    check(load(small_mnist))


def test_every_container_gives_one_digest(small_mnist):
    write_idx_files(small_mnist / "a", ".gz")
    (small_mnist / "b").mkdir()
    np.savez(small_mnist / "b" / "mnist.npz", **SMALL)
    check(load(small_mnist / "b"))
    assert load(small_mnist / "a").source_digest == load(small_mnist / "b").source_digest


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


def test_what_is_missing_or_another_file_is_named(small_mnist):
    write_idx_files(small_mnist, "")
    (small_mnist / "train-images-idx3-ubyte").write_bytes(encode_idx(SMALL["x_train"][::-1]))
    assert_refused(r"train-images-idx3-ubyte: x_train .* is not MNIST's", load, small_mnist)
    (small_mnist / "t10k-labels-idx1-ubyte").unlink()
    assert_refused(rf"t10k-labels-idx1-ubyte\.gz into {small_mnist / 'mnist'}", load, small_mnist)
    np.savez(small_mnist / "mnist.npz", **SMALL)
    os.truncate(small_mnist / "mnist.npz", 2000)
    assert_refused(r"mnist\.npz: damaged, truncated", load, small_mnist)


def test_the_four_files_are_downloaded_when_absent(small_mnist, monkeypatch):
    write_idx_files(small_mnist / "server", ".gz")
    asked = []

    def fetch(remote, folder):
        asked.append((remote.name, folder))
        return str(small_mnist / "server" / remote.name)

    monkeypatch.setattr("datasets.download.fetch_file", fetch)
    check(mnist.load_mnist(DatasetOptions(str(small_mnist / "data"))))
    assert asked == [(f"{name}.gz", str(small_mnist / "data" / "mnist")) for name in mnist.IDX_FILES.values()]


@pytest.mark.skipif(not os.environ.get("FL_DATA_DIR"), reason="FL_DATA_DIR is not set: no real data here")
def test_the_real_files():
    arrays = load(os.environ["FL_DATA_DIR"])
    assert np.bincount(arrays.train_y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert arrays.test_x.shape == (10000, 28, 28, 1)
    for remote in mnist.MNIST_FILES.remotes:
        with open(os.path.join(os.environ["FL_DATA_DIR"], "mnist", remote.name), "rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == remote.sha256


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(mnist, "IMAGES_PER_CLASS", {"train": 2, "test": 1})
    return tmp_path / "fashion_mnist"


def make_clothes(counts=((2,) * 10, (1,) * 10)):
    arrays = {}
    for part, each in zip(("train", "test"), counts, strict=True):
        y = arrays[f"y_{part}"] = np.repeat(np.arange(10, dtype=np.uint8), each)
        arrays[f"x_{part}"] = np.random.default_rng(1).integers(0, 256, (len(y), 28, 28), np.uint8)
    return arrays


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files_are_read_plain_and_gzipped_of_fashion_mnist(folder, suffix):
    write_idx_files(folder, suffix, make_clothes())
    arrays = load(folder.parent, "fashion_mnist")
    check(arrays, make_clothes())
    assert arrays.format.class_names[9] == "Ankle boot"


def test_the_files_of_mnist_are_not_looked_at_and_other_counts_are_refused(folder):
    for name in ("mnist", "below"):
        write_idx_files(folder.parent / name, ".gz", make_clothes())
    for data_dir in (folder.parent, folder.parent / "below"):
        assert not DATASETS["fashion_mnist"].find(str(data_dir)).found
        assert_refused(r"not found; put train-images-idx3-ubyte\.gz", load, data_dir, "fashion_mnist")
    write_idx_files(folder, ".gz", make_clothes(((3, 1, *(2,) * 8), (1,) * 10)))
    assert_refused("the train part has 20 images, 1 to 3 of a class", load, folder.parent, "fashion_mnist")
