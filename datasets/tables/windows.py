"""Windows of time series: so many rows of one client one after the other, with no gap between them, are an example."""

from typing import NamedTuple

import numpy as np

from datasets.client_source import TRAIN
from datasets.example_store import SPLIT_ORDER, ExampleStore, Groups, count_by_client

GAP = 3.0  # times the usual step of a client's rows: a longer one is a gap


class Windows(NamedTuple):
    """Where windows are.

    Attributes:
      order: rows by client and by time, int64 (rows,).
      starts: of each window, its first place in `order`, int64 (windows,); by client and part, then by time.
      clients: whose each is, int64 (windows,).
      splits: in which part it is, uint8 (windows,).
      num_gaps: places where rows of a client follow one another after too long a time.
    """

    order: np.ndarray
    starts: np.ndarray
    clients: np.ndarray
    splits: np.ndarray
    num_gaps: int


class WindowedExamples:
    """The windows of a store whose rows are the features of a time.

    Attributes:
      num_examples: see `ClientSource`.
    """

    def __init__(self, store: ExampleStore, windows: Windows, length: int):
        self._store, self._windows, self._length = store, windows, length
        self._groups = Groups(windows.clients, windows.splits, len(store.client_names))
        self.num_examples = self._groups.num_examples

    def read(self, client: int, split: str) -> tuple[np.ndarray, np.ndarray]:
        """See `ClientSource.read`; a window has the label of its last row."""
        starts = self._windows.starts[self._groups.find(client, split)]
        rows = self._windows.order[starts[:, np.newaxis] + np.arange(self._length)]
        return self._store.x[rows][..., 0], np.array(self._store.y[rows[:, -1]])

    def read_weights(self, client: int, split: str) -> np.ndarray:
        """See `ExampleStore.read_weights`; a window has the weight of its last row, as it has that row's label."""
        starts = self._windows.starts[self._groups.find(client, split)]
        return self._store.weights[self._windows.order[starts + self._length - 1]]

    def count_labels(self, num_classes: int) -> np.ndarray:
        """See `ClientSource.count_labels`."""
        is_train = self._windows.splits == SPLIT_ORDER.index(TRAIN)
        last = self._windows.order[self._windows.starts[is_train] + self._length - 1]
        num_clients = len(self._store.client_names)
        return count_by_client(self._windows.clients[is_train], self._store.y[last], num_clients, num_classes)


def cut_windows(
    clients: np.ndarray, splits: np.ndarray, times: np.ndarray | None, length: int, step: int, left_out: int
) -> Windows:
    """Finds all windows that lie within one client, one part and a stretch without a gap.

    A stretch begins anew where the client or the part changes, after a row that is left out, and after a gap.

    Args:
      clients: whose each row is, int64 (rows,).
      splits: its part, uint8 (rows,).
      times: of each row; None if they are in the order of the file, which then has no gaps.
      length: rows of a window, at least 1.
      step: rows from one start to the next, at least 1.
      left_out: the part whose rows are in no window.
    """
    order = np.argsort(clients, kind="stable") if times is None else np.lexsort((times, clients))
    client, split = clients[order], splits[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (client[1:] != client[:-1]) | (split[1:] != split[:-1])
    num_gaps = 0
    if times is not None:
        is_gap = _find_gaps(client, times[order])
        num_gaps = int(is_gap.sum())
        begins |= is_gap
    firsts = np.flatnonzero(begins)
    lengths = np.diff(np.append(firsts, len(order)))
    counts = np.where(split[firsts] == left_out, 0, np.maximum(0, (lengths - length) // step + 1))
    stretch = np.repeat(np.arange(len(firsts)), counts)
    within = np.arange(len(stretch)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = firsts[stretch] + within * step
    by_part = np.lexsort((starts, split[starts], client[starts]))
    starts = starts[by_part]
    return Windows(order, starts, client[starts], split[starts], num_gaps)


def _find_gaps(client: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Which rows, by client and time, come more than `GAP` usual steps after the one before; bool (rows,)."""
    is_gap = np.zeros(len(times), bool)
    is_same = client[1:] == client[:-1]
    steps = np.diff(times)
    # The usual step of a client is the lower median of those above 0; NaN where there is none.
    is_step = is_same & (steps > 0)
    groups, values = client[1:][is_step], steps[is_step]
    values = values[np.lexsort((values, groups))]
    counts = np.bincount(groups, minlength=int(client.max(initial=-1)) + 1)
    usual, has = np.full(len(counts), np.nan), counts > 0
    usual[has] = values[(np.cumsum(counts) - counts + (counts - 1) // 2)[has]]
    with np.errstate(invalid="ignore"):
        is_gap[1:] = is_same & (steps > GAP * usual[client[1:]])
    return is_gap
