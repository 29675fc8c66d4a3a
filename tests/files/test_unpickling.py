"""Pickles that nobody unpickles: those of Python 2 too; everything but plain values and arrays is refused."""

import os
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.unpickling import read_pickled_dictionary


def write_string(content):
    return b"T" + struct.pack("<i", len(content)) + content


def dump_as_python_2(array):
    """{"data": an array of uint8} as Python 2 pickles it, with bytes as text, which the files of CIFAR-10 are."""
    shape = b"(" + b"".join(b"M" + struct.pack("<H", number) for number in array.shape) + b"t"
    kind = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    return b"\x80\x02}U\x04data" + made + b"(K\x01" + shape + kind + b"\x89" + write_string(array.tobytes()) + b"tbs."


def test_arrays_of_python_2():
    array = np.arange(600, dtype=np.uint8).reshape(2, 300)
    content = dump_as_python_2(array)
    np.testing.assert_array_equal(pickle.loads(content, encoding="bytes")[b"data"], array)  # the test's own pickle
    np.testing.assert_array_equal(read_pickled_dictionary(content, "bytes")[b"data"], array)


PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary())


@given(st.dictionaries(st.text(), st.one_of(PLAIN, st.lists(PLAIN), st.tuples(PLAIN, PLAIN))), st.integers(2, 5))
def test_plain_values_come_out_as_they_went_in(values, protocol):
    assert read_pickled_dictionary(pickle.dumps(values, protocol)) == values


@given(st.binary(max_size=60))
def test_noise_is_an_error_or_a_dictionary(noise):
    try:
        assert isinstance(read_pickled_dictionary(b"\x80\x02" + noise), dict)
    except Exception as error:
        assert not isinstance(error, AssertionError)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cos\nmkdir\n(U\x04madetR.", "asks for os.mkdir"),
        (b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x07\x00\x00\x00unicodetR.", "not written by Python"),
        (pickle.dumps([1]), "no dictionary but list"),
    ],
)
def test_nothing_is_called(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        read_pickled_dictionary(content)
    assert os.listdir(tmp_path) == []
