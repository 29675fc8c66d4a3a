"""Judges what clients answer: an answer counts only if it is whole, of this run and task, and finite."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from launch.live.fields import read_count, read_duration, read_number, read_text
from launch.live.messages import Message, MessageError
from tff_algos.client.local_training import LocalResult


class TrainingFile(Protocol):
    """The file by which clients train.

    Attributes:
      content: its bytes.
      sha256: their SHA-256, in hex digits.
      names: "weight_<i>" of the weights that it changes.
      shapes: theirs.
      positions: of each among the model's weights.
    """

    content: bytes
    sha256: str
    names: Sequence[str]
    shapes: Sequence[tuple[int, ...]]
    positions: Sequence[int]


class Asked(NamedTuple):
    """What a client was asked, and so what its answer must name.

    Attributes:
      task: the task's random id.
      client: its index.
      number: of the task; 0 of what is no training.
      num_trained: examples that it trains on, each epoch counted.
    """

    task: str
    client: int
    number: int = 0
    num_trained: int = 0


class Sums(NamedTuple):
    """What a client measured on its test part: examples, how many it had right, and their summed loss."""

    num: int
    correct: int
    loss_sum: float


class Referee:
    """Judges the answers of a run.

    Args:
      run: its random name.
      file: that clients train by.
      weights: the model's, in the order of `keras_model.weights`; their shapes and dtypes count.
    """

    def __init__(self, run: str, file: TrainingFile, weights: Sequence[np.ndarray]):
        self._run, self._file = run, file
        self._shapes = dict(zip(file.names, map(tuple, file.shapes), strict=True))
        self._name_at = dict(zip(file.positions, file.names, strict=True))
        self._sent = [
            (i, np.asarray(w)) for i, w in enumerate(weights) if np.issubdtype(np.asarray(w).dtype, np.floating)
        ]

    def judge(self, message: Message, asked: Asked) -> LocalResult:
        """The update that an `answer` holds, in NumPy arrays, one for each floating-point weight of the model.

        Weights that the file does not change get zeros.

        Raises:
          MessageError: it must not count; the text says why.
        """
        header = message.header
        self._check_names(header, asked)
        read_duration(header, "seconds")
        if read_count(header, "num_trained") != asked.num_trained:
            raise MessageError(f"trained on {header['num_trained']} examples, expected {asked.num_trained}")
        loss_sum = np.float32(_cut_to_float32(read_number(header, "loss_sum")))
        if message.arrays.keys() != self._shapes.keys():
            raise MessageError("its arrays are not the weights that the file changes")
        for name, array in message.arrays.items():
            if array.dtype != np.float32 or array.shape != self._shapes[name]:
                found = f"{array.dtype} of shape {array.shape}"
                raise MessageError(f"{name} is {found}, expected float32 of shape {self._shapes[name]}")
        deltas = tuple(
            message.arrays[self._name_at[i]].astype(weight.dtype)
            if i in self._name_at
            else np.zeros(weight.shape, weight.dtype)
            for i, weight in self._sent
        )
        with np.errstate(over="ignore", invalid="ignore"):
            squared_norm = np.float32(sum(float(np.sum(delta * delta, dtype=np.float64)) for delta in deltas))
        if not np.isfinite(squared_norm) or not np.isfinite(loss_sum):
            raise MessageError("its update or its loss is not finite")
        return LocalResult(deltas, squared_norm, loss_sum, np.float32(asked.num_trained), np.bool_(True))

    def judge_sums(self, header: Mapping[str, Any], asked: Asked, num_test: int) -> Sums:
        """What a `measured` holds. Raises MessageError."""
        self._check_names(header, asked)
        return _read_sums(header, num_test)

    def judge_tuning(self, header: Mapping[str, Any], asked: Asked, num_test: int) -> tuple[Sums, Sums]:
        """What a `tuned` holds: before and after. Raises MessageError."""
        self._check_names(header, asked)
        before, after = (header.get(name) for name in ("before", "after"))
        if not isinstance(before, dict) or not isinstance(after, dict):
            raise MessageError("expected sums before and after")
        return _read_sums(before, num_test), _read_sums(after, num_test)

    def _check_names(self, header: Mapping[str, Any], asked: Asked) -> None:
        expected = {"run": self._run, "file": self._file.sha256, "task": asked.task}
        for name, value in expected.items():
            if read_text(header, name) != value:
                raise MessageError(f"of another {name}")
        if read_count(header, "client") != asked.client:
            raise MessageError("of another client")
        if asked.number and read_count(header, "number") != asked.number:
            raise MessageError("of another number")


def _read_sums(header: Mapping[str, Any], num_test: int) -> Sums:
    num = read_count(header, "num")
    if num != num_test:
        raise MessageError(f"measured on {num} examples, expected {num_test}")
    return Sums(num, read_count(header, "correct", 0, num), read_number(header, "loss_sum"))


def _cut_to_float32(value: float) -> float:
    """The number, or infinity where float32 has nothing as large."""
    return value if abs(value) <= np.finfo(np.float32).max else np.inf
