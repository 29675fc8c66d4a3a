"""FlatBuffers without code made from a schema: nested tables to bytes, and metadata into a TFLite model.

A table is a mapping from the number of a field in its schema to a value: text, a table, a list of texts, tables or
floats, a `Byte` or a `Uint`. Imports no TensorFlow.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import flatbuffers
import flatbuffers.number_types as number_types
import flatbuffers.table

Table = Mapping[int, Any]

ALIGNMENT = 16  # of the contents of buffers in a TFLite file
MODEL_IDENTIFIER = b"TFL3"
# Fields of tables of TFLite's schema: https://github.com/tensorflow/tensorflow/blob/v2.14.1/tensorflow/lite/schema
_VERSION, _BUFFERS, _METADATA = 0, 4, 6
_REFERRED = (1, 2, 3, 5, 7)  # operator codes, subgraphs, description, buffers of metadata, signatures
_NUM_FIELDS = 8
_DATA = 0  # of a Buffer
_NAME, _BUFFER = 0, 1  # of a Metadata


class Byte(int):
    """A field of one byte, such as an enumeration or the kind of a union."""


class Uint(int):
    """A field of four bytes without a sign."""


def write_tables(root: Table, identifier: bytes) -> bytes:
    """The FlatBuffer of a table and what is in it; `identifier` has four bytes."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(_write_value(builder, root), identifier)
    return bytes(builder.Output())


def _write_value(builder: flatbuffers.Builder, value: Any) -> int:
    """Writes text, a table or a list and returns where it is."""
    if isinstance(value, str):
        return builder.CreateString(value)
    if isinstance(value, Mapping):
        return _write_table(builder, value)
    if value and isinstance(value[0], float):
        builder.StartVector(4, len(value), 4)
        for number in reversed(value):
            builder.PrependFloat32(number)
        return builder.EndVector()
    return _write_offsets(builder, [_write_value(builder, item) for item in value])


def _write_offsets(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _write_table(builder: flatbuffers.Builder, table: Table) -> int:
    # What a table refers to comes first: none may be written inside another.
    referred = {
        slot: _write_value(builder, value) for slot, value in table.items() if not isinstance(value, Byte | Uint)
    }
    builder.StartObject(max(table, default=-1) + 1)
    for slot, value in table.items():
        if isinstance(value, Byte):
            builder.PrependUint8Slot(slot, value, 0)
        elif isinstance(value, Uint):
            builder.PrependUint32Slot(slot, value, 0)
        else:
            builder.PrependUOffsetTRelativeSlot(slot, referred[slot], 0)
    return builder.EndObject()


def add_to_model(model: bytes, name: str, content: bytes) -> bytes:
    """A TFLite model with one more entry among its metadata; what was in it stays, byte by byte.

    References of a FlatBuffer lead forward. So a new root and new lists of buffers and metadata go before the old bytes
    and refer to the tables in them. These move by a multiple of `ALIGNMENT`, so that weights stay as aligned as they
    were.

    Args:
      model: a file's bytes, with no archive behind them.
      name: of the entry; one of that name is replaced.
      content: its bytes.
    """
    old = model + bytes(-len(model) % ALIGNMENT)
    root = flatbuffers.table.Table(model, number_types.UOffsetTFlags.py_type(_read_offset(model, 0)))
    builder = flatbuffers.Builder(len(old) + len(content) + 4096)
    builder.CreateByteVector(old)  # it ends where the file ends, and so does each of its tables count

    def refer(place: int) -> int:
        return len(old) - place

    builder.Prep(ALIGNMENT, len(content))
    added_buffer = _write_referring(builder, {_DATA: builder.CreateByteVector(content)})
    buffers = _list_tables(root, _BUFFERS)
    entries = [place for place in _list_tables(root, _METADATA) if _read_name(model, place) != name.encode()]
    entry_name = builder.CreateString(name)
    entry = _write_referring(builder, {_NAME: entry_name}, {_BUFFER: len(buffers)})
    fields = {
        _BUFFERS: _write_offsets(builder, [*map(refer, buffers), added_buffer]),
        _METADATA: _write_offsets(builder, [*map(refer, entries), entry]),
    }
    for slot in _REFERRED:
        if place := _find_field(root, slot):
            fields[slot] = refer(place + _read_offset(model, place))
    version = _find_field(root, _VERSION)
    numbers = {_VERSION: _read_offset(model, version) if version else 0}
    builder.Finish(_write_referring(builder, fields, numbers, _NUM_FIELDS), MODEL_IDENTIFIER)
    return bytes(builder.Output())


def _write_referring(
    builder: flatbuffers.Builder, offsets: Mapping[int, int], numbers: Mapping[int, int] | None = None, size: int = 2
) -> int:
    """A table of what is written already and of numbers of four bytes, by the numbers of the fields."""
    builder.StartObject(size)
    for slot, offset in offsets.items():
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    for slot, number in (numbers or {}).items():
        builder.PrependUint32Slot(slot, number, 0)
    return builder.EndObject()


def _read_offset(content: bytes, place: int) -> int:
    return int.from_bytes(content[place : place + 4], "little")


def _find_field(table: flatbuffers.table.Table, slot: int) -> int:
    """Where a field of a table is in the file; 0 if the table has none."""
    inside = table.Offset(4 + 2 * slot)
    return table.Pos + inside if inside else 0


def _list_tables(table: flatbuffers.table.Table, slot: int) -> list[int]:
    """Where the tables of a list are in the file."""
    field = _find_field(table, slot)
    if not field:
        return []
    start = field + _read_offset(table.Bytes, field)
    places = (start + 4 * (1 + i) for i in range(_read_offset(table.Bytes, start)))
    return [place + _read_offset(table.Bytes, place) for place in places]


def _read_name(content: bytes, place: int) -> bytes:
    entry = flatbuffers.table.Table(content, place)
    field = _find_field(entry, _NAME)
    return entry.String(field) if field else b""
