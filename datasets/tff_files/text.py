"""Text in TensorFlow Federated's files: a snippet an example, read once into sequences of characters."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from datasets.character_text import choose_character_format, cut_into_sequences
from datasets.client_source import ClientSource
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_store import StoreWriter, open_or_write_store
from datasets.tff_files.database import TffDatabase
from datasets.tff_files.example import decode_example

_READING_VERSION = 1
_ROWS_PER_APPEND = 4096


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
    how = [_READING_VERSION, database.digest, dict(parts), feature, length]
    digest = hashlib.sha256(json.dumps(how, sort_keys=True).encode()).hexdigest()
    store = open_or_write_store(digest, lambda writer: _write(database, parts, feature, length, writer))

    def read(client: int, split: str) -> tuple[np.ndarray, np.ndarray]:
        sequences = store.read(client, split)[0].astype(np.int32)
        return sequences[:, :-1], sequences[:, 1:]

    return ClientSource(
        name,
        example_format,
        store.client_names,
        store.num_examples,
        read,
        digest,
        reading=f"text in sequences of {length} characters, of which the next one is predicted",
    )


def _write(
    database: TffDatabase, parts: Mapping[str, str], feature: str, length: int, writer: StoreWriter
) -> dict[str, Any]:
    """Hands all sequences to the writer; a client's stay in the order of the file."""
    found: Counter[tuple[str, str]] = Counter()
    waiting: dict[str, list[tuple[str, np.ndarray]]] = defaultdict(list)

    def hand_over(part: str) -> None:
        if rows := waiting.pop(part, []):
            sequences = np.concatenate([each for _, each in rows]).astype(np.uint8)  # there are fewer than 256 tokens
            clients = [client for client, each in rows for _ in each]
            writer.append(sequences, np.zeros((len(sequences), 0), np.uint8), clients, part)

    for split, client, record in database.iterate(parts):
        try:
            (text,) = decode_example(record, [feature])[feature]
            rows = cut_into_sequences(text, length)
        except (KeyError, ValueError, TypeError):
            raise DatasetError(
                f"{database.source}: an example of client {client!r} in split {split} has no text {feature}"
            ) from None
        found[split, client] += 1
        waiting[parts[split]].append((client, rows))
        if len(waiting[parts[split]]) >= _ROWS_PER_APPEND:
            hand_over(parts[split])
    for part in list(waiting):
        hand_over(part)
    _compare_counts(database, parts, found)
    return {}


def _compare_counts(database: TffDatabase, parts: Mapping[str, str], found: Counter) -> None:
    told = {(split, client): n for split, each in database.count_examples().items() for client, n in each.items()}
    told = {key: number for key, number in told.items() if key[0] in parts}
    for split, client in sorted(told.keys() | found.keys()):
        if told.get((split, client), 0) != found[split, client]:
            raise DatasetError(
                f"{database.source}: client_metadata says that client {client!r} has "
                f"{told.get((split, client), 0)} examples in split {split}, there are {found[split, client]}"
            )
