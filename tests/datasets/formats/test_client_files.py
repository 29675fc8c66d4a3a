"""A folder with a file for each client: npz as NumPy and as PFLlib write it, and tables."""

import dataclasses
import io
import os
import pickle
import zipfile

import numpy as np
import pytest
from refusals import assert_refused

from datasets.dataset import DatasetOptions
from datasets.formats.client_files import (
    choose_client_files_partition,
    is_client_files,
    open_client_files,
    read_pickled_arrays,
)

OPTIONS = DatasetOptions()


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "clients"
    path.mkdir()
    return path


def open_folder(folder, **options):
    return open_client_files(str(folder), dataclasses.replace(OPTIONS, **options))


def write_pfllib(folder, num_clients=1):
    """As PFLlib's `save_file` does: a dictionary in an array without axes, by client and part."""
    rng, written = np.random.default_rng(0), {}
    for part, size in (("train", 3), ("test", 2)):
        (folder / part).mkdir()
        for client in range(num_clients):
            x, y = rng.normal(size=(size, 3, 6, 6)).astype(np.float32), rng.permutation(np.arange(size) % 3)
            np.savez_compressed(folder / part / f"{client}.npz", data={"x": x, "y": y})
            written[client, part] = x, y
    (folder / "config.json").write_text("{}")
    return written


def test_what_pfllib_writes(folder):
    assert not is_client_files(str(folder))
    written = write_pfllib(folder, 11)
    assert is_client_files(str(folder)) and not is_client_files(str(folder / "train" / "0.npz"))
    source = open_folder(folder)
    assert source.client_names == tuple(map(str, range(11))) and source.has_tests
    assert source.format.input_shape == (6, 6, 3) and source.format.class_names == ("0", "1", "2")
    for (client, part), (x, y) in written.items():
        found = source.read(client, part)
        np.testing.assert_array_equal(found[0], np.moveaxis(x, 1, -1))
        np.testing.assert_array_equal(found[1], y)
    assert source.count_labels().sum() == 33 and "an npz file a client" in source.reading
    assert choose_client_files_partition(str(folder), OPTIONS) == "natural"


def test_plain_npz_with_tests_of_their_own(folder):
    np.savez(folder / "Zoë.npz", x=np.ones((3, 2)), y=["a", "b", "a"], x_test=np.zeros((1, 2)), y_test=["b"])
    np.savez(folder / "bob.npz", x=np.full((2, 2), 5), y=["c", "a"])
    source = open_folder(folder)
    assert source.client_names == ("Zoë", "bob") and source.format.class_names == ("a", "b", "c")
    counts = {split: number.tolist() for split, number in source.num_examples.items()}
    assert counts == {"train": [3, 2], "test": [1, 0]}
    assert source.format.input_shape == (2, 1) and source.format.are_features
    assert source.read(0, "test")[1].tolist() == [1] and source.read(1, "train")[1].tolist() == [2, 0]


def test_numbers_to_predict_are_standardised_over_all_clients(folder):
    np.savez(folder / "a.npz", x=np.ones((2, 2)), y=[0.5, 1.5])
    np.savez(folder / "b.npz", x=np.ones((2, 2)), y=[2.5, 3.5], x_test=np.ones((1, 2)), y_test=[100.5])
    labels = open_folder(folder).pool().format.labels
    assert labels.task == "regression" and labels.offset == (2.0,) and labels.scale == pytest.approx((1.25**0.5,))


def test_tokens_and_the_next_ones(folder):
    np.savez(folder / "a.npz", x=np.array([[1, 2], [3, 0]]), y=np.array([[2, 3], [0, 0]]))
    np.savez(folder / "b.npz", x=np.array([[7, 2]]), y=np.array([[2, 1]]))
    source = open_folder(folder)
    assert source.format.takes_tokens and source.format.labels.task == "next_token"
    assert source.format.labels.num_outputs == 8 and source.read(1, "train")[0].tolist() == [[7, 2]]


def write_table(folder, name, rows, header="a,label"):
    (folder / name).write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def test_a_table_a_client(folder):
    for name, rows in (("b.csv", ["1,x", "2,y"]), ("10.csv", ["3,x"]), ("9.csv", ["4,y"])):
        write_table(folder, name, rows)
    source = open_folder(folder)
    assert source.client_names == ("9", "10", "b") and "a file a client" in source.reading
    assert source.read(2, "train")[0][:, 0, 0].tolist() == [1, 2]
    assert choose_client_files_partition(str(folder), OPTIONS) == "natural"


@pytest.mark.parametrize(("names", "has_clients"), [("{}/ann.csv", True), ("{}.csv", False)])
def test_tables_in_folders_of_parts_and_parts_of_one_table(folder, names, has_clients):
    for part, rows in (("train", ["1,x", "2,y"]), ("test", ["3,x"])):
        (folder / names.format(part)).parent.mkdir(exist_ok=True)
        write_table(folder, names.format(part), rows)
    source = open_folder(folder)
    counts = {split: number.tolist() for split, number in source.num_examples.items()}
    assert (counts, source.has_clients) == ({"train": [2], "test": [1]}, has_clients)
    assert choose_client_files_partition(str(folder), OPTIONS) == ("natural" if has_clients else "")


def test_a_column_of_clients_outweighs_the_names_of_files(folder):
    write_table(folder, "january.csv", ["1,x,ann", "2,y,bob"], "a,label,user")
    write_table(folder, "march.csv", ["3,x,ann"], "a,label,user")
    source = open_folder(folder)
    assert source.client_names == ("ann", "bob") and source.read(0, "train")[0][:, 0, 0].tolist() == [1, 3]
    assert open_folder(folder, client_column="none").client_names == ("january", "march")


def save(**arrays):
    return lambda path: np.savez(path, **arrays)


X, Y = np.ones((2, 3)), np.array([0, 1])
WRONG = {
    "no labels": (save(x=X), "array 'y' is missing"),
    "no examples": (save(y=Y), "array 'x' is missing"),
    "fewer labels": (save(x=X, y=Y[:1]), "2 examples and 1 labels"),
    "another shape": (save(x=np.ones((2, 4)), y=Y), "examples of shape (4,), expected (3,) as"),
    "rows of labels": (save(x=X, y=np.ones((2, 2))), "labels of shape (2,), expected () as"),
    "another dtype": (save(x=X.astype(np.uint8), y=Y), "x is uint8, expected other numbers than uint8"),
    "text for numbers": (save(x=np.array([["a"] * 3] * 2), y=Y), "x is <U1 of shape (2, 3), expected numbers"),
    "no number": (save(x=X * np.nan, y=Y), "x[0, 0] is nan"),
    "text for labels": (save(x=X, y=np.array(["a", "b"])), "y is <U1, expected labels as int64 in"),
    "a function": (lambda path: np.savez(path, data={"x": os.getcwd}), "holds Python objects that are not read"),
    "another dictionary": (lambda path: np.savez(path, data={"x": X}), "lacks 'y', it has x"),
    "objects": (save(x=np.array([[1], [1, 2]], object), y=Y), "array 'x' has dtype object"),
    "empty": (lambda path: path.write_bytes(b""), "empty, 0 bytes"),
    "damaged": (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(100)), "damaged, truncated or not an npz file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_file_is_one_line_that_names_it(folder, name):
    write, expected = WRONG[name]
    np.savez(folder / "ann.npz", x=X, y=Y)
    write(folder / "bob.npz")
    caught = assert_refused("", open_folder, folder)
    assert expected in caught and "bob.npz" in caught


def test_what_is_wrong_with_a_folder_is_one_line(folder):
    assert_refused("no file of a client", open_folder, folder)
    write_table(folder, "ann.csv", ["1,x", "2,y"])
    write_table(folder, "train.csv", ["1,x"])
    assert_refused("a part of a whole beside files of clients", open_folder, folder)
    (folder / "train.csv").unlink()
    write_table(folder, "ann.tsv", ["1\tx"])
    assert_refused("client 'ann' has a file of this part already", open_folder, folder)
    (folder / "ann.tsv").unlink()
    write_table(folder, "eve.csv", [])
    assert_refused(r"eve\.csv: no rows below", open_folder, folder)
    np.savez(folder / "bob.npz", x=X, y=Y)
    assert_refused(r"files of several kinds \(csv, npz", open_folder, folder)


def dump(value, protocol=3):
    return pickle.dumps(value, protocol=protocol)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
        np.array([1, 2], ">i4"),
        np.array([True, False]),
        np.array(["ja", "Zoë"]),
        np.zeros((0, 3), np.uint8),
        np.arange(10.0)[::3],
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_come_out_as_they_went_in(array, protocol):
    found = read_pickled_arrays(dump({"x": array}, protocol), "here")["x"]
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype


def test_what_numpy_saves_of_a_dictionary():
    stream = io.BytesIO()
    np.savez_compressed(stream, data={"x": np.ones((2, 1)), "y": [0, 1], "n": np.int64(7)})
    with zipfile.ZipFile(stream) as archive, archive.open("data.npy") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        found = read_pickled_arrays(file.read(), "here")
    assert found["y"].tolist() == [0, 1] and found["n"] == 7 and found["x"].shape == (2, 1)


class Runs:
    def __init__(self, function, *arguments):
        self._pair = function, arguments

    def __reduce__(self):
        return self._pair


@pytest.mark.parametrize(
    "value",
    [
        Runs(os.system, "touch was_run"),
        Runs(eval, "open('was_run', 'w')"),
        Runs(np.load, "file.npy"),
        Runs(np.lib.format.open_memmap, "was_run", "w+", float, (3,)),
        Runs(getattr, "text", "upper"),
        Runs(pickle.loads, b"N."),
    ],
    ids=lambda value: value._pair[0].__name__,
)
def test_functions_of_a_pickle_are_not_called(tmp_path, monkeypatch, value):
    monkeypatch.chdir(tmp_path)
    for content in (value, {"x": value}, {"x": [value]}):
        assert_refused(
            r"here: holds Python objects that are not read \(it asks for", read_pickled_arrays, dump(content), "here"
        )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a pickle",
        dump({"x": np.arange(1000)})[:-500],
        dump([1, 2]),
        dump({1: np.ones(2)}),
        dump({"x": np.array([{}, []], object)}),
        dump({"x": np.zeros(2, [("a", "i4")])}),
        dump({"x": {"y": 1}}),
        dump({"x": [[1], [2, 3]]}),
        dump({"x": np.datetime64("2024-01-01")}),
        b"\x80\x03cnumpy.core.multiarray\n_reconstruct\n)R.",
        b"\x80\x03}(X\x01\x00\x00\x00xcnumpy\nndarray\n)Ru.",
        b"\x80\x03P1\n.",
        b"\x80\x03Nr\xff\xff\xff\x7f.",  # a memo whose number would be room for 2**31 others
    ],
    ids=range(14),
)
def test_everything_else_is_refused_in_one_line(content):
    caught = assert_refused("", read_pickled_arrays, content, "here")
    assert caught.startswith("here: ") and "numpy.savez(file, x=x, y=y)" in caught


class Built:
    """Pickled as an array of NumPy with this state."""

    def __init__(self, state):
        self._state = state

    def __reduce__(self):
        return np.core.multiarray._reconstruct, (np.ndarray, (0,), b"b"), self._state


def test_an_array_that_claims_more_than_it_has_is_refused():
    state = (1, (1000, 1000, 1000), np.dtype("f8"), False, b"12345678")
    assert_refused("here: ", read_pickled_arrays, dump({"x": Built(state)}), "here")
