"""Files of TFF's form whose data set is not known: a label, and the numbers or the image to tell it from.

They are read once into a store, since nothing says before how many classes there are. A feature of the name that
`--label_column` gives is the label, else one called label, labels, target, class or y. `--feature_columns` names what
it is told from, else an image or all other features of numbers, in the order of their names. Bytes are images in a file
format; numbers are an image where the feature is called image or pixels and their count is that of a square.
"""

import io
import math
from collections.abc import Mapping

import numpy as np

from datasets.client_source import TRAIN, ClientSource
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.example_store import StoreWriter
from datasets.image_pixels import ImageForm, read_image
from datasets.progress import show_progress
from datasets.stored_source import Description, Reading, open_reading
from datasets.tff_files.database import TffDatabase
from datasets.tff_files.example import Features, decode_example
from datasets.tff_files.records import get_number

LABEL_NAMES = ("label", "labels", "target", "class", "y")
IMAGE_NAMES = ("image", "pixels")
_READING_VERSION = 1
_MOST_CLASSES = 10_000


def open_labelled(database: TffDatabase, parts: Mapping[str, str], options: DatasetOptions, name: str) -> ClientSource:
    """A file of examples with a label; see the module.

    Raises:
      DatasetError: there is no label or nothing to tell it from, or an example is of another form than the first.
    """
    split = next(split for split, part in parts.items() if part == TRAIN)
    first = decode_example(database.fetch_first(split, 1)[0])
    features = f"the features {', '.join(sorted(first))}"
    label = options.label_column or next((name for name in LABEL_NAMES if name in first), "")
    if options.label_column and label not in first:
        raise DatasetError(f"label_column={label}: {database.source} has {features}")
    if not label:
        raise DatasetError(
            f"{database.source}: its examples have {features}, of no form that is known; name the label by "
            "--label_column"
        )
    image = next((name for name in IMAGE_NAMES if name in first), "")
    if options.feature_columns:
        inputs = [name.strip() for name in options.feature_columns.split(",") if name.strip()]
        if missing := [name for name in inputs if name not in first or name == label]:
            raise DatasetError(f"feature_columns: {database.source} has no feature {missing[0]} beside the label")
    elif image:
        inputs = [image]
    else:
        inputs = [name for name in sorted(first) if name != label and isinstance(first[name], np.ndarray)]
    if not inputs:
        raise DatasetError(f"{database.source}: no feature of numbers beside {label}, expected some to tell it from")
    reader = _Reader(label, inputs, first, options)
    how = ["labelled", _READING_VERSION, database.digest, dict(parts), label, inputs]
    how += [options.image_size, options.image_colour]
    return open_reading(Reading(name, database.source, (), how, lambda writer: _write(database, parts, reader, writer)))


class _Reader:
    """Makes an array of an example's features."""

    def __init__(self, label: str, inputs: list[str], first: Features, options: DatasetOptions):
        self.label, self.inputs = label, inputs
        self._images = ImageForm(options.image_size, options.image_colour, is_published=True)
        values = first[inputs[0]]
        self._is_file = not isinstance(values, np.ndarray)
        size = len(values)
        channels = next((each for each in (1, 3) if math.isqrt(size // each) ** 2 * each == size), 0)
        self._is_image = len(inputs) == 1 and inputs[0] in IMAGE_NAMES and bool(channels) and not self._is_file
        self._side, self._channels = math.isqrt(size // max(1, channels)), channels
        self._is_bytes = self._is_image and values.dtype == np.int64

    def read(self, record: bytes) -> tuple[np.ndarray, int]:
        """(x, label). Raises ValueError, in words, or KeyError."""
        features = decode_example(record, (self.label, *self.inputs))
        label = get_number(features, self.label)
        if not 0 <= label < _MOST_CLASSES:
            raise ValueError(f"{self.label} is {label}, expected whole numbers from 0")
        if self._is_file:
            values = features[self.inputs[0]]
            if isinstance(values, np.ndarray) or len(values) != 1:
                raise ValueError("an image is not one text of bytes, as in the first")
            return read_image(io.BytesIO(values[0]), "an image", self._images), label
        parts = [features[name] for name in self.inputs]
        if not all(isinstance(part, np.ndarray) for part in parts):
            raise ValueError("a feature is no list of numbers, as in the first")
        x = np.concatenate(parts)
        if self._is_image:
            x = x.reshape(self._side, self._side, self._channels)
        if self._is_bytes:
            if x.min() < 0 or x.max() > 255:
                raise ValueError("an image holds numbers that are not 0..255")
            return x.astype(np.uint8), label
        x = x.astype(np.float32)
        if not np.isfinite(x).all():
            raise ValueError("a number is NaN or infinite")
        return x, label


def _write(database: TffDatabase, parts: Mapping[str, str], reader: _Reader, writer: StoreWriter) -> Description:
    shape: tuple[int, ...] | None = None
    most = 0
    for split, client, record in show_progress(database.iterate(parts), "examples"):
        try:
            x, label = reader.read(record)
            shape = x.shape if shape is None else shape
            if x.shape != shape:
                raise ValueError(f"an example has shape {x.shape}, expected {shape} as the first")
        except (ValueError, KeyError) as error:
            reason = f"no feature {error}" if isinstance(error, KeyError) else error
            raise DatasetError(f"{database.source}: client {client!r} in split {split}: {reason}") from None
        most = max(most, label)
        writer.append(x[np.newaxis], np.array([label], np.int32), client, parts[split])
    is_uint8 = x.dtype == np.uint8
    example_format = ExampleFormat(
        shape,
        x.dtype.name,
        tuple(str(each) for each in range(max(2, most + 1))),
        Preprocessing(1 / 255, feature_range=(0.0, 1.0)) if is_uint8 else Preprocessing(),
    )
    return Description(example_format, notes=(f"the label is {reader.label}, told from {', '.join(reader.inputs)}",))
