"""The examples of a table that was written into a store: a row each, or a window of rows."""

import numpy as np

from datasets.client_source import TRAIN
from datasets.example_store import SPLIT_ORDER, ExampleStore, count_by_client, select_splits
from datasets.tables.windows import Windows


class TableExamples:
    """Reads the examples of a client.

    Attributes:
      num_examples: see `ClientSource`.
      shape: of an example: (features, 1), of a window (rows, features), else as it is stored.
    """

    def __init__(
        self, store: ExampleStore, windows: Windows | None, length: int, fills: list[float | None], is_block: bool
    ):
        self._store, self._windows, self._length, self._is_block = store, windows, length, is_block
        self._fills = np.array([np.nan if fill is None else fill for fill in fills], np.float32)
        self.num_examples = store.num_examples
        self.shape = tuple(store.x.shape[1:]) if is_block else (*store.x.shape[1:], 1)
        if windows is not None:
            self.shape = (length, *store.x.shape[1:])
            groups = windows.clients * len(SPLIT_ORDER) + windows.splits
            counts = np.bincount(groups, minlength=len(store.client_names) * len(SPLIT_ORDER))
            self._ends = np.cumsum(counts)
            self.num_examples = select_splits(counts.reshape(-1, len(SPLIT_ORDER)))

    def read(self, client: int, split: str) -> tuple[np.ndarray, np.ndarray]:
        """See `ClientSource.read`."""
        if self._windows is None:
            x, y = self._store.read(client, split)
            return (x if self._is_block else self._fill(x)[..., np.newaxis]), y
        group = client * len(SPLIT_ORDER) + SPLIT_ORDER.index(split)
        starts = self._windows.starts[self._ends[group - 1] if group else 0 : self._ends[group]]
        rows = self._windows.order[starts[:, np.newaxis] + np.arange(self._length)]
        return self._fill(np.array(self._store.x[rows])), np.array(self._store.y[rows[:, -1]])

    def _fill(self, x: np.ndarray) -> np.ndarray:
        if not len(self._fills):
            return x
        return np.where(np.isnan(x), self._fills, x)

    def count_labels(self, num_classes: int) -> np.ndarray:
        """See `ClientSource.count_labels`."""
        if self._windows is None:
            return self._store.count_labels(num_classes)
        rows = self._find_train_rows()
        return count_by_client(
            self._store.clients[rows], self._store.y[rows], len(self._store.client_names), num_classes
        )

    def _find_train_rows(self) -> np.ndarray:
        """The rows whose labels are those of the train examples."""
        code = SPLIT_ORDER.index(TRAIN)
        if self._windows is None:
            return np.flatnonzero(self._store.splits == code)
        last = self._windows.starts[self._windows.splits == code] + self._length - 1
        return np.sort(self._windows.order[last])
