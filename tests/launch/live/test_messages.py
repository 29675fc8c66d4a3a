"""The wire format: what is packed comes back, and of anything else nothing but MessageError."""

import json
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

from launch.live.messages import DTYPES, MessageError, pack, pack_arrays, unpack

VALUES = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=8)
HEADERS = st.dictionaries(st.text(max_size=6).filter(lambda name: name != "arrays"), VALUES, max_size=4)
ARRAYS = st.dictionaries(
    st.text(max_size=5),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: of_numpy.arrays(dtype, of_numpy.array_shapes(min_dims=0, min_side=0))
    ),
    max_size=3,
)


@given(HEADERS, ARRAYS)
def test_a_message_comes_back_and_no_cut_of_it(header, arrays):
    header = header | {"type": "answer"}
    content = pack(header, arrays)
    message = unpack(content)
    assert message.header == header and message.type == "answer" and list(message.arrays) == list(arrays)
    for name, array in arrays.items():
        assert message.arrays[name].dtype == array.dtype and message.arrays[name].shape == array.shape
        assert message.arrays[name].tobytes() == array.tobytes() and not message.arrays[name].flags.writeable
    for size in {0, 1, 3, 4, len(content) // 2, len(content) - 1}:
        with pytest.raises(MessageError):
            unpack(content[:size])
    with pytest.raises(MessageError):
        unpack(content + b"\0")


def with_header(text, rest=b""):
    content = text if isinstance(text, bytes) else json.dumps(text).encode()
    return struct.pack("<I", len(content)) + content + rest


@given(st.binary(max_size=60))
@example(with_header(b"[" * 100_000))
@example(with_header(b"1" * 10_000))
@example(with_header(["arrays"]))
@example(with_header("arrays"))
@example(with_header({"type": 1, "arrays": []}))
@example(with_header({"type": "a", "arrays": {}}))
@example(with_header({"type": "a", "arrays": [["w", "<f8", [1]]]}, b"\0" * 8))
@example(with_header({"type": "a", "arrays": [["w", ["<f4"], [1]]]}, b"\0" * 4))
@example(with_header({"type": "a", "arrays": [["w", "<f4", [True]]]}, b"\0" * 4))
@example(with_header({"type": "a", "arrays": [["w", "<f4", [-1]]]}))
@example(with_header({"type": "a", "arrays": [["w", "<f4", [2**31 - 1] * 8]]}))
@example(with_header({"type": "a", "arrays": [["w", "<f4", [0] + [2**31 - 1] * 7]]}))
@example(with_header({"type": "a", "arrays": [["w", "<f4", [0] * 9]]}))
@example(with_header({"type": "a", "arrays": [["w", "<f4", []]] * 2}, b"\0" * 8))
@example(with_header(b"\xff\xfe{"))
def test_garbage_is_no_message(content):
    with pytest.raises(MessageError) as error:
        unpack(content)
    assert "\n" not in str(error.value)


@given(HEADERS, ARRAYS, st.data())
def test_a_damaged_message_raises_nothing_else(header, arrays, data):
    content = bytearray(pack(header | {"type": "a"}, arrays))
    for _ in range(3):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        unpack(bytes(content))
    except MessageError as error:
        assert "\n" not in str(error)


@given(HEADERS, ARRAYS, ARRAYS)
def test_arrays_packed_before_are_those_of_the_message(header, before, after):
    header, after = header | {"type": "train"}, {f"other {name}": array for name, array in after.items()}
    assert pack(header, after, pack_arrays(before)) == pack(header, {**before, **after})
