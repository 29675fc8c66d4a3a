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
def test_each_split_is_read_as_stored_and_an_empty_slot_has_no_examples(tmp_path, dtype):
    """Values 0..255 are those of both dtypes; bytes read as the other dtype would be others, or of another number."""
    path = str(tmp_path / "client_0")
    for number, split in enumerate(("train", "validation", "test")):
        x = np.random.default_rng(number).integers(0, 256, (4 + number, 2, 3)).astype(dtype)
        y = np.array([2, 0, 300_000, 1, 0, 2], np.int32)[: 4 + number]
        x.tofile(f"{path}.{split}.x")
        y.tofile(f"{path}.{split}.y")
        for prefix, size in ((path, len(y)), ("", 0)):
            for found, stored in zip(read_in_graph(prefix, split, make_spec(dtype)), (x, y), strict=True):
                np.testing.assert_array_equal(found, stored[:size])
                assert found.dtype == stored.dtype and found.shape == stored[:size].shape


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(tf.errors.NotFoundError):
        read_in_graph(str(tmp_path / "client_0"), "train", make_spec("uint8"))
