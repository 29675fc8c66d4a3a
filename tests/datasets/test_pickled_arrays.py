"""Arrays out of pickles that nobody unpickles: what PFLlib writes is read, nothing of a pickle's is called."""

import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from datasets.errors import DatasetError
from datasets.formats.client_files import read_pickled_arrays


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
        with pytest.raises(DatasetError, match=r"here: holds Python objects that are not read \(it asks for"):
            read_pickled_arrays(dump(content), "here")
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
    with pytest.raises(DatasetError) as caught:
        read_pickled_arrays(content, "here")
    assert str(caught.value).startswith("here: ") and "numpy.savez(file, x=x, y=y)" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_array_that_claims_more_than_it_has_is_refused():
    state = (1, (1000, 1000, 1000), np.dtype("f8"), False, b"12345678")
    with pytest.raises(DatasetError, match="here: "):
        read_pickled_arrays(dump({"x": Built(state)}), "here")


class Built:
    def __init__(self, state):
        self._state = state

    def __reduce__(self):
        return np.core.multiarray._reconstruct, (np.ndarray, (0,), b"b"), self._state
