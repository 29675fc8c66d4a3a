"""Fashion-MNIST's idx files on a small scale, and what is taken for them."""

import gzip
import struct

import numpy as np
import pytest

from datasets import mnist
from datasets.catalog import DATASETS, load_arrays
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.mnist import IDX_FILES


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
def test_idx_files_are_read_plain_and_gzipped(folder, suffix):
    written = write(folder, suffix=suffix)
    arrays = load_arrays("fashion_mnist", DatasetOptions(str(folder.parent), False))
    np.testing.assert_array_equal(arrays.train_x[..., 0], written["x_train"])
    np.testing.assert_array_equal(arrays.test_y, written["y_test"])
    assert arrays.format.class_names[9] == "Ankle boot"
    assert DATASETS["fashion_mnist"].find(str(folder.parent)).found


def test_files_of_other_counts_such_as_mnists_are_refused(folder):
    write(folder, ((3, 1, *(2,) * 8), (1,) * 10))
    with pytest.raises(DatasetError, match="the train part has 20 images, 1 to 3 of a class"):
        load_arrays("fashion_mnist", DatasetOptions(str(folder.parent), False))


def test_the_files_of_mnist_are_not_looked_at(folder):
    write(folder.parent / "mnist")
    write(folder.parent / "below")
    for data_dir in (folder.parent, folder.parent / "below"):
        assert not DATASETS["fashion_mnist"].find(str(data_dir)).found
        with pytest.raises(DatasetError, match=r"not found; put train-images-idx3-ubyte\.gz"):
            load_arrays("fashion_mnist", DatasetOptions(str(data_dir), False))
