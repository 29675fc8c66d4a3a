"""TensorFlow Federated's SQLite files, packed or not: what their examples are is told from the first of them.

Where a record is an example of a known schema, clients are read when they are asked for: SQLite finds a client's
records by an index of its own, so that the file is a store already. Stack Overflow has 135 million records, of which a
run reads those of its cohorts. Text is cut into sequences of characters, and goes into a store.

Of other files a feature of the name that `--label_column` gives is the label, else one called label, labels, target,
class or y. They are read once into a store, since nothing says before how many classes there are. `--feature_columns`
names what the label is told from, else an image or all other features of numbers but those of `--drop_columns`, in the
order of their names. Bytes are images in a file format; numbers are an image where the feature is called image or
pixels and their count is that of a square.
"""

import io
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.character_text import choose_character_format, cut_into_sequences
from datasets.client_source import TEST, TRAIN, VALIDATION, ClientSource
from datasets.dataset import OF_TABLES_ALONE, DatasetOptions, refuse_options, resolve_reference
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.file_formats import FileFormat, name_data
from datasets.image_pixels import ImageLayout, read_image
from datasets.options import split_names
from datasets.stored_source import Description, Reading, StoreWriter, open_reading, show_progress
from datasets.tff_database import Features, TffDatabase, arrange_counts, decode_example, starts_as_sqlite
from files.digests import compute_source_digest

_RECORDS_VERSION = 1


class Decoder(NamedTuple):
    """How a record becomes an example.

    Attributes:
      features: that are read.
      decode: (features) -> (x, y) of `ExampleFormat`. It raises ValueError, in words, or KeyError for a feature that is
        missing.
      identity: what distinguishes it from other decoders of these features, as JSON can hold it.
    """

    features: tuple[str, ...]
    decode: Callable[[Features], tuple[np.ndarray, Any]]
    identity: Any


def open_records(
    database: TffDatabase,
    parts: Mapping[str, str],
    name: str,
    example_format: ExampleFormat,
    decoder: Decoder,
    reading: str = "",
    notes: tuple[str, ...] = (),
    prefixes: Mapping[str, str] | None = None,
) -> ClientSource:
    """A file of which each record is an example of a known schema.

    Args:
      database: the file.
      parts: split of the file -> "train", "validation" or "test".
      name: of the data set.
      example_format: of its examples.
      decoder: of its records.
      reading: see `ClientSource`.
      notes: see there.
      prefixes: part -> what is put before the names of its clients, where they are others than those of the same names
        in the train split.
    """
    prefixes = prefixes or {}
    found = database.count_examples()
    counts = {
        part: {prefixes.get(part, "") + client: number for client, number in found[split].items()}
        for split, part in parts.items()
    }
    names, arrays = arrange_counts(counts)
    splits = {part: (split, prefixes.get(part, "")) for split, part in parts.items()}

    def read(client: int, part: str) -> tuple[np.ndarray, np.ndarray]:
        number, labels = int(arrays[part][client]), example_format.labels
        split, prefix = splits[part]
        name = names[client].removeprefix(prefix)
        records = database.fetch(name, split) if number else []
        if len(records) != number:
            raise DatasetError(
                f"{database.source}: client_metadata says that client {name!r} has {number} examples in split "
                f"{split}, there are {len(records)}"
            )
        x = np.empty((number, *example_format.input_shape), example_format.input_dtype)
        y = np.empty((number, *labels.shape), labels.dtype)
        for row, record in enumerate(records):
            try:
                x[row], y[row] = decoder.decode(decode_example(record, decoder.features))
            except (ValueError, KeyError, TypeError, OverflowError) as error:
                reason = f"it has no feature {error}" if isinstance(error, KeyError) else error
                raise DatasetError(
                    f"{database.source}: example {row} (from 0) of client {name!r} in split {split}: {reason}"
                ) from None
        return x, y

    identity = [_RECORDS_VERSION, database.digest, dict(parts), dict(prefixes), decoder.features, decoder.identity]
    digest = compute_source_digest((), identity)
    return ClientSource(name, example_format, names, arrays, read, digest, reading=reading, notes=notes)


def get_number(features: Features, name: str) -> int:
    """The only whole number of a feature.

    Raises:
      KeyError: there is no such feature.
      ValueError: it is no whole number, or several.
    """
    values = features[name]
    if not isinstance(values, np.ndarray) or values.dtype != np.int64 or len(values) != 1:
        raise ValueError(f"{name} is not one whole number")
    return int(values[0])


def get_class(features: Features, name: str, num_classes: int, hint: str = "") -> int:
    """A label below `num_classes`; `hint` ends the error. Raises as `get_number`."""
    label = get_number(features, name)
    if not 0 <= label < num_classes:
        raise ValueError(f"{name} is {label}, expected 0..{num_classes - 1}{hint}")
    return label


def get_text(features: Features, name: str) -> bytes:
    """The only text of a feature. Raises as `get_number`."""
    values = features[name]
    if isinstance(values, np.ndarray) or len(values) != 1:
        raise ValueError(f"{name} is not one text")
    return values[0]


_TEXT_VERSION = 1


def open_snippets(
    database: TffDatabase, parts: Mapping[str, str], options: DatasetOptions, name: str, feature: str = "snippets"
) -> ClientSource:
    """A file of text as characters; see `datasets.character_text`.

    Args:
      database: the file.
      parts: split of the file -> "train", "validation" or "test".
      options: how long a sequence is.
      name: of the data set.
      feature: of an example, its text.

    Raises:
      DatasetError: an example has no such text, or a client has another number of examples than the file says.
    """
    example_format = choose_character_format(options)
    length = example_format.input_shape[0]
    how = [_TEXT_VERSION, database.digest, dict(parts), feature, length]

    def write(writer: StoreWriter) -> Description:
        found: Counter[tuple[str, str]] = Counter()
        for split, client, record in show_progress(database.iterate(parts), "snippets"):
            try:
                (text,) = decode_example(record, [feature])[feature]
                rows = cut_into_sequences(text, length)
            except (KeyError, ValueError, TypeError):
                raise DatasetError(
                    f"{database.source}: an example of client {client!r} in split {split} has no text {feature}"
                ) from None
            found[split, client] += 1
            writer.append(rows[:, :-1], rows[:, 1:], client, parts[split])
        counts = database.count_examples()
        counted = {(split, client) for split in parts for client in counts[split]}
        for split, client in sorted(counted | found.keys()):
            number = counts[split].get(client, 0)
            if number != found[split, client]:
                raise DatasetError(
                    f"{database.source}: client_metadata says that client {client!r} has {number} examples in split "
                    f"{split}, there are {found[split, client]}"
                )
        reading = f"text in sequences of {length} characters, of which the next one is predicted"
        return Description(example_format, reading=reading)

    return open_reading(Reading(name, database.source, (), how, write))


LABEL_NAMES = ("label", "labels", "target", "class", "y")
IMAGE_NAMES = ("image", "pixels")
_LABELLED_VERSION = 1
_MOST_CLASSES = 10_000


def open_labelled(database: TffDatabase, parts: Mapping[str, str], options: DatasetOptions, name: str) -> ClientSource:
    """A file of examples with a label; see the module.

    Raises:
      DatasetError: there is no label or nothing to tell it from, or an example is of another schema than the first.
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
    inputs, dropped = (split_names(names or "") for names in (options.feature_columns, options.drop_columns))
    for flag, names in (("feature_columns", inputs), ("drop_columns", dropped)):
        if missing := [name for name in names if name not in first or name == label]:
            raise DatasetError(f"{flag}: {database.source} has no feature {missing[0]} beside the label")
    if twice := set(inputs) & set(dropped):
        raise DatasetError(
            f"{database.source}: {min(twice)} stands in --feature_columns and in --drop_columns, expected one use of it"
        )
    if image and not inputs and image not in dropped:
        inputs = (image,)
    elif not inputs:
        inputs = tuple(
            name for name in sorted(first) if name not in (label, *dropped) and isinstance(first[name], np.ndarray)
        )
    if not inputs:
        raise DatasetError(f"{database.source}: no feature of numbers beside {label}, expected some to tell it from")
    reader = _Reader(label, inputs, first, options)
    how = ["labelled", _LABELLED_VERSION, database.digest, dict(parts), label, list(inputs)]
    how += [options.image_size, options.image_colour]
    return open_reading(Reading(name, database.source, (), how, lambda writer: _write(database, parts, reader, writer)))


class _Reader:
    """Makes an array of an example's features."""

    def __init__(self, label: str, inputs: Sequence[str], first: Features, options: DatasetOptions):
        self.label, self.inputs = label, inputs
        self._images = ImageLayout(options.image_size, options.image_colour, is_published=True)
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


# How splits are called in files of TFF and of others.
_PARTS = {
    TRAIN: ("train", "training"),
    VALIDATION: ("heldout", "held_out", "validation", "valid", "val", "dev"),
    TEST: ("test", "testing"),
}
PART_OF_SPLIT = {split: part for part, splits in _PARTS.items() for split in splits}


class Schema(NamedTuple):
    """Examples of a known schema: the features that tell them, and "module:function" that opens a file of them.

    The function is (TffDatabase, {split of the file: part}, DatasetOptions, name) -> ClientSource.
    """

    features: frozenset[str]
    open: str


# By the data set that is known by them; the first that fits is it.
_SCHEMATA = {
    "shakespeare": Schema(frozenset({"snippets"}), "datasets.formats.tff:open_snippets"),
    "emnist": Schema(frozenset({"pixels", "label"}), "datasets.emnist:open_emnist"),
    "cifar100": Schema(frozenset({"coarse_label", "image", "label"}), "datasets.cifar:open_cifar100"),
    "stackoverflow": Schema(frozenset({"tokens", "title", "tags"}), "datasets.stackoverflow:open_stackoverflow"),
}
# TFF's file of EMNIST holds two data sets.
_EMNIST_PREFIXES = {"digits": "digits_only_", "all": "all_"}


def is_tff(path: str) -> bool:
    """Whether it is an SQLite file, packed or not."""
    return os.path.isfile(path) and starts_as_sqlite(path)


def open_tff(path: str, options: DatasetOptions, name: str = "", schema: str = "") -> ClientSource:
    """The clients of a file; see `ClientSource`.

    Args:
      path: of the .sqlite or .sqlite.lzma file.
      options: how it is read.
      name: of the data set; "" is the file's.
      schema: of its examples, a name of `_SCHEMATA`; "" for any.

    Raises:
      DatasetError: it is damaged, has not TFF's tables, or its examples are of no known schema or of another.
    """
    database = TffDatabase(path)
    refuse_options(path, "TFF's SQLite", options, *OF_TABLES_ALONE)
    parts = find_parts(database, options)
    names = find_features(database, next(split for split, part in parts.items() if part == TRAIN))
    found = next((each for each, schema in _SCHEMATA.items() if schema.features <= names), None)
    if options.label_column or options.feature_columns or options.drop_columns:
        # Who names features means them, whatever the data set.
        found = None
    if schema not in ("", found):
        raise DatasetError(
            f"{path}: its examples have the features {', '.join(sorted(names))}, expected those of {schema}"
        )
    if found is None:
        return open_labelled(database, parts, options, name or name_data(path))
    return resolve_reference(_SCHEMATA[found].open)(database, parts, options, name or name_data(path))


def find_parts(database: TffDatabase, options: DatasetOptions) -> Mapping[str, str]:
    """Split of the file -> part; the only split of a file is trained on, whatever its name.

    Raises:
      DatasetError: the file has no split to train on, or one that cannot be told.
    """
    splits = database.count_examples()
    if any(split.startswith(tuple(_EMNIST_PREFIXES.values())) for split in splits):
        prefix = _EMNIST_PREFIXES[options.emnist_labels]
        splits = [split for split in splits if split.startswith(prefix)]
        found = {split: PART_OF_SPLIT.get(split.removeprefix(prefix), "") for split in splits}
        if TRAIN not in found.values() or "" in found.values():
            raise DatasetError(f"{database.source}: splits {', '.join(sorted(splits))}, expected {prefix}train")
        return found
    # TFF's own writer calls it "default_split".
    if len(splits) == 1:
        return dict.fromkeys(splits, TRAIN)
    if unknown := sorted(set(splits) - set(PART_OF_SPLIT)):
        raise DatasetError(f"{database.source}: split {unknown[0]!r}, expected train, heldout and test")
    if TRAIN not in map(PART_OF_SPLIT.get, splits):
        raise DatasetError(f"{database.source}: splits {', '.join(sorted(splits))}, expected one called train")
    return {split: PART_OF_SPLIT[split] for split in splits}


def find_features(database: TffDatabase, split: str) -> frozenset[str]:
    """The names of the features of the first examples.

    Raises:
      DatasetError: they are no examples.
    """
    # Of optional features the first example may lack some.
    names: set[str] = set()
    for record in database.fetch_first(split, 20):
        try:
            names |= decode_example(record).keys()
        except ValueError as error:
            raise DatasetError(f"{database.source}: the first examples of split {split} are damaged: {error}") from None
    return frozenset(names)


FORMAT = FileFormat("TensorFlow Federated's SQLite", is_tff, open_tff, rank=20)
