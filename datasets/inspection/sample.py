"""Some of the examples of a data set, with whose they are: all of small data, of large ones what a seed draws."""

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.client_source import TEST, TRAIN, VALIDATION, ClientSource
from datasets.example_format import ExampleFormat

MOST_EXAMPLES = 100_000
MOST_BYTES = 64 * 2**20
MOST_CLIENTS = 2000
SPLITS = (TRAIN, VALIDATION, TEST)


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """Examples of a data set.

    Attributes:
      format: of an example and its labels.
      client_names: of all clients; one, "", where the data name none.
      num_examples: of all clients, by split: int64, shape (clients,).
      x: the examples that were read, as stored, shape (examples, *input_shape).
      y: their labels.
      clients: whose each is, as a place in `client_names`; -1 for a test example of nobody.
      splits: where each is, as a place in `SPLITS`.
      num_clients_read: whose examples are here.
      is_whole: whether all examples are here.
    """

    format: ExampleFormat
    client_names: tuple[str, ...]
    num_examples: Mapping[str, np.ndarray]
    x: np.ndarray
    y: np.ndarray
    clients: np.ndarray
    splits: np.ndarray
    num_clients_read: int
    is_whole: bool

    @property
    def has_clients(self) -> bool:
        """Whether the data say whose the examples are."""
        return self.client_names != ("",)

    @property
    def is_flat(self) -> bool:
        """Whether an example is one row of features."""
        shape = self.format.input_shape
        return not self.format.takes_tokens and (len(shape) == 1 or (self.format.are_features and shape[1:] == (1,)))

    def choose(self, split: str) -> np.ndarray:
        """Which examples are of a split, a mask."""
        return self.splits == SPLITS.index(split)

    def count_features(self) -> int:
        """How many features an example has, or channels."""
        return self.x.shape[1] if self.is_flat else self.x.shape[-1]

    def take_column(self, place: int) -> np.ndarray:
        """The numbers of one feature in each example, or of one channel at each place, as stored."""
        return self.x.reshape(-1, self.count_features())[:, place]


def draw_sample(data: ArrayDataset | ClientSource, seed: int = 0) -> Sample:
    """The examples to look at.

    Raises:
      DatasetError: a client cannot be read.
    """
    if isinstance(data, ClientSource):
        return _draw_of_source(data, seed)
    names = data.client_names or ("",)
    whose = np.zeros(len(data.train_y), np.int64) if data.train_clients is None else data.train_clients
    has_nobodys = data.client_names is not None and data.test_clients is None
    whose_test = np.full(len(data.test_y), -1 if has_nobodys else 0) if data.test_clients is None else data.test_clients
    total, most = len(whose) + len(whose_test), _count_affordable(data.format)
    chosen = np.arange(total)
    if total > most:
        chosen = np.sort(np.random.default_rng([seed, 11]).choice(total, most, replace=False))
    train, test = chosen[chosen < len(whose)], chosen[chosen >= len(whose)] - len(whose)
    counts = {TRAIN: np.bincount(whose, minlength=len(names))}
    counts[TEST] = np.bincount(whose_test[whose_test >= 0], minlength=len(names))
    clients = np.concatenate([whose[train], whose_test[test]])
    return Sample(
        data.format,
        tuple(names),
        counts,
        np.concatenate([data.train_x[train], data.test_x[test]]),
        np.concatenate([data.train_y[train], data.test_y[test]]),
        clients,
        np.repeat([SPLITS.index(TRAIN), SPLITS.index(TEST)], [len(train), len(test)]),
        len(np.unique(clients[clients >= 0])),
        total <= most,
    )


def _count_affordable(example_format: ExampleFormat) -> int:
    num_bytes = math.prod(example_format.input_shape) * np.dtype(example_format.input_dtype).itemsize
    return max(1, min(MOST_EXAMPLES, MOST_BYTES // num_bytes))


def _draw_of_source(source: ClientSource, seed: int) -> Sample:
    counts = {split: np.asarray(source.num_examples[split]) for split in SPLITS if split in source.num_examples}
    of_clients = sum(counts.values())
    drawn = np.random.default_rng([seed, 11]).permutation(np.flatnonzero(of_clients))
    most = _count_affordable(source.format)
    enough = 1 + int(np.searchsorted(np.cumsum(of_clients[drawn]), most))
    chosen = np.sort(drawn[: min(enough, MOST_CLIENTS)])
    parts, whose, where = [], [], []
    for client in chosen.tolist():
        for split in (split for split, each in counts.items() if each[client]):
            x, y = (array[:most] for array in source.read(client, split))
            parts.append((x, y))
            whose.append(np.full(len(y), client))
            where.append(np.full(len(y), SPLITS.index(split)))
    x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Sample(
        source.format,
        source.client_names if source.has_clients else ("",),
        counts,
        x,
        y,
        np.concatenate(whose),
        np.concatenate(where),
        len(chosen),
        len(y) == int(of_clients.sum()),
    )
