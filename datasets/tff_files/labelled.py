"""Files of TFF's form whose data set is not known: a label, and the numbers or the image to tell it from.

They are read once into a store, since nothing says before how many classes there are. A feature of the name that
`--label_column` gives is the label, else one called label, labels, target, class or y. `--feature_columns` names what
it is told from, else an image or all other features of numbers, in the order of their names. Bytes are images in a file
format; numbers are an image where the feature is called image or pixels and their count is that of a square.
"""

import hashlib
import io
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from datasets.client_source import TRAIN, ClientSource
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.example_store import StoreWriter, open_or_write_store
from datasets.federated_data import Preprocessing
from datasets.tff_files.database import TffDatabase
from datasets.tff_files.example import Features, decode_example
from datasets.tff_files.records import get_number

LABEL_NAMES = ("label", "labels", "target", "class", "y")
IMAGE_NAMES = ("image", "pixels")
_READING_VERSION = 1
_MOST_CLASSES = 10_000
_ROWS_PER_APPEND = 512


def open_labelled(database: TffDatabase, parts: Mapping[str, str], options: DatasetOptions, name: str) -> ClientSource:
    """A file of examples with a label; see the module.

    Raises:
      DatasetError: there is no label or nothing to tell it from, or an example is of another form than the first.
    """
    split = next(split for split, part in parts.items() if part == TRAIN)
    first = decode_example(database.fetch_first(split, 1)[0])
    label = _find_label(database, first, options)
    inputs = _find_inputs(database, first, label, options)
    reader = _Reader(label, inputs, first, options)
    how = ["labelled", _READING_VERSION, database.digest, dict(parts), label, inputs, options.image_size]
    digest = hashlib.sha256(json.dumps([*how, options.image_colour], sort_keys=True).encode()).hexdigest()
    store = open_or_write_store(digest, lambda writer: _write(database, parts, reader, writer))
    facts = store.facts
    return ClientSource(
        name,
        ExampleFormat(
            tuple(facts["shape"]),
            facts["dtype"],
            tuple(str(each) for each in range(max(2, facts["most"] + 1))),
            Preprocessing(1 / 255, feature_range=(0.0, 1.0)) if facts["dtype"] == "uint8" else Preprocessing(),
        ),
        store.client_names,
        store.num_examples,
        store.read,
        digest,
        notes=(f"the label is {label}, told from {', '.join(inputs)}",),
    )


def _find_label(database: TffDatabase, first: Features, options: DatasetOptions) -> str:
    if options.label_column:
        if options.label_column not in first:
            raise DatasetError(
                f"label_column={options.label_column}: {database.source} has the features {', '.join(sorted(first))}"
            )
        return options.label_column
    found = next((name for name in LABEL_NAMES if name in first), None)
    if found is None:
        raise DatasetError(
            f"{database.source}: its examples have the features {', '.join(sorted(first))}, of no form that is known; "
            "name the label by --label_column"
        )
    return found


def _find_inputs(database: TffDatabase, first: Features, label: str, options: DatasetOptions) -> list[str]:
    if options.feature_columns:
        names = [name.strip() for name in options.feature_columns.split(",") if name.strip()]
        if missing := [name for name in names if name not in first or name == label]:
            raise DatasetError(f"feature_columns: {database.source} has no feature {missing[0]} beside the label")
        return names
    image = next((name for name in IMAGE_NAMES if name in first), None)
    if image is not None:
        return [image]
    names = [name for name in sorted(first) if name != label and isinstance(first[name], np.ndarray)]
    if not names:
        raise DatasetError(f"{database.source}: no feature of numbers beside {label}, expected some to tell it from")
    return names


class _Reader:
    """Makes an array of an example's features."""

    def __init__(self, label: str, inputs: list[str], first: Features, options: DatasetOptions):
        self.label, self.inputs = label, inputs
        self._options = options
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
            return self._open_image(features[self.inputs[0]]), label
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

    def _open_image(self, values: Any) -> np.ndarray:
        import PIL.Image

        if isinstance(values, np.ndarray) or len(values) != 1:
            raise ValueError("an image is not one text of bytes, as in the first")
        try:
            with PIL.Image.open(io.BytesIO(values[0])) as image:
                colour = {"grey": "L", "colour": "RGB"}.get(self._options.image_colour)
                image = image.convert(colour or ("L" if image.mode in ("1", "L", "I;16") else "RGB"))
                size = self._options.image_size
                image = image.resize((size, size)) if size else image
                return np.asarray(image).reshape(*image.size[::-1], -1)
        except (OSError, SyntaxError, PIL.Image.DecompressionBombError) as error:
            raise ValueError(f"an image is damaged, or of no format that is known ({error})") from None


def _write(database: TffDatabase, parts: Mapping[str, str], reader: _Reader, writer: StoreWriter) -> Mapping[str, Any]:
    rows: dict[str, list[tuple[str, np.ndarray, int]]] = {part: [] for part in parts.values()}
    shape: tuple[int, ...] | None = None
    most, dtype = 0, ""

    def hand_over(part: str) -> None:
        if rows[part]:
            clients, x, y = zip(*rows[part], strict=True)
            writer.append(np.stack(x), np.array(y, np.int32), clients, part)
            rows[part] = []

    for split, client, record in database.iterate(parts):
        try:
            x, label = reader.read(record)
            if shape is None:
                shape, dtype = x.shape, x.dtype.name
            if x.shape != shape:
                raise ValueError(f"an example has shape {x.shape}, expected {shape} as the first")
        except (ValueError, KeyError) as error:
            reason = f"no feature {error}" if isinstance(error, KeyError) else error
            raise DatasetError(f"{database.source}: client {client!r} in split {split}: {reason}") from None
        most = max(most, label)
        rows[parts[split]].append((client, x, label))
        if len(rows[parts[split]]) >= _ROWS_PER_APPEND:
            hand_over(parts[split])
    for part in rows:
        hand_over(part)
    return {"shape": shape, "dtype": dtype, "most": most}
