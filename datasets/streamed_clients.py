"""The files of a source's clients, each client's written when somebody asks for them.

The folder is an entry of the cache like any other, but its index names no clients: they come one by one, over
several runs. A client's files count if their sums are right; each file gets its name when it is complete, so no lock
is needed.
"""

import dataclasses
import os
from collections.abc import Mapping

import numpy as np

from datasets.client_files import (
    SUFFIXES,
    WEIGHTS_SUFFIX,
    explain_write_errors,
    get_client_prefix,
    is_client_whole,
    write_client,
)
from datasets.client_source import TEST, TRAIN, VALIDATION, ClientSource
from datasets.errors import DatasetError
from datasets.federated_data import SPLITS
from datasets.partition_settings import PartitionSettings
from datasets.splits import count_drawn, split_client

CACHE_BYTES = 256 * 2**20  # of examples that were read once, kept in memory: the same clients are evaluated every round

Examples = tuple[np.ndarray, np.ndarray]


class StreamedClients:
    """Reads and writes a source's clients by their index in the source.

    Attributes:
      num_examples: of each split, int64, shape (clients,): what of a client's examples goes where.
    """

    def __init__(self, source: ClientSource, settings: PartitionSettings, entry: str):
        self._source, self._entry = source, entry
        self._written: set[int] = set()
        self._cache: dict[tuple[int, str], Examples] = {}
        self._cached_bytes = 0
        # What the data have of their own is not drawn.
        own = {split: source.num_examples.get(split) for split in (VALIDATION, TEST)}
        own = {split: counts for split, counts in own.items() if counts is not None and counts.any()}
        drawn = {f"{split}_fraction": 0.0 for split in own}
        self._settings = dataclasses.replace(settings, **drawn)
        self._own = own
        self.num_examples: Mapping[str, np.ndarray] = count_drawn(source.num_examples[TRAIN], self._settings) | own

    def get_place(self, client: int) -> str:
        """The start of a client's file names, whether they are there or not."""
        return os.path.join(self._entry, get_client_prefix(client))

    def write(self, client: int) -> None:
        """Writes a client's files unless they are there.

        Raises:
          DatasetError: they cannot be written, or the source cannot be read.
        """
        if client in self._written:
            return
        place = self.get_place(client)
        if not is_client_whole(place):
            parts = self._read_parts(client)
            arrays = [array for split in SPLITS for array in parts[split]]
            files = dict(zip(SUFFIXES, arrays, strict=True))
            if self._source.weights is not None:
                files[WEIGHTS_SUFFIX] = self.read_weights(client)
            contents = {suffix: np.ascontiguousarray(array).tobytes() for suffix, array in files.items()}
            with explain_write_errors(os.path.dirname(self._entry)):
                write_client(place, contents)
        self._written.add(client)

    def read(self, client: int, split: str) -> Examples:
        """A client's examples of one split, as stored; the files are not needed for it."""
        found = self._cache.get((client, split))
        if found is not None:
            return found
        own = split in self._own
        examples = self._source.read(client, split) if own else self._read_parts(client)[split]
        num_bytes = sum(array.nbytes for array in examples)
        if self._cached_bytes + num_bytes <= CACHE_BYTES:
            self._cache[client, split] = examples
            self._cached_bytes += num_bytes
        return examples

    def read_weights(self, client: int) -> np.ndarray:
        """The weights of a client's train split, of a source that has them: float32 (examples,)."""
        weights = self._source.weights.read(client, TRAIN)
        return weights[self._split(client, len(weights))[TRAIN]]

    def _split(self, client: int, num_examples: int) -> dict[str, np.ndarray]:
        """What of a client's train part goes where."""
        return split_client(np.arange(num_examples), client, self._settings, self._source.is_ordered_by_time)

    def _read_parts(self, client: int) -> dict[str, Examples]:
        x, y = self._source.read(client, TRAIN)
        parts = {split: (x[rows], y[rows]) for split, rows in self._split(client, len(y)).items()}
        for split in self._own:
            parts[split] = self._source.read(client, split)
        for split, (_, labels) in parts.items():
            if len(labels) != self.num_examples[split][client]:
                name = self._source.client_names[client]
                raise DatasetError(
                    f"{self._source.name}: client {name} has {len(labels)} examples for {split}, but "
                    f"{self.num_examples[split][client]} were counted; the file has changed, or counts wrongly"
                )
        return parts
