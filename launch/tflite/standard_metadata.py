"""TFLite Metadata: what a model and its tensors are, inside the file, where other people's tools look for it.

https://github.com/tensorflow/tflite-support/blob/v0.4.4/tensorflow_lite_support/metadata/metadata_schema.fbs is the
schema; the numbers of its fields are below. Associated files, such as the labels, lie in the zip archive after the
model (see `embedded_card`). Imports no TensorFlow.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from launch.tflite.flat_tables import Byte, Table, Uint, add_to_model, write_tables

ENTRY = "TFLITE_METADATA"
IDENTIFIER = b"M001"
LEAST_PARSER = "1.0.1"  # the version of the schema that has all that is written here
NO_TYPE, LABELS, VOCABULARY = 0, 2, 5  # of an associated file: UNKNOWN, TENSOR_AXIS_LABELS, VOCABULARY
COLOR_SPACES = {3: 1, 1: 2}  # by the number of channels: RGB, GRAYSCALE
FEATURE, IMAGE = 1, 2  # of the union ContentProperties
NORMALIZATION = 1  # of the union ProcessUnitOptions


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
    return add_to_model(model, ENTRY, write_metadata(note))


def write_metadata(note: ModelNote) -> bytes:
    """The FlatBuffer of a ModelMetadata."""
    return write_tables(_tabulate_model(note), IDENTIFIER)


def _tabulate_model(note: ModelNote) -> Table:
    tensors = {2: [_tabulate_tensor(note.input)], 3: [_tabulate_tensor(note.output)]} if note.input else {}
    texts = {0: note.name, 1: note.description, 2: note.version, 5: note.licence, 7: LEAST_PARSER}
    return _drop_empty({**texts, 3: [tensors] if tensors else [], 6: [_tabulate_file(file) for file in note.files]})


def _tabulate_tensor(note: TensorNote) -> Table:
    units = []
    if note.deviation is not None:
        units = [{0: Byte(NORMALIZATION), 1: {0: [float(note.mean)], 1: [float(note.deviation)]}}]
    statistics = _drop_empty({0: list(map(float, note.highest)), 1: list(map(float, note.lowest))})
    files = [_tabulate_file(file) for file in note.files]
    texts = {0: note.name, 1: note.description, 2: list(note.dimensions), 3: _tabulate_content(note)}
    return _drop_empty({**texts, 4: units, 5: statistics, 6: files})


def _tabulate_content(note: TensorNote) -> Table:
    if note.image is None:
        return {0: Byte(FEATURE), 1: {}}
    height, width, channels = note.image
    properties = {0: Byte(COLOR_SPACES.get(channels, 0)), 1: {0: Uint(width), 1: Uint(height)}}
    return {0: Byte(IMAGE), 1: properties}


def _tabulate_file(file: AssociatedFile) -> Table:
    return {0: file.name, 1: file.description, 2: Byte(file.type)}


def _drop_empty(table: dict[int, Any]) -> Table:
    """The table without fields that hold nothing."""
    return {slot: value for slot, value in table.items() if value or isinstance(value, Byte | Uint)}
