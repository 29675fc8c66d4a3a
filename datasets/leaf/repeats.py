"""Whether a user's test examples are among those that the same user trains on."""

import hashlib

import numpy as np

from datasets.client_source import TEST, TRAIN
from datasets.errors import DatasetError
from datasets.leaf.files import User

_DIGEST_BYTES = 8
_LEAST_TO_REFUSE = 2  # test examples; one alone may well be said twice


class RepeatCheck:
    """Is told all users' examples, train before test.

    Attributes:
      notes: what was found, a line, or nothing.
    """

    def __init__(self):
        self._trained: dict[str, set[bytes]] = {}
        self._num_repeated = 0
        self._first = ""

    def add(self, user: User, x: np.ndarray, y: np.ndarray) -> None:
        """Raises DatasetError if all test examples of a user are trained on."""
        pairs = (each.tobytes() + label.tobytes() for each, label in zip(x, y, strict=True))
        digests = [hashlib.blake2b(pair, digest_size=_DIGEST_BYTES).digest() for pair in pairs]
        if user.part == TRAIN:
            self._trained[user.name] = set(digests)
        elif user.part == TEST and user.name in self._trained:
            trained = self._trained.pop(user.name)
            num_repeated = sum(digest in trained for digest in digests)
            if num_repeated == len(digests) >= _LEAST_TO_REFUSE:
                raise DatasetError(f"{user.where}: all {num_repeated} test examples are among its train examples, too")
            self._first = self._first or (user.name if num_repeated else "")
            self._num_repeated += num_repeated

    @property
    def notes(self) -> list[str]:
        if not self._num_repeated:
            return []
        noun = "example is" if self._num_repeated == 1 else "examples are"
        return [f"{self._num_repeated:,} test {noun} among the train examples of the same user, first {self._first!r}"]
