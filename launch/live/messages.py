"""The wire format of live rounds: a header of names and numbers, then arrays.

A message is bytes: the length of its header, uint32; the header, JSON in UTF-8, padded with spaces to whole fours; the
arrays one after another, each padded with zeros likewise. All is little-endian. The header has `type`, what a message
of that type has (docs/live.md), and `arrays`: [name, dtype, shape] of each. Imports no TensorFlow.
"""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

VERSION = 2  # of the protocol; a client of another one is refused
DTYPES = ("<f4", "<i4", "<u2", "<u4", "|u1")
MOST_HEADER_BYTES = 2**20
_DTYPES = {name: np.dtype(name) for name in DTYPES}
_encode = json.JSONEncoder(separators=(",", ":")).encode


class MessageError(ValueError):
    """Bytes that are no message; the text is one line."""


class Message(NamedTuple):
    """A message; `header` has its type and what that type has, without `arrays`."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def type(self) -> str:
        return self.header["type"]


class Packed(NamedTuple):
    """Arrays as a message has them: the rows of its header, and their bytes. Many messages can have the same ones."""

    rows: Sequence[list] = ()
    content: bytes = b""


NOTHING = Packed()


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> Packed:
    """Arrays for messages; they must have one of DTYPES."""
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    rows = [[name, array.dtype.newbyteorder("<").str, list(array.shape)] for name, array in arrays.items()]
    parts = [_pad(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()) for array in arrays.values()]
    return Packed(rows, b"".join(parts))


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray] = {}, before: Packed = NOTHING) -> bytes:
    """The bytes of a message; of its arrays those come first that are packed already."""
    packed = pack_arrays(arrays)
    listed = {"arrays": [*before.rows, *packed.rows]}
    text = _pad(_encode({**header, **listed}).encode(), b" ")
    return b"".join([struct.pack("<I", len(text)), text, before.content, packed.content])


def unpack(content: bytes) -> Message:
    """The message in these bytes; its arrays cannot be written to.

    Raises:
      MessageError: it is none, or has bytes that no array owns.
    """
    if len(content) < 4:
        raise MessageError("shorter than a length")
    (size,) = struct.unpack_from("<I", content)
    if size > min(MOST_HEADER_BYTES, len(content) - 4):
        raise MessageError(f"a header of {size} bytes in a message of {len(content)}")
    try:
        header = json.loads(content[4 : 4 + size])
        listed = header.pop("arrays")
        if not isinstance(header["type"], str):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise MessageError("its header is no JSON with a type and arrays") from None
    arrays, place = {}, 4 + size
    for each in listed if isinstance(listed, list) else [None]:
        name, dtype, shape = _read_row(each)
        num_bytes = math.prod(shape) * dtype.itemsize
        if num_bytes > len(content) - place or name in arrays:
            raise MessageError(f"array {name[:40]!r} does not fit, or comes twice")
        try:
            arrays[name] = np.ndarray(shape, dtype, content, place)
        except ValueError:  # nothing in it, and more of that than NumPy counts
            raise MessageError(f"array {name[:40]!r} has a shape that is none") from None
        place += num_bytes + -num_bytes % 4
    if place != len(content):
        raise MessageError(f"{len(content)} bytes, expected {place}")
    return Message(header, arrays)


def _pad(content: bytes, filling: bytes = b"\0") -> bytes:
    return content + filling * (-len(content) % 4)


def _read_row(row: Any) -> tuple[str, np.dtype, tuple[int, ...]]:
    is_row = isinstance(row, list) and len(row) == 3 and isinstance(row[0], str) and isinstance(row[1], str)
    is_shape = is_row and row[1] in _DTYPES and isinstance(row[2], list) and len(row[2]) <= 8
    if not is_shape or not all(type(size) is int and 0 <= size < 2**31 for size in row[2]):
        raise MessageError("its header lists an array that is none")
    return row[0], _DTYPES[row[1]], tuple(row[2])
