"""Judges what clients answer: an answer counts only if it is whole, of this run and task, finite, and not too large.

What is rejected is told by client, or by reason. A client is not asked any more after several rejections in a row,
while answers of others counted: where nobody's count, the run has a trouble of its own.
"""

import collections
import math
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


# Why an answer is rejected, in the words of a count.
DAMAGED, EXAMPLES, SHAPE = "not as asked", "of another number of examples", "of another shape"
NOT_FINITE, TOO_LARGE = "not finite", "beyond the norm bound"
# By the norm of the model, an update beyond which is absurd: honest ones are seldom as long as the model itself.
MOST_BY_MODEL = 1000.0
EXPELLED = "too many of your answers did not count: the examples or the program are not as this run needs them"
_MOST_FLOAT32 = float(np.finfo(np.float32).max)
MOST_LINES = 10  # of rejections in a round that are told one by one


class Rejection(MessageError):
    """An answer that must not count; the text says why, and `kind` is one of those above."""

    def __init__(self, kind: str, text: str):
        super().__init__(text)
        self.kind = kind


class Limits(NamedTuple):
    """How much a run takes of its clients.

    Attributes:
      most_norm: of an update that counts; 0: `MOST_BY_MODEL` times that of the model, which counts as at least 1.
      most_rejected: answers in a row, while others' count, after which a client is not asked any more; 0: any number.
      least_clients: that a round needs, below which nobody is sent away: it would wait for ever.
    """

    most_norm: float = 0.0
    most_rejected: int = 0
    least_clients: int = 1


LENIENT = Limits()  # any number of answers, of any size but an absurd one


class Asked(NamedTuple):
    """What a client was asked, and so what its answer must name.

    Attributes:
      task: the task's random id.
      client: its index.
      number: of the task; 0 of what is no training.
      num_trained: examples that it trains on, each epoch counted.
      most_norm: of its update.
    """

    task: str
    client: int
    number: int = 0
    num_trained: int = 0
    most_norm: float = math.inf


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
          Rejection: it must not count.
        """
        header = message.header
        try:
            self._check_names(header, asked)
            read_duration(header, "seconds")
            num_trained = read_count(header, "num_trained")
            loss_sum = np.float32(_cut_to_float32(read_number(header, "loss_sum")))
        except MessageError as error:
            raise Rejection(DAMAGED, str(error)) from None
        if num_trained != asked.num_trained:
            raise Rejection(EXAMPLES, f"trained on {num_trained} examples, expected {asked.num_trained}")
        if message.arrays.keys() != self._shapes.keys():
            raise Rejection(SHAPE, "its arrays are not the weights that the file changes")
        for name, array in message.arrays.items():
            if array.dtype != np.float32 or array.shape != self._shapes[name]:
                found = f"{array.dtype} of shape {array.shape}"
                raise Rejection(SHAPE, f"{name} is {found}, expected float32 of shape {self._shapes[name]}")
        deltas = tuple(
            message.arrays[self._name_at[i]].astype(weight.dtype, copy=False)
            if i in self._name_at
            else np.zeros(weight.shape, weight.dtype)
            for i, weight in self._sent
        )
        norm = measure_norm(deltas)
        squared_norm = np.float32(_cut_to_float32(norm * norm))
        if not math.isfinite(norm) or not np.isfinite(loss_sum):
            raise Rejection(NOT_FINITE, "its update or its loss is not finite")
        if norm > asked.most_norm or not np.isfinite(squared_norm):
            most = min(asked.most_norm, math.sqrt(_MOST_FLOAT32))
            raise Rejection(TOO_LARGE, f"its update has the norm {norm:.3g}, of at most {most:.3g} (--most_norm)")
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


class Conduct:
    """What a run takes of its clients, and how their answers were judged; clients are indices, of fixed seats.

    Attributes:
      expelled: those who are not asked any more.
    """

    def __init__(self, limits: Limits):
        self._limits, self.expelled = limits, set[int]()
        self._spared = set[int]()  # who would not be asked any more, if others were there; it was told
        self._version, self._by_model = -1, math.inf  # the bound on updates of this version of the model
        # Of each client's rejections in a row: how many, and how many answers had counted before the first.
        self._rows: dict[int, tuple[int, int]] = {}
        self._num_accepted = 0
        self._new: list[str] = []  # the kinds of what was rejected

    def find_most_norm(self, version: int, model: Sequence[np.ndarray]) -> float:
        """The largest norm of an update of this version of the model, whose weights these are."""
        if self._limits.most_norm:
            return self._limits.most_norm
        if version != self._version:  # all clients of a round are asked for the same one
            self._version, self._by_model = version, MOST_BY_MODEL * max(measure_norm(model), 1.0)
        return self._by_model

    def accept(self, client: int) -> None:
        """An answer of this client counts."""
        self._num_accepted += 1
        self._rows.pop(client, None)

    def reject(self, client: int, name: str, rejection: Rejection, num_seated: int) -> list[str]:
        """Judges a client of this name whose answer does not count; lines to be told at once.

        Args:
          client, name: who it is.
          rejection: why.
          num_seated: clients that have a seat, those who are not asked any more among them.
        """
        self._new.append(rejection.kind)
        lines = [f"{name}: its answer does not count: {rejection}"] if len(self._new) <= MOST_LINES else []
        number, accepted_before = self._rows.get(client, (0, self._num_accepted))
        self._rows[client] = number + 1, accepted_before
        if 0 < self._limits.most_rejected <= number + 1 and self._num_accepted > accepted_before:
            why = f"{number + 1} answers in a row did not count, and others' did"
            if num_seated - len(self.expelled) > self._limits.least_clients:
                self.expelled.add(client)
                lines.append(f"{name} is asked no more: {why}")
            elif client not in self._spared:
                self._spared.add(client)
                least = f"a round needs {self._limits.least_clients} clients (--least_answers), and no more are left"
                lines.append(f"{name} is asked further, though {why}: {least}")
        return lines

    def take_lines(self) -> list[str]:
        """A line on those rejected since the last call that were not told one by one."""
        kinds, self._new = collections.Counter(self._new[MOST_LINES:]), []
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        return [f"{kinds.total()} more answers do not count: {counts}"] if kinds else []


def measure_norm(arrays: Sequence[np.ndarray]) -> float:
    """The L2 norm over all entries of the floating-point arrays, in float64; infinite or NaN if an entry is."""
    floats = [each for each in arrays if each.dtype.kind == "f"]
    with np.errstate(over="ignore", invalid="ignore"):
        joined = np.concatenate([np.zeros(0), *floats], axis=None, dtype=np.float64)
        return math.sqrt(joined @ joined)


def _read_sums(header: Mapping[str, Any], num_test: int) -> Sums:
    num = read_count(header, "num")
    if num != num_test:
        raise MessageError(f"measured on {num} examples, expected {num_test}")
    return Sums(num, read_count(header, "correct", 0, num), read_number(header, "loss_sum"))


def _cut_to_float32(value: float) -> float:
    """The number, or infinity where float32 has nothing as large."""
    return value if abs(value) <= _MOST_FLOAT32 else np.inf
