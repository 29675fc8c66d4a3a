"""Reading a client's split from its files, eagerly and in a graph."""

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format

from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split


def make_spec(dtype):
    return ModelSpec("any", lambda: None, make_format((2, 3), dtype, 3))


def read_in_graph(path, split, spec):
    """As TFF does: traced with an unknown path."""
    read = tf.function(lambda path: read_split(path, split, spec), [tf.TensorSpec((), tf.string)])
    x, y = read(tf.constant(path))
    return x.numpy(), y.numpy()


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_each_split_is_read_as_stored(tmp_path, dtype):
    """Values 0..255 are those of both dtypes; bytes read as the other dtype would be others, or of another number."""
    path = str(tmp_path / "client_0")
    for number, split in enumerate(("train", "validation", "test")):
        x = np.random.default_rng(number).integers(0, 256, (4 + number, 2, 3)).astype(dtype)
        y = np.array([2, 0, 300_000, 1, 0, 2], np.int32)[: 4 + number]
        x.tofile(f"{path}.{split}.x")
        y.tofile(f"{path}.{split}.y")
        read_x, read_y = read_in_graph(path, split, make_spec(dtype))
        assert (read_x.dtype, read_y.dtype) == (x.dtype, y.dtype)
        np.testing.assert_array_equal(read_x, x)
        np.testing.assert_array_equal(read_y, y)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_a_padded_place_has_no_examples(dtype):
    x, y = read_in_graph("", "train", make_spec(dtype))
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((0, 2, 3), np.dtype(dtype), (0,), np.dtype(np.int32))


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(tf.errors.NotFoundError):
        read_in_graph(str(tmp_path / "client_0"), "train", make_spec("uint8"))
