"""What a user's own npz file may hold, and how each mistake in it is reported."""

import gzip
import io
import os
import pathlib
import pickle
import re
import zipfile

import numpy as np
import pytest
from refusals import assert_refused
from small_formats import make_format

from datasets.dataset import DatasetOptions
from datasets.example_format import ExampleFormat, LabelFormat
from datasets.federate import PartitionSettings, build_federated_data
from datasets.federated_data import SPLITS
from datasets.formats.npz import choose_partition, open_npz, read_examples
from datasets.npz_labels import guess_task
from datasets.partition_settings import PARTITION_NAMES

Y = np.arange(20) % 2


def open_file(path, **options):
    return open_npz(str(path), DatasetOptions(**options))


def save(tmp_path, **arrays):
    path = tmp_path / "mine.npz"
    np.savez(path, **arrays)
    return str(path)


@pytest.mark.parametrize(
    ("shape", "dtype", "expected_shape", "expected_dtype", "scale"),
    [
        ((20, 5), np.float64, (5, 1), np.float32, 1.0),
        ((20, 5), np.uint8, (5, 1), np.uint8, 1.0),
        ((20, 6, 3), np.int16, (6, 3), np.float32, 1.0),
        ((20, 6, 6), np.uint8, (6, 6, 1), np.uint8, 1 / 255),
        ((20, 6, 6, 3), np.uint8, (6, 6, 3), np.uint8, 1 / 255),
        ((20, 3, 6, 6), np.uint8, (6, 6, 3), np.uint8, 1 / 255),
        ((20, 1, 6, 6), np.float32, (6, 6, 1), np.float32, 1.0),
    ],
)
def test_examples_get_a_channel_axis_and_a_stored_dtype(tmp_path, shape, dtype, expected_shape, expected_dtype, scale):
    arrays = open_file(save(tmp_path, x=np.ones(shape, dtype), y=Y))
    assert arrays.train_x.shape == (16, *expected_shape) and arrays.test_x.shape == (4, *expected_shape)
    assert arrays.train_x.dtype == expected_dtype
    assert arrays.format.preprocessing.scale == scale
    expected_range = (0.0, 1.0) if scale < 1 else (0.0, 255.0)
    assert arrays.format.preprocessing.feature_range == (expected_range if dtype == np.uint8 else None)


# Of files that the version before `layout` and `scale` read, with seed 1: run folders of then name data by them.
DIGESTS = {
    "features": "43c8e895ecc3b8703356a6e6d7ffb4f0f255ef33b6581ab434c05634c8e531da",
    "uint8 images": "604307e990146067c74d412444647b1bf52cc0afcff39a8fd8fe6ce65a671d13",
    "uint8 features": "d6e68fdf54032791dece51209bbb758b1e4f0644f36075d32520699e2cad282f",
    "channels first": "3e61e3ab2968bc179aa64a9307112ea95892befff711f1b8899929c7d5ba1b76",
    "clients": "94efe58eca03e946bbb0d55b9948b1b47448eb9fd002392a73287dc6aabd9f0e",
}
COUNT = np.arange(20 * 3 * 6 * 6).reshape(20, 3, 6, 6) % 251
OLD_FILES = {
    "features": {"x": COUNT[:, 0, 0] / 7},
    "uint8 images": {"x": COUNT[:, 0].astype(np.uint8)},
    "uint8 features": {"x": COUNT[:, 0, 0].astype(np.uint8)},
    "channels first": {"x": COUNT.astype(np.uint8)},
    "clients": {"x": COUNT[:, 0, 0] / 7, "client": np.arange(20) // 5},
}


@pytest.mark.parametrize("name", OLD_FILES)
def test_a_file_is_read_as_before_there_were_layouts(tmp_path, name):
    path = save(tmp_path, y=Y, **OLD_FILES[name])
    old = open_file(path, seed=1, layout="as_stored", scale="bytes").source_digest
    assert old == DIGESTS[name]
    is_read_anew = name in ("uint8 features", "channels first")
    assert (open_file(path, seed=1).source_digest != old) == is_read_anew


def test_clients_follow_their_examples_into_the_train_part(tmp_path):
    x = np.arange(20.0)[:, np.newaxis]
    client = np.array(["ann", "bob"])[np.arange(20) // 10]
    arrays = open_file(save(tmp_path, x=x, y=Y, client=client), seed=3)
    assert arrays.client_names == ("ann", "bob")
    np.testing.assert_array_equal(arrays.train_clients, arrays.train_x[:, 0, 0] >= 10)


def test_a_given_test_set_stays_as_it_is_and_its_strings_are_classes_too(tmp_path):
    y = np.array(["dog", "cat"] * 10)
    arrays = open_file(save(tmp_path, x=np.zeros((20, 2)), y=y, x_test=np.ones((3, 2)), y_test=["cat", "eel", "eel"]))
    assert arrays.format.class_names == ("cat", "dog", "eel") and arrays.test_x.min() == 1
    assert arrays.train_y.tolist() == [1, 0] * 10 and arrays.test_y.tolist() == [0, 2, 2]


def test_class_names_allow_classes_without_examples(tmp_path):
    arrays = open_file(save(tmp_path, x=np.zeros((20, 2)), y=Y * 2, class_names=["a", "b", "c"]))
    assert arrays.format.class_names == ("a", "b", "c") and set(arrays.train_y) == {0, 2}


X = np.zeros((20, 2))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "'y' is missing"),
        ({"x": X, "y": Y, "clients": Y}, "unknown array 'clients'"),
        ({"x": X, "y": Y[:-1]}, r"y has shape \(19,\)"),
        ({"x": X[:3], "y": Y[1:2]}, r"y has shape \(1,\), x has \(3, 2\); expected one entry of y"),
        ({"x": X, "y": Y, "client": Y[:-1]}, "client has shape"),
        ({"x": X, "y": Y, "client": Y * 0.5}, r"client\[1\] is 0.5"),
        ({"x": X, "y": Y, "x_test": X}, "go together"),
        ({"x": X, "y": Y + 1}, r"labels are 1, 2, expected 0\.\.1"),
        ({"x": X, "y": Y * 2}, "labels are 0, 2"),
        ({"x": X, "y": np.where(Y == 1, np.nan, Y)}, r"y\[1\] is nan \(float64\), expected whole numbers"),
        ({"x": X, "y": np.where(Y, np.nan, 0)}, r"y\[1\] is nan .* row 1, counted from 0, is the first of 10 such"),
        ({"x": X, "y": Y.astype(complex)}, "y is complex128, expected integers or strings"),
        ({"x": X, "y": Y, "x_test": X[:2], "y_test": Y[:2] + 5}, r"y_test has 5, 6, which y lacks"),
        ({"x": X, "y": Y, "x_test": X, "y_test": Y.astype(str)}, "integers in both or strings in both"),
        ({"x": X, "y": Y.astype(object)}, r"'y' has dtype object .* save y.astype\(str\)"),
        ({"x": X, "y": Y, "client": Y.astype(object)}, r"'client' has dtype object .* save client.astype\(str\)"),
        ({"x": X, "y": Y * 2**32, "class_names": ["a", "b"]}, "but 2 class_names"),
        ({"x": X, "y": Y, "class_names": ["a", "a"]}, "different strings"),
        ({"x": X, "y": Y.astype(str), "class_names": ["0", "2"]}, "'1' is not among class_names"),
        ({"x": X.astype(complex), "y": Y}, "complex128"),
        ({"x": X[:, 0], "y": Y}, "expected numbers of shape"),
        ({"x": X + 1e300, "y": Y}, r"x\[0, 0\] is 1e\+300, too large for float32"),
        ({"x": X, "y": Y * 0}, "at least 2"),
        ({"x": X[:0], "y": Y[:0]}, r"x is empty, shape \(0, 2\)"),
        ({"x": X[:, :0], "y": Y}, r"x is empty, shape \(20, 0\)"),
        ({"x": X, "y": Y, "x_test": X[:0], "y_test": Y[:0]}, "x_test is empty"),
        ({"x": X[:2], "y": Y[:2]}, "no class has 3 examples"),
        ({"x": X.astype(str), "y": Y}, "give text as numbers"),
        ({"x": np.zeros((20, 2), "datetime64[s]"), "y": Y}, "give times as numbers"),
        ({"x": np.zeros(20, [("a", float), ("b", int)]), "y": Y}, "give records as columns"),
        ({"x": X.astype(object), "y": Y}, r"Python objects.* save x.astype\(float\)"),
        ({"x": X, "y": Y, "x_test": X.astype(np.uint8), "y_test": Y}, "expected the same"),
    ],
)
def test_each_mistake_is_one_line(tmp_path, arrays, message):
    assert_refused(message, open_file, save(tmp_path, **arrays))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty, 0 bytes"),
        (b"x,y\n1,2\n", "a text file, such as CSV.*by --data=PATH"),
        ("x;größe\n1;2\n".encode("latin-1"), "a text file, such as CSV"),
        (pickle.dumps({"x": [1]}), "a pickle"),
        (
            gzip.compress(b"x"),
            "a gzip file, expected an npz file with x, y; launch.train reads a table in it by --data=PATH",
        ),
        (b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file"),
        (b"MATLAB 5.0 MAT-file, \0\1", "scipy.io.loadmat"),
        (b"a" * 257 + b"ustar\0", "a tar archive"),
        (b"PAR1\x15\0", "a Parquet file.*reads such a file by --data=PATH"),
        (b"\xff\xd8\xff\xe0\0", "a JPEG image.*reads a folder of images by --data=PATH"),
        (b"PK\x03\x04 broken\0", "damaged"),
        (b"\1\2\3\0", "damaged, truncated or not an npz file"),
    ],
)
def test_a_file_of_another_kind_is_named_with_what_to_do(tmp_path, content, message):
    path = tmp_path / "mine.npz"
    path.write_bytes(content)
    assert_refused(message, open_file, str(path))


def test_what_is_no_file_or_an_array_alone_is_named(tmp_path):
    (tmp_path / "photos" / "dog").mkdir(parents=True)
    (tmp_path / "photos" / "dog" / "1.JPG").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    np.save(tmp_path / "one.npy", X)
    for name, message in {
        "none": "no such file",
        "photos/dog/..": r"a folder of images.*reads a folder by --data=PATH",
        "pipe": "no regular file",
        "one.npy": "single array",
    }.items():
        assert_refused(message, open_file, tmp_path / name)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e39])
@pytest.mark.parametrize("row", [0, 7, 19])
def test_a_wrong_number_is_named_by_its_place_in_the_file(tmp_path, row, value):
    x = np.zeros((20, 2))
    x[row, 1] = value
    client = np.array(["ann", "bob"])[np.arange(20) // 10]
    assert_refused(
        f"row {row}, column 1 .counted from 0., client {client[row]}; 1 of 20",
        open_file,
        save(tmp_path, x=x, y=Y, client=client),
    )
    x[-1, 0] = np.nan
    assert_refused(
        rf"x_test\[{row}, ., 0\] is .*: row {row} .counted",
        open_file,
        save(tmp_path, x=X, y=Y, x_test=x[..., np.newaxis], y_test=Y),
    )


NAMES = np.array(["cat", "dog"])


@pytest.mark.parametrize(
    ("y", "y_test", "class_names"),
    [
        (Y.astype(float), Y[:2].astype(np.int8), ("0", "1")),  # a column of pandas with a gap, filled
        (Y[:, np.newaxis], Y[:2], ("0", "1")),
        (Y.astype(np.uint64), Y[:2], ("0", "1")),  # which NumPy would join to floats, and call 0.0
        (Y.astype(bool), Y[:2] == 1, ("0", "1")),
        (np.eye(2)[Y], Y[:2], ("0", "1")),
        (np.eye(4, dtype=int)[Y], np.eye(4, dtype=int)[Y[:2]], ("0", "1", "2", "3")),
        (NAMES[Y], NAMES[Y[:2]].astype("S"), ("cat", "dog")),
        (NAMES.astype("S")[Y][:, np.newaxis], NAMES[Y[:2]], ("cat", "dog")),
    ],
)
def test_labels_that_can_only_mean_one_thing_are_taken(tmp_path, y, y_test, class_names):
    arrays = open_file(save(tmp_path, x=X, y=y, x_test=X[:2], y_test=y_test))
    assert arrays.format.class_names == class_names
    assert arrays.train_y.tolist() == Y.tolist() and arrays.test_y.tolist() == [0, 1]


@pytest.mark.parametrize("client", [np.arange(20) // 10, np.arange(20) // 10 * 1.0, (np.arange(20) // 10)[:, None]])
def test_clients_in_any_form_of_integers_have_the_same_names(tmp_path, client):
    assert open_file(save(tmp_path, x=X, y=Y, client=client)).client_names == ("client_0", "client_1")


def test_clients_of_one_example_stay_or_are_counted(tmp_path):
    client = np.r_[np.arange(20), np.full(80, 20)]
    y = np.arange(100) % 4
    for seed in range(5):
        arrays = open_file(save(tmp_path, x=np.zeros((100, 2)), y=y, client=client), seed=seed)
        assert len(arrays.client_names) == 21 and arrays.num_clients_left_out == 0
        assert np.bincount(arrays.test_y).tolist() == [5] * 4  # a fifth of each class, as without clients
    arrays = open_file(save(tmp_path, x=X, y=Y, client=np.arange(20)))
    assert len(arrays.client_names) == 18 and arrays.num_clients_left_out == 2  # one test example of each class


def test_a_file_is_examples_of_a_run(tmp_path):
    images = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5) % 256
    expected = np.moveaxis(images, 1, -1)
    path = save(tmp_path, x_test=images, y_test=NAMES)  # a test set alone
    found = read_examples(path, make_format((4, 5, 3), "uint8"), "image_channels_first")
    assert found.x.dtype == np.uint8 and found.y.tolist() == ["cat", "dog"] and found.class_names is None
    np.testing.assert_array_equal(found.x, expected)
    path = save(tmp_path, x=expected / 2, y=[1.0, 0.0], class_names=NAMES)  # as the model takes them
    found = read_examples(path, make_format((4, 5, 3), "float32"), "image_channels_first")
    assert found.y.tolist() == [1, 0] and found.class_names == ("cat", "dog")
    np.testing.assert_array_equal(found.x, expected / np.float32(2))
    grey = read_examples(save(tmp_path, x=images[:, 0] * 1.0, y=[0, 1]), make_format((4, 5, 1), "uint8"))
    np.testing.assert_array_equal(grey.x[..., 0], images[:, 0])
    flat = read_examples(save(tmp_path, x=images, y=[0, 1]), make_format((60, 1), "uint8"), "features")
    np.testing.assert_array_equal(flat.x, images.reshape(2, 60, 1))


def test_a_list_of_arrays_tells_whether_clients_are_named(tmp_path):
    path = save(tmp_path, x=X, y=Y, client=Y)
    assert choose_partition(DatasetOptions(npz=path)) == "natural"
    assert choose_partition(DatasetOptions(npz=save(tmp_path, x=X, y=Y))) == ""
    assert choose_partition(DatasetOptions()) == choose_partition(DatasetOptions(npz="nowhere.npz")) == ""


@pytest.mark.parametrize("save_function", [np.savez, np.savez_compressed])
def test_a_flipped_byte_is_noticed(tmp_path, save_function):
    path = tmp_path / "mine.npz"
    save_function(path, x=np.random.default_rng(0).normal(size=(20, 50)), y=Y)
    content = bytearray(path.read_bytes())
    content[4000] ^= 0xFF
    path.write_bytes(content)
    assert_refused("damaged", open_file, str(path))


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
    assert_refused(message, open_file, str(tmp_path / "mine.npz"))


def test_an_honest_file_that_is_too_large_is_one_line(tmp_path, monkeypatch):
    def give_up(self, key):
        raise MemoryError

    path = save(tmp_path, x=X, y=Y)
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", give_up)
    assert_refused("memory", open_file, path)


def test_an_encrypted_entry_is_one_line(tmp_path):
    path = pathlib.Path(save(tmp_path, x=X, y=Y))
    content = bytearray(path.read_bytes())
    for signature, offset in ((rb"PK\x03\x04", 6), (rb"PK\x01\x02", 8)):
        for found in re.finditer(signature, bytes(content)):
            content[found.start() + offset] |= 1
    path.write_bytes(content)
    assert_refused("encrypted", open_file, str(path))


X_OF_NPZ_LABELS = np.arange(120, dtype=float).reshape(40, 3)
NUMBERS = np.linspace(0, 10, 40)
SWITCHES = (np.arange(160).reshape(40, 4) * 7 % 3 == 0).astype(int)
TOKENS = np.arange(200).reshape(40, 5) % 9


def load(tmp_path, task="", layout="auto", scale="auto", **arrays):
    path = save(tmp_path, **{"x": X_OF_NPZ_LABELS, **arrays})
    return open_file(path, layout=layout, scale=scale, task=task)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        *((np.arange(40) % number, "classification") for number in (2, 3)),
        (np.arange(40) % 2 == 0, "classification"),
        (np.array(["a", "b"] * 20), "classification"),
        *((y, "classification") for y in (np.arange(40.0), np.arange(40.0)[:, np.newaxis])),
        (np.eye(4)[np.arange(40) % 4], "classification"),
        (np.arange(200.0) * 2, "regression"),  # with gaps, and more than classes are
        (np.arange(40.0) * 2, "classification"),  # which is then an error
        (np.arange(200) * 2, "classification"),
        *((y, "regression") for y in (NUMBERS, NUMBERS[:, np.newaxis], np.stack([NUMBERS, -NUMBERS], axis=1))),
        *((y, "multi_label") for y in (SWITCHES, SWITCHES.astype(bool), SWITCHES * 1.0)),
        (np.zeros((40, 3)), "classification"),
        (TOKENS, "classification"),  # without x of tokens
        (np.array([0.5, np.nan]), "regression"),
        (np.array([1.0, np.nan]), "classification"),
    ],
)
def test_the_form_of_the_labels_tells_the_task(y, task):
    assert guess_task(y)[0] == task


@pytest.mark.parametrize(
    ("y", "x", "has_names", "task"),
    [
        (TOKENS, TOKENS, False, "next_token"),
        (TOKENS, TOKENS * 0.5, False, "classification"),
        (TOKENS, TOKENS[:, :4], False, "classification"),
        (SWITCHES, TOKENS[:, :4], False, "multi_label"),
        # Named classes are no measurements.
        (NUMBERS, None, True, "classification"),
        (np.arange(200.0) * 2, None, True, "classification"),
    ],
)
def test_examples_and_names_of_classes_tell_it_too(y, x, has_names, task):
    assert guess_task(y, x, has_names)[0] == task


def test_a_regression(tmp_path):
    arrays = load(tmp_path, y=NUMBERS)
    y = arrays.train_y
    assert y.dtype == np.float32 and y.shape == (32,) and sorted([*y, *arrays.test_y]) == pytest.approx(list(NUMBERS))
    (offset,), (scale,) = arrays.format.labels.offset, arrays.format.labels.scale
    assert arrays.format.labels == LabelFormat("regression", (), 1, (offset,), (scale,))
    assert (offset, scale) == pytest.approx((y.mean(), y.std()))
    assert arrays.format.class_names == () and arrays.format.are_features and not arrays.format.takes_tokens
    assert arrays.reading == "3 features, as they are; task regression, since y has numbers that are not whole"
    # Of several numbers one may be constant.
    labels = load(tmp_path, y=np.stack([NUMBERS, np.ones(40)], axis=1)).format.labels
    assert (labels.shape, labels.num_outputs, labels.scale[1], labels.offset[1]) == ((2,), 2, 1.0, 1.0)
    # Whole numbers are one if it is asked for.
    arrays = load(tmp_path, "regression", y=np.arange(40) * 3)
    assert arrays.train_y.dtype == np.float32 and arrays.reading.endswith("; task regression")


def test_several_labels(tmp_path):
    arrays = load(tmp_path, y=SWITCHES, x_test=X_OF_NPZ_LABELS[:2], y_test=SWITCHES[:2])
    assert arrays.train_y.dtype == np.uint8 and arrays.format.labels == LabelFormat("multi_label", (4,), 4)
    assert arrays.format.class_names == ("0", "1", "2", "3")
    np.testing.assert_array_equal(arrays.train_y, SWITCHES)
    assert load(tmp_path, y=SWITCHES, class_names=list("abcd")).format.class_names == tuple("abcd")


def test_two_classes_are_binary_if_it_is_asked_for(tmp_path):
    y = np.array(["no", "yes"] * 20)
    arrays = load(tmp_path, "binary", y=y)
    assert (arrays.format.labels, arrays.format.class_names) == (LabelFormat("binary"), ("no", "yes"))
    assert arrays.format.labels.count_outputs(2) == 1 and load(tmp_path, y=y).format.labels == LabelFormat()


@pytest.mark.parametrize(("dtype", "stored"), [(np.int64, np.int32), (np.uint8, np.uint8)])
def test_next_tokens_keep_their_whole_numbers(tmp_path, dtype, stored):
    x, y = TOKENS.astype(dtype), np.roll(TOKENS, -1, axis=1).astype(dtype)
    arrays = load(tmp_path, x=x, y=y)
    assert arrays.train_x.dtype == stored and arrays.train_y.dtype == np.int32 and arrays.format.takes_tokens
    assert arrays.format.labels == LabelFormat("next_token", (5,), 9) and not arrays.format.are_features
    assert arrays.format.preprocessing.scale == 1
    assert arrays.reading.endswith("since x and y are whole numbers of one shape; padding is label 0")


def test_a_negative_label_says_how_padding_is_marked(tmp_path):
    labels = load(tmp_path, x=TOKENS, y=np.where(TOKENS == 4, -1, TOKENS)).format.labels
    assert (labels.padding, labels.num_outputs) == (-1, 9)


def test_tokens_can_have_classes(tmp_path):
    arrays = load(tmp_path, layout="tokens", x=TOKENS, y=np.arange(40) % 2)
    assert arrays.format.takes_tokens and arrays.train_x.dtype == np.int32 and arrays.train_x.shape == (32, 5)
    assert arrays.format.labels == LabelFormat() and arrays.reading == "sequences of 5 tokens"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": "ranking"}, "task=ranking: expected one of classification, binary, multi_label, regression"),
        (
            {"task": "regression", "y": ["a"] * 40},
            r"y is <U1 of shape \(40,\), expected finite numbers \(N,\), or rows",
        ),
        ({"y": np.where(NUMBERS > 9, np.nan, NUMBERS)}, r"y is float64 .*; row 36 \(counted from 0\) has nan"),
        ({"task": "regression", "y": np.where(NUMBERS > 9, 1e300, 0)}, "row 36 .* has 1e[+]300"),
        ({"task": "multi_label", "y": SWITCHES * 2}, "expected 0 and 1 in rows .*; row 0 .* has 2"),
        ({"task": "multi_label"}, r"y is float64 of shape \(40,\), expected 0 and 1 in rows"),
        (
            {"task": "next_token", "x": TOKENS, "y": TOKENS * 1.0},
            r"y is float64 .*, expected whole numbers \(N, positions\)",
        ),
        (
            {"task": "next_token", "x": TOKENS - 1, "y": TOKENS},
            r"x\[0, 0\] is -1 .*expected tokens, whole numbers from 0 on",
        ),
        (
            {"task": "next_token", "x": TOKENS[..., np.newaxis], "y": TOKENS},
            "expected .N, positions. with --layout=tokens",
        ),
        (
            {"y": SWITCHES, "x_test": X_OF_NPZ_LABELS[:2], "y_test": SWITCHES[:2, :3]},
            "y_test .2, 3.; expected the same but for",
        ),
        ({"y": SWITCHES, "class_names": ["a", "b"]}, "2 class names, expected 4, one an output"),
        ({"y": np.arange(40) * 3}, "or give --task=regression for measurements"),
        (
            {"task": "binary", "y": np.arange(40) % 3},
            "3 classes, expected 2 for --task=binary; take --task=classification",
        ),
        ({"scale": "0.1", "x": TOKENS, "y": TOKENS}, r"scale=0\.1: tokens are looked up, not scaled; leave it out"),
    ],
)
def test_labels_that_the_task_does_not_have_are_one_line(tmp_path, given, message):
    assert_refused(message, load, tmp_path, **{"y": NUMBERS, **given})


@pytest.mark.parametrize(
    ("y", "task", "expected"),
    [(NUMBERS, "", "iid"), (TOKENS, "", "iid"), (np.arange(40) % 2, "", ""), (np.arange(40) % 2, "regression", "iid")],
)
def test_labels_that_are_no_classes_are_dealt_out_at_random_unless_told_otherwise(tmp_path, y, task, expected):
    path = save(tmp_path, x=TOKENS, y=y)
    assert choose_partition(DatasetOptions(npz=path, task=task)) == expected


def sort_pairs(x, y):
    return sorted((tuple(map(float, a.ravel())), tuple(map(float, b.ravel()))) for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize(
    "arrays", [{"y": NUMBERS}, {"y": SWITCHES}, {"x": TOKENS, "y": TOKENS}], ids=["numbers", "switches", "tokens"]
)
def test_client_files_hold_labels_in_their_dtype_and_shape(tmp_path, arrays):
    whole = load(tmp_path, **arrays, client=np.arange(40) % 4)
    settings = PartitionSettings(partition="natural", validation_fraction=0.2)
    for _ in range(2):  # written, and found again
        data = build_federated_data(whole, settings, str(tmp_path / "shards"))
    parts = [data.read_pooled(data.clients, split) for split in SPLITS]
    assert all(y.dtype == whole.train_y.dtype and y.shape == (len(x), *whole.format.labels.shape) for x, y in parts)
    assert [len(x) for x, _ in parts] == [sum(getattr(c, f"num_{split}") for c in data.clients) for split in SPLITS]
    assert sort_pairs(*map(np.concatenate, zip(*parts, strict=True))) == sort_pairs(whole.train_x, whole.train_y)
    assert data.format.labels == whole.format.labels and data.format.num_outputs == whole.format.labels.num_outputs
    assert data.label_counts.shape == (4, 0) and data.format.takes_tokens == whole.format.takes_tokens


@pytest.mark.parametrize("partition", PARTITION_NAMES)
def test_partitions_by_class_need_classes(tmp_path, partition):
    whole = load(tmp_path, y=NUMBERS, client=np.arange(40) % 4)
    settings = PartitionSettings(partition=partition, num_clients=4)
    if partition in ("iid", "natural"):
        assert len(build_federated_data(whole, settings, str(tmp_path / "shards")).clients) == 4
        return
    message = (
        f"partition={partition}: it deals out examples by their class, which regression does not have; expected iid"
    )
    assert_refused(re.escape(message), build_federated_data, whole, settings, str(tmp_path / "shards"))


def test_examples_in_the_form_of_a_data_set_that_is_there(tmp_path):
    text = ExampleFormat((5,), "int32", (), labels=LabelFormat("next_token", (5,), 9), takes_tokens=True)
    found = read_examples(save(tmp_path, x=TOKENS, y=TOKENS), text, "tokens")
    np.testing.assert_array_equal(found.x, TOKENS)
    assert found.y.dtype == found.x.dtype == np.int32
    assert_refused(
        r"labels 0\.\.9, expected 0\.\.8",
        read_examples,
        save(tmp_path, x=TOKENS, y=TOKENS + TOKENS // 7),
        text,
        "tokens",
    )
    table = ExampleFormat((3, 1), "float32", (), labels=LabelFormat("regression", (), 1))
    numbers = read_examples(save(tmp_path, x=X_OF_NPZ_LABELS, y=NUMBERS), table, "features")
    assert numbers.y.dtype == np.float32 and numbers.x.shape == (40, 3, 1)
