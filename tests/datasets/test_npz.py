"""What a user's own npz file may hold, and how each mistake in it is reported."""

import io
import pathlib
import zipfile

import numpy as np
import pytest

from datasets.errors import DatasetError
from datasets.npz import load_npz_arrays

Y = np.arange(20) % 2


def save(tmp_path, **arrays):
    path = tmp_path / "mine.npz"
    np.savez(path, **arrays)
    return str(path)


@pytest.mark.parametrize(
    ("shape", "dtype", "expected_shape", "expected_dtype", "scale"),
    [
        ((20, 5), np.float64, (5, 1), np.float32, 1.0),
        ((20, 5), np.uint8, (5, 1), np.uint8, 1 / 255),
        ((20, 6, 3), np.int16, (6, 3), np.float32, 1.0),
        ((20, 6, 6), np.uint8, (6, 6, 1), np.uint8, 1 / 255),
        ((20, 6, 6, 3), np.uint8, (6, 6, 3), np.uint8, 1 / 255),
    ],
)
def test_examples_get_a_channel_axis_and_a_stored_dtype(tmp_path, shape, dtype, expected_shape, expected_dtype, scale):
    arrays = load_npz_arrays(save(tmp_path, x=np.ones(shape, dtype), y=Y))
    assert arrays.train_x.shape == (16, *expected_shape) and arrays.test_x.shape == (4, *expected_shape)
    assert arrays.train_x.dtype == expected_dtype
    assert arrays.preprocessing.scale == scale
    assert arrays.preprocessing.feature_range == ((0.0, 1.0) if dtype == np.uint8 else None)


def test_clients_follow_their_examples_into_the_train_part(tmp_path):
    x = np.arange(20.0)[:, np.newaxis]
    client = np.array(["ann", "bob"])[np.arange(20) // 10]
    arrays = load_npz_arrays(save(tmp_path, x=x, y=Y, client=client), seed=3)
    assert arrays.client_names == ("ann", "bob")
    np.testing.assert_array_equal(arrays.train_clients, arrays.train_x[:, 0, 0] >= 10)


def test_a_given_test_set_is_kept_as_it_is(tmp_path):
    path = save(tmp_path, x=np.zeros((20, 2)), y=Y, x_test=np.ones((3, 2)), y_test=np.array([0, 1, 1]))
    arrays = load_npz_arrays(path)
    assert len(arrays.train_x) == 20 and arrays.test_y.tolist() == [0, 1, 1] and arrays.test_x.min() == 1


def test_string_labels_become_classes(tmp_path):
    path = save(tmp_path, x=np.zeros((4, 2)), y=["dog", "cat", "dog", "cat"], x_test=np.ones((1, 2)), y_test=["eel"])
    arrays = load_npz_arrays(path)
    assert arrays.class_names == ("cat", "dog", "eel")
    assert arrays.train_y.tolist() == [1, 0, 1, 0] and arrays.test_y.tolist() == [2]


def test_class_names_allow_classes_without_examples(tmp_path):
    arrays = load_npz_arrays(save(tmp_path, x=np.zeros((20, 2)), y=Y * 2, class_names=["a", "b", "c"]))
    assert arrays.class_names == ("a", "b", "c") and set(arrays.train_y) == {0, 2}


X = np.zeros((20, 2))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "'y' is missing"),
        ({"x": X, "y": Y, "clients": Y}, "unknown array 'clients'"),
        ({"x": X, "y": Y[:-1]}, r"y has shape \(19,\)"),
        ({"x": X, "y": Y, "client": Y[:-1]}, "client has shape"),
        ({"x": X, "y": Y, "client": Y * 0.5}, "client is float64"),
        ({"x": X, "y": Y, "x_test": X}, "go together"),
        ({"x": X, "y": Y + 1}, r"labels are 1, 2, expected 0\.\.1"),
        ({"x": X, "y": Y * 2}, "labels are 0, 2"),
        ({"x": X, "y": Y * 0.5}, "labels are float64"),
        ({"x": X, "y": Y * 2**32, "class_names": ["a", "b"]}, "but 2 class_names"),
        ({"x": X, "y": Y, "class_names": ["a", "a"]}, "different strings"),
        ({"x": X, "y": Y.astype(str), "class_names": ["0", "2"]}, "'1' is not among class_names"),
        ({"x": X.astype(complex), "y": Y}, "complex128"),
        ({"x": X[:, 0], "y": Y}, "expected numbers of shape"),
        ({"x": X + 1e300, "y": Y}, "infinite"),
        ({"x": X, "y": Y * 0}, "at least 2"),
        ({"x": X[:0], "y": Y[:0]}, "at least 2"),
        ({"x": X.astype(object), "y": Y}, "Python objects"),
        ({"x": X, "y": Y, "x_test": X.astype(np.uint8), "y_test": Y}, "expected the same"),
    ],
)
def test_each_mistake_is_one_line(tmp_path, arrays, message):
    with pytest.raises(DatasetError, match=message) as caught:
        load_npz_arrays(save(tmp_path, **arrays))
    assert "\n" not in str(caught.value)


def test_files_of_another_kind_are_named(tmp_path):
    path = tmp_path / "mine.npz"
    with pytest.raises(DatasetError, match="no such file"):
        load_npz_arrays(str(path))
    for content, message in ((b"", "damaged"), (b"x,y\n1,2\n", "another format"), (b"PK\x03\x04 broken", "damaged")):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=message):
            load_npz_arrays(str(path))
    np.save(tmp_path / "one.npy", X)
    with pytest.raises(DatasetError, match="single array"):
        load_npz_arrays(str(tmp_path / "one.npy"))


@pytest.mark.parametrize("save_function", [np.savez, np.savez_compressed])
def test_a_flipped_byte_is_noticed(tmp_path, save_function):
    path = tmp_path / "mine.npz"
    save_function(path, x=np.random.default_rng(0).normal(size=(20, 50)), y=Y)
    content = bytearray(path.read_bytes())
    content[4000] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="damaged"):
        load_npz_arrays(str(path))


def make_entry(dtype: str, shape: tuple[int, ...], content: bytes = b"", version=(1, 0)) -> bytes:
    """An npy file whose header declares what it likes."""
    stream = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    write = np.lib.format.write_array_header_1_0 if version == (1, 0) else np.lib.format.write_array_header_2_0
    write(stream, header)
    return stream.getvalue() + content


GOOD = make_entry("<i8", (4,), np.array([0, 1, 0, 1]).tobytes())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (make_entry("<f8", (10**12, 2)), r"'x' is declared as float64 \(1000000000000, 2\), but its entry has"),
        (make_entry("<f8", (10**30, 2)), "'x' is declared as"),
        (make_entry("<f8", (10**12, 0)), "'x' is declared as"),
        (make_entry("<f8", (4, 10**12), b"x" * 64, version=(2, 0)), "'x' is declared as"),
        (make_entry("<f8", (-1, 2)), "'x' is declared as"),
        (make_entry("<f8", (4, 4), b"x" * 64), "damaged"),
        (b"x,y\n1,2\n", "'x' is no array"),
        (b"", "'x' is no array"),
        (b"\x93NUMPY\x01\x00\x08\x00{'descr'", "damaged"),
        (b"\x93NUMPY\x07\x00\x08\x00{'descr'", "damaged"),
    ],
)
@pytest.mark.parametrize("name", ["x", "x.npy"])
def test_an_entry_that_is_not_what_it_says_is_one_line(tmp_path, name, entry, message):
    with zipfile.ZipFile(tmp_path / "mine.npz", "w") as archive:
        archive.writestr("y.npy", GOOD)
        archive.writestr(name, entry)
    with pytest.raises(DatasetError, match=message) as caught:
        load_npz_arrays(str(tmp_path / "mine.npz"))
    assert "\n" not in str(caught.value)


def test_an_honest_file_that_is_too_large_is_one_line(tmp_path, monkeypatch):
    def give_up(self, key):
        raise MemoryError

    path = save(tmp_path, x=X, y=Y)
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", give_up)
    with pytest.raises(DatasetError, match="memory"):
        load_npz_arrays(path)


def test_an_encrypted_entry_is_one_line(tmp_path):
    path = pathlib.Path(save(tmp_path, x=X, y=Y))
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(signature)
        while at >= 0:
            content[at + offset] |= 1
            at = content.find(signature, at + 1)
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="encrypted"):
        load_npz_arrays(str(path))
