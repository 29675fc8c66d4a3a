"""Data that are read client by client: what a federation needs to know of them before a single example is read.

A source knows its clients and how many examples each has; a client's examples are read when somebody asks for them.
So a federation of hundreds of thousands of clients opens quickly, and only those that take part in a round are read.
A loader returns either a source or, where everything is in memory anyway, an `ArrayDataset`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from datasets.arrays import ArrayDataset, TrainWeights, hold_out_test_part, make_array_dataset
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.names import check_names
from datasets.npz_labels import standardise_labels

TRAIN, VALIDATION, TEST = "train", "validation", "test"
MOST_POOLED_BYTES = 8 * 2**30  # read into memory for a partition that mixes clients
OVERLAP_NOTE = (
    "windows overlap, and this partition deals them at random, so that validation and test windows share rows with "
    "windows that are trained on; give --window_step as long as --window"
)
HELD_OUT = 0.2  # of all examples, where clients are mixed and the data have no test part

ReadClient = Callable[[int, str], tuple[np.ndarray, np.ndarray]]


class SourceWeights(NamedTuple):
    """How much examples count in training.

    Attributes:
      column: of the data, that says it.
      read: (client index, split) -> the weight of each example that `ClientSource.read` gives, in that order: float32,
        shape (examples,), finite, at least 0. What it says of test examples counts nowhere.
    """

    column: str
    read: Callable[[int, str], np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class ClientSource:
    """A data set by its clients.

    Attributes:
      name: how reports call it.
      format: of its examples and labels. Where a regression has no offset and scale, those of the train splits are
        taken.
      client_names: in the order of their indices, all different, possibly any text; one, "", where the data name no
        clients.
      num_examples: for "train" and, where the data have such parts, "validation" and "test", the examples of each
        client: int64, shape (clients,).
      read: (client index, split) -> (x, y) as `ExampleFormat` says: x of shape (examples, *input_shape) in
        `input_dtype`, y of shape (examples, *labels.shape) in the dtype of the labels. In the order of the file, the
        same at each call. Only for splits of `num_examples`.
      digest: SHA-256 (hex) of the contents and of how they are read: what names the data in the cache of client files.
      has_clients: whether the data name clients; False: one client holds all, and only partitions that mix apply.
      is_ordered_by_time: whether a client's examples are in order of time, so that its splits are cut from the end.
      num_dropped: examples that were left out because a reading was missing.
      reading: how the examples were understood, in words.
      notes: what may have been meant otherwise, a line each.
      count_labels: () -> int64, shape (clients, classes), the labels of the train splits, where the labels are
        classes; None to read them client by client.
      filled: how many values were missing and are filled in, by column of a table.
      weights: how much examples count in training; None: all alike.
      overlap: how many examples after one still share something with it, of a client in order of time; where its train
        part is cut into splits, so many before each cut are left out.

    Raises:
      DatasetError: the counts do not fit the names, nobody has a train example, two clients have one name, a name holds
        a control character, or examples in no order overlap.
    """

    name: str
    format: ExampleFormat
    client_names: tuple[str, ...]
    num_examples: Mapping[str, np.ndarray]
    read: ReadClient
    digest: str
    has_clients: bool = True
    is_ordered_by_time: bool = False
    num_dropped: int = 0
    reading: str = ""
    notes: tuple[str, ...] = ()
    count_labels: Callable[[], np.ndarray] | None = None
    filled: Mapping[str, int] = dataclasses.field(default_factory=dict)
    weights: SourceWeights | None = None
    overlap: int = 0

    def __post_init__(self):
        check_names(self.name, "client", self.client_names)
        if len(set(self.client_names)) != len(self.client_names):
            twice = next(name for name in self.client_names if self.client_names.count(name) > 1)
            raise DatasetError(f"{self.name}: two clients are called {twice!r}, expected a name for each")
        if TRAIN not in self.num_examples or not set(self.num_examples) <= {TRAIN, VALIDATION, TEST}:
            raise DatasetError(f"{self.name}: parts {', '.join(self.num_examples)}, expected train, validation, test")
        for split, counts in self.num_examples.items():
            if counts.shape != (len(self.client_names),):
                raise DatasetError(f"{self.name}: {len(counts)} counts of {split} for {len(self.client_names)} clients")
        if not self.num_examples[TRAIN].any():
            raise DatasetError(f"{self.name}: nobody has an example to train on")
        if self.overlap and not self.is_ordered_by_time:
            raise DatasetError(f"{self.name}: overlap={self.overlap}, expected 0 of examples that are in no order")

    @property
    def has_tests(self) -> bool:
        """Whether the data say which examples are for the test."""
        return bool(TEST in self.num_examples and self.num_examples[TEST].any())

    def read_all(self, split: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(x, y, client index of each example) of one split of all clients, in their order.

        Raises:
          DatasetError: they are too large for that, or `read` fails.
        """
        counts = self.num_examples[split]
        total, shape = int(counts.sum()), self.format.input_shape
        num_bytes = total * int(np.prod(shape)) * np.dtype(self.format.input_dtype).itemsize
        if num_bytes > MOST_POOLED_BYTES:
            raise DatasetError(
                f"{self.name}: {num_bytes / 2**30:.1f} GB of examples, expected at most "
                f"{MOST_POOLED_BYTES / 2**30:.0f} GB to mix them; keep the data's own clients, by --partition=natural"
            )
        labels = self.format.labels
        x = np.empty((total, *shape), self.format.input_dtype)
        y = np.empty((total, *labels.shape), labels.dtype)
        # Filled row by row: to join the parts would take twice the memory.
        ends = np.cumsum(counts)
        for client in np.flatnonzero(counts):
            rows = slice(ends[client] - counts[client], ends[client])
            x[rows], y[rows] = self.read(int(client), split)
        return x, y, np.repeat(np.arange(len(counts)), counts)

    def read_all_weights(self, split: str) -> np.ndarray:
        """The weights of what `read_all` gives, of data that have them: float32, shape (examples,)."""
        assert self.weights is not None
        parts = [self.weights.read(int(client), split) for client in np.flatnonzero(self.num_examples[split])]
        return np.concatenate([np.zeros(0, np.float32), *parts])

    def pool(self, seed: int = 0) -> ArrayDataset:
        """All examples in memory, for partitions that mix the clients.

        The test part is that of the data, without one a stratified fifth that is drawn from `seed`. Validation
        examples of the data are trained on: such partitions draw their own. That examples overlap is noted.
        """
        x, y, clients = self.read_all(TRAIN)
        weights = None if self.weights is None else self.read_all_weights(TRAIN)
        if VALIDATION in self.num_examples and self.num_examples[VALIDATION].any():
            parts = zip((x, y, clients), self.read_all(VALIDATION), strict=True)
            x, y, clients = map(np.concatenate, parts)
            weights = None if weights is None else np.concatenate([weights, self.read_all_weights(VALIDATION)])
        if self.has_tests:
            train, test = (x, y), self.read_all(TEST)[:2]
        else:
            trained, held_out = hold_out_test_part(y, HELD_OUT, seed, clients if self.has_clients else None)
            if not len(held_out):
                raise DatasetError(
                    f"{self.name}: {len(y)} examples are too few to hold out a fifth of each class for the test; "
                    "expected a class with 3 or more, or rows that are marked as test rows"
                )
            train, test, clients = (x[trained], y[trained]), (x[held_out], y[held_out]), clients[trained]
            weights = None if weights is None else weights[trained]
        or_natural = ", or --partition=natural" if self.has_clients else ""
        notes = (*self.notes, OVERLAP_NOTE + or_natural) if self.overlap else self.notes
        return make_array_dataset(
            self.name,
            train,
            test,
            standardise_labels(self.format, train[1]),
            np.array(self.client_names)[clients] if self.has_clients else None,
            num_dropped=self.num_dropped,
            is_ordered_by_time=self.is_ordered_by_time,
            reading=self.reading,
            notes=notes,
            filled=self.filled,
            weights=TrainWeights(self.weights.column, weights) if self.weights and weights is not None else None,
        )
