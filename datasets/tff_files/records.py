"""Clients whose examples are read from TensorFlow Federated's files when they are asked for, a record an example.

These go into no store: SQLite finds a client's records by an index of its own, so that the file is one already. Stack
Overflow has 135 million records, of which a run reads those of its cohorts.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from datasets.client_source import ClientSource
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.tff_files.database import TffDatabase, arrange_counts
from datasets.tff_files.example import Features, decode_example
from files.digests import compute_source_digest

_READING_VERSION = 1


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
    """A file of which each record is an example of a form that is known.

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

    identity = [_READING_VERSION, database.digest, dict(parts), dict(prefixes), decoder.features, decoder.identity]
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
