"""What "learned nothing" means: accuracies that a model should beat, of classes and of text.

Of classes, the most frequent one is always given. A client's own majority class is that of its train split; the overall
one is that of all train examples of the clients that train. Of equally frequent classes the lowest is given.

The unigram baseline always gives the token that is most frequent among the train labels. The bigram baseline gives the
most frequent successor of the last token, and for a token that was never seen the unigram's. Of equal ones the lowest
token is given. Both are right in the sense of the task's token accuracy: padding does not count, tokens outside of the
vocabulary do.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from datasets.example_format import LabelFormat
from datasets.federated_data import ClientFiles, FederatedData


class MajorityAccuracies(NamedTuple):
    """Accuracies, 0..1, of one answer for all examples.

    Attributes:
      own: of each client's own majority class on its test split, new clients last; float64, shape (clients,), NaN
        without a test split and for those that were not asked for.
      overall: of the overall majority class on the same splits, shape (clients,).
      on_test_set: of the overall majority class on the global test set; NaN if that is empty, or the labels of the
        clients are not known.
    """

    own: np.ndarray
    overall: np.ndarray
    on_test_set: float


def compute_majority_accuracies(
    data: FederatedData, clients: Sequence[ClientFiles] | None = None
) -> MajorityAccuracies:
    """The accuracies of the majority classes, from the labels alone.

    Args:
      data: a federation whose labels are classes.
      clients: whose splits are read, new clients may be among them; None: everyone's. Where the federation has not
        counted its labels, since it has too many clients, the overall majority class is that of these clients.
    """
    asked = data.everyone if clients is None else clients
    own, overall = np.full(len(data.everyone), np.nan), np.full(len(data.everyone), np.nan)
    if data.is_remote:  # nobody knows which class has most examples
        return MajorityAccuracies(own, overall, float("nan"))
    train = {
        client.index: np.bincount(data.read_labels(client, "train"), minlength=data.format.num_classes)
        for client in asked
    }
    counts = data.label_counts
    if not counts.shape[1]:
        counts = np.array([own for index, own in train.items() if index < len(data.clients)])
    of_all = counts.sum(axis=0).argmax()
    for client in asked:
        if client.num_test:
            y = data.read_labels(client, "test")
            own[client.index] = np.mean(y == train[client.index].argmax())
            overall[client.index] = np.mean(y == of_all)
    return MajorityAccuracies(own, overall, float(np.mean(data.test_y == of_all)) if len(data.test_y) else float("nan"))


# To merge after each client would sort all pairs so far for each of them.
_MOST_WAITING_PAIRS = 1 << 21


class _PairCounts:
    """How often each (last token, next token) was seen; memory goes with the number of different pairs."""

    def __init__(self, num_outputs: int):
        self._num_outputs = num_outputs
        self._codes, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._waiting: list[np.ndarray] = []
        self._num_waiting = 0

    def add(self, last: np.ndarray, following: np.ndarray) -> None:
        self._waiting.append(last.astype(np.int64) * self._num_outputs + following)
        self._num_waiting += len(last)
        if self._num_waiting > _MOST_WAITING_PAIRS:
            self._merge()

    def find_successors(self) -> tuple[np.ndarray, np.ndarray]:
        """(tokens that were seen, ascending; the most frequent token after each)."""
        self._merge()
        last, following = np.divmod(self._codes, self._num_outputs)
        # Within a token the most frequent comes first, of equal ones the lowest, and `unique` takes the first.
        order = np.lexsort((following, -self._counts, last))
        seen, first = np.unique(last[order], return_index=True)
        return seen, following[order][first]

    def _merge(self) -> None:
        if not self._waiting:
            return
        codes, counts = np.unique(np.concatenate(self._waiting), return_counts=True)
        both = np.concatenate([self._codes, codes])
        self._codes, rows = np.unique(both, return_inverse=True)
        weights = np.concatenate([self._counts, counts])
        self._counts = np.zeros(len(self._codes), np.int64)
        np.add.at(self._counts, rows, weights)
        self._waiting, self._num_waiting = [], 0


class TokenTables:
    """The most frequent token of some clients' train labels, and the most frequent one after each token.

    Args:
      train: (x, y) of each client that is to be counted, read one after the other: x tokens, shape (examples,
        positions), y the token after each position, shape (examples, positions), or after the last ones.
      labels: of a next_token task.
    """

    def __init__(self, train: Iterable[tuple[np.ndarray, np.ndarray]], labels: LabelFormat):
        unigrams, pairs = np.zeros(labels.num_outputs, np.int64), _PairCounts(labels.num_outputs)
        for x, y in train:
            last, following = _align(x, y, labels)
            unigrams += np.bincount(following, minlength=labels.num_outputs)
            pairs.add(last, following)
        self._labels = labels
        self._most_frequent = int(np.argmax(unigrams)) if unigrams.any() else None
        self._seen, self._successors = pairs.find_successors()

    def measure(self, x: np.ndarray, y: np.ndarray) -> dict[str, float]:
        """The token accuracies, 0..1, that the two baselines have on some examples, x and y likewise.

        Returns:
          unigram_accuracy and bigram_accuracy; NaN where these or the train part have no token.
        """
        last, following = _align(x, y, self._labels)
        if self._most_frequent is None or not len(following):
            return {"unigram_accuracy": float("nan"), "bigram_accuracy": float("nan")}
        rows = np.minimum(np.searchsorted(self._seen, last), len(self._seen) - 1)
        given = np.where(self._seen[rows] == last, self._successors[rows], self._most_frequent)
        return {
            "unigram_accuracy": float(np.mean(following == self._most_frequent)),
            "bigram_accuracy": float(np.mean(given == following)),
        }


def compute_token_baselines(
    train: Iterable[tuple[np.ndarray, np.ndarray]], test: tuple[np.ndarray, np.ndarray], labels: LabelFormat
) -> dict[str, float]:
    """What `TokenTables` of the train examples have on a test set."""
    return TokenTables(train, labels).measure(*test)


def _align(x: np.ndarray, y: np.ndarray, labels: LabelFormat) -> tuple[np.ndarray, np.ndarray]:
    """(last token, next token) of every position that is not padding, each int64, shape (positions,)."""
    last = x[:, x.shape[1] - y.shape[1] :]
    is_token = (y >= 0) & (y != labels.padding)
    return last[is_token].astype(np.int64), y[is_token].astype(np.int64)
