"""TFLite Metadata: what a model and its tensors are, inside the file, where other people's tools look for it.

https://github.com/tensorflow/tflite-support/blob/v0.4.4/tensorflow_lite_support/metadata/metadata_schema.fbs is the
schema; the numbers of its fields are below. Associated files, such as the labels, lie in the zip archive after the
model (see `embedded_card`).

A FlatBuffer without code made from its schema: a table is a mapping from the number of a field to a value: text, a
table, a list of texts, tables or floats, a `Byte` or a `Uint`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import flatbuffers
import numpy as np

Table = Mapping[int, Any]

ENTRY = "TFLITE_METADATA"
IDENTIFIER = b"M001"
LEAST_PARSER = "1.0.1"  # the version of the schema that has all that is written here
NO_TYPE, LABELS, VOCABULARY = 0, 2, 5  # of an associated file: UNKNOWN, TENSOR_AXIS_LABELS, VOCABULARY
COLOR_SPACES = {3: 1, 1: 2}  # by the number of channels: RGB, GRAYSCALE
FEATURE, IMAGE = 1, 2  # of the union ContentProperties
NORMALIZATION = 1  # of the union ProcessUnitOptions


class Byte(int):
    """A field of one byte, such as an enumeration or the kind of a union."""


class Uint(int):
    """A field of four bytes without a sign."""


class AssociatedFile(NamedTuple):
    """A file in the archive after the model: its type is one of NO_TYPE, LABELS of a tensor's last axis, VOCABULARY."""

    name: str
    description: str
    type: int = NO_TYPE


class TensorNote(NamedTuple):
    """An input or output.

    Attributes:
      name: such as "features".
      description: in words.
      dimensions: a name for each axis, that of the batch first.
      image: (height, width, channels) of a picture; None of others.
      mean: of the preprocessing (x - mean) / deviation, which is not part of the model.
      deviation: None: no preprocessing.
      lowest: of the tensor's values after the preprocessing: one, or one a feature; () if unknown.
      highest: likewise.
      files: such as the labels of its last axis.
    """

    name: str
    description: str
    dimensions: tuple[str, ...]
    image: tuple[int, int, int] | None = None
    mean: float = 0.0
    deviation: float | None = None
    lowest: Sequence[float] = ()
    highest: Sequence[float] = ()
    files: tuple[AssociatedFile, ...] = ()


class ModelNote(NamedTuple):
    """A file: the texts about it, its only input and output (None if it has several signatures), further files."""

    name: str
    description: str
    version: str
    licence: str
    input: TensorNote | None
    output: TensorNote | None
    files: tuple[AssociatedFile, ...] = ()


def add_metadata(model: bytes, note: ModelNote) -> bytes:
    """A TFLite model with this metadata in it; it computes what it did."""
    from tensorflow.lite.python import schema_py_generated as schema  # not needed to write the metadata alone
    from tensorflow.lite.tools import flatbuffer_utils

    parts = flatbuffer_utils.convert_bytearray_to_object(bytearray(model))
    buffer, entry = schema.BufferT(), schema.MetadataT()
    buffer.data = np.frombuffer(write_metadata(note), np.uint8)
    entry.name, entry.buffer = ENTRY, len(parts.buffers)
    parts.buffers.append(buffer)
    parts.metadata = [*(parts.metadata or ()), entry]
    return bytes(flatbuffer_utils.convert_object_to_bytearray(parts))


def write_metadata(note: ModelNote) -> bytes:
    """The FlatBuffer of a ModelMetadata."""
    tensors = {2: [_tabulate_tensor(note.input)], 3: [_tabulate_tensor(note.output)]} if note.input else {}
    texts = {0: note.name, 1: note.description, 2: note.version, 5: note.licence, 7: LEAST_PARSER}
    model = {**texts, 3: [tensors] if tensors else [], 6: [_tabulate_file(file) for file in note.files]}
    builder = flatbuffers.Builder(1024)
    builder.Finish(_write_value(builder, _drop_empty(model)), IDENTIFIER)
    return bytes(builder.Output())


def _tabulate_tensor(note: TensorNote) -> Table:
    content = {0: Byte(FEATURE), 1: {}}
    if note.image is not None:
        height, width, channels = note.image
        properties = {0: Byte(COLOR_SPACES.get(channels, 0)), 1: {0: Uint(width), 1: Uint(height)}}
        content = {0: Byte(IMAGE), 1: properties}
    units = []
    if note.deviation is not None:
        units = [{0: Byte(NORMALIZATION), 1: {0: [float(note.mean)], 1: [float(note.deviation)]}}]
    statistics = _drop_empty({0: list(map(float, note.highest)), 1: list(map(float, note.lowest))})
    files = [_tabulate_file(file) for file in note.files]
    texts = {0: note.name, 1: note.description, 2: list(note.dimensions), 3: content}
    return _drop_empty({**texts, 4: units, 5: statistics, 6: files})


def _tabulate_file(file: AssociatedFile) -> Table:
    return {0: file.name, 1: file.description, 2: Byte(file.type)}


def _drop_empty(table: dict[int, Any]) -> Table:
    """The table without fields that hold nothing."""
    return {slot: value for slot, value in table.items() if value or isinstance(value, Byte | Uint)}


def _write_value(builder: flatbuffers.Builder, value: Any) -> int:
    """Writes text, a table or a list and returns where it is."""
    if isinstance(value, str):
        return builder.CreateString(value)
    if isinstance(value, Mapping):
        return _write_table(builder, value)
    if value and isinstance(value[0], float):
        builder.StartVector(4, len(value), 4)
        # A FlatBuffer is written from its end to its start.
        for number in reversed(value):
            builder.PrependFloat32(number)
        return builder.EndVector()
    offsets = [_write_value(builder, item) for item in value]
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
