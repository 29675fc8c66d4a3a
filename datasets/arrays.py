"""The form in which every loader hands over its data: dense arrays, converted and checked once, here at the border."""

import dataclasses
import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from datasets.errors import DatasetError
from datasets.example_format import CLASS_LABELS, ExampleFormat
from datasets.layouts import TOKENS, arrange
from datasets.names import check_names

_TEXT_FIX, _TIME_FIX = "; give text as numbers, a column for each value", "; give times as numbers, such as seconds"
_RECORD_FIX = "; give records as columns, by numpy.lib.recfunctions.structured_to_unstructured"
_WHOLE_NUMBERS = {  # what is expected where a dtype cannot hold a number
    "int32": "expected tokens, whole numbers from 0 on",
    "uint8": "the run was trained on whole numbers 0..255, expected the same",
}
_FIXES_BY_KIND = {"U": _TEXT_FIX, "S": _TEXT_FIX, "m": _TIME_FIX, "M": _TIME_FIX, "V": _RECORD_FIX}


class TrainWeights(NamedTuple):
    """How much each train example counts in training: float32, shape (examples,), and the column that says it."""

    column: str
    values: np.ndarray


class TrainBlocks(NamedTuple):
    """Which train examples belong together, as windows of one recording that overlap do.

    Attributes:
      values: the block of each: integers, shape (examples,). In a block, examples are in the order of the recording.
      overlap: how many examples after one still share something with it; so many are left out where a block is cut.
    """

    values: np.ndarray
    overlap: int


@dataclasses.dataclass(frozen=True, eq=False)
class ArrayDataset:
    """A whole data set in memory, pooled over clients. Made by `make_array_dataset`.

    Attributes:
      name: for example "mnist".
      train_x: shape (examples, *input_shape), uint8 or float32; flat examples in uint8 are tokens, as are all in int32.
      train_y: labels; in a classification int32, 0..C-1, shape (examples,).
      test_x: the global test set, dtype and example shape as `train_x`.
      test_y: its labels.
      format: of all these.
      train_clients: int64 position in `client_names` of each train example's natural client; None if there is none.
      client_names: names of the natural clients, or None.
      source_digest: SHA-256 (hex) of everything above, the identity of the data in the cache of client files.
      num_dropped: examples that the loader left out because a reading was missing.
      test_clients: like `train_clients`, for the test examples, if these are to be the natural clients' own test
        splits, for example because they come later in time. None if a client's test split is drawn from its train part.
      is_ordered_by_time: whether the train examples are in order of time, so that neighbours are alike. The splits of
        natural clients are then cut from the end; drawn at random, they would be predicted from their neighbours.
      num_clients_left_out: natural clients that are not in `client_names`, since the test part holds all they have.
      reading: how the examples were understood, in words; "" to describe them by shape and preprocessing.
      notes: what may have been meant otherwise, a line each.
      filled: how many values were missing and are filled in, by column of a table.
      weights: how much the train examples count in training; None: all alike.
      blocks: which train examples stay together when natural clients' splits are drawn; None: each stands alone.
        Not with `is_ordered_by_time`.

    Raises:
      DatasetError: arrays or labels are not as the format says, a value is not finite, a part is empty, or a name
        holds a control character.
    """

    name: str
    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    format: ExampleFormat
    train_clients: np.ndarray | None
    client_names: tuple[str, ...] | None
    source_digest: str
    num_dropped: int = 0
    test_clients: np.ndarray | None = None
    is_ordered_by_time: bool = False
    num_clients_left_out: int = 0
    reading: str = ""
    notes: tuple[str, ...] = ()
    filled: Mapping[str, int] = dataclasses.field(default_factory=dict)
    weights: TrainWeights | None = None
    blocks: TrainBlocks | None = None

    def __post_init__(self):
        check_names("name", "data set", [self.name])
        check_names(self.name, "client", self.client_names or ())
        if (self.train_x.shape[1:], self.train_x.dtype) != (self.test_x.shape[1:], self.test_x.dtype):
            raise DatasetError(
                f"{self.name}: train examples are {self.train_x.dtype} {self.train_x.shape[1:]}, "
                f"test examples are {self.test_x.dtype} {self.test_x.shape[1:]}; expected the same"
            )
        _check_part(self, "train", self.train_x, self.train_y)
        _check_part(self, "test", self.test_x, self.test_y)
        _check_clients(self)
        _check_weights(self)
        _check_blocks(self)


def _check_part(dataset: ArrayDataset, part: str, x: np.ndarray, y: np.ndarray) -> None:
    where, example_format = f"{dataset.name}, {part} part", dataset.format
    if (x.dtype, x.shape[1:]) != (example_format.input_dtype, example_format.input_shape):
        raise DatasetError(
            f"{where}: x is {x.dtype} {x.shape}, but its format says {example_format.input_dtype} and "
            f"{example_format.input_shape} for an example; expected the same"
        )
    if example_format.takes_tokens:
        if x.size and x.min() < 0:
            raise DatasetError(f"{where}: x is {x.dtype} {x.shape}, expected tokens, uint8 or int32, of at least 0")
    elif x.dtype == np.uint8 and x.ndim < 3:
        raise DatasetError(
            f"{where}: x is {x.dtype} {x.shape}, expected uint8 or float32 with a channel axis, or flat float32"
        )
    if not x.size and y.shape[:1] == x.shape[:1]:
        raise DatasetError(f"{where}: empty, shape {x.shape}, expected at least one example of at least one value")
    example_format.labels.check_labels(where, y, len(x), example_format.num_classes)
    if x.dtype == np.float32:
        finite_rows = np.isfinite(x).reshape(len(x), -1).all(axis=1)
        if not finite_rows.all():
            raise DatasetError(
                f"{where}: {np.count_nonzero(~finite_rows)} examples with NaN or infinite values, "
                f"the first is example {np.argmin(finite_rows)}; repair or drop them"
            )


def _check_clients(dataset: ArrayDataset) -> None:
    clients, names = dataset.train_clients, dataset.client_names
    if clients is None and names is None:
        return
    if clients is None or names is None or clients.shape != dataset.train_y.shape[:1] or clients.dtype.kind not in "iu":
        raise DatasetError(f"{dataset.name}: expected an integer client for each train example, and the clients' names")
    if not np.array_equal(np.unique(clients), np.arange(len(names))):
        raise DatasetError(f"{dataset.name}: client ids must be 0..{len(names) - 1}, each with at least one example")


def _check_weights(dataset: ArrayDataset) -> None:
    if dataset.weights is None:
        return
    column, values = dataset.weights
    if (values.dtype, values.shape) != (np.float32, dataset.train_y.shape[:1]):
        raise DatasetError(
            f"{dataset.name}: weights of {column!r} are {values.dtype} {values.shape}, expected float32, one for each "
            f"train example"
        )
    is_wrong = ~(np.isfinite(values) & (values >= 0))
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise DatasetError(
            f"{dataset.name}: the weight of train example {row} in {column!r} is {values[row]}, expected a finite "
            f"number of at least 0"
        )


def _check_blocks(dataset: ArrayDataset) -> None:
    if dataset.blocks is None:
        return
    values, overlap = dataset.blocks
    if values.dtype.kind not in "iu" or values.shape != dataset.train_y.shape[:1] or overlap < 0:
        raise DatasetError(
            f"{dataset.name}: blocks are {values.dtype} {values.shape} with overlap={overlap}, expected an integer for "
            f"each train example, and an overlap of at least 0"
        )
    if dataset.is_ordered_by_time:
        raise DatasetError(f"{dataset.name}: blocks are drawn, expected none of examples in order of time")


def make_array_dataset(
    name: str,
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    format: ExampleFormat,
    clients: np.ndarray | None = None,
    num_dropped: int = 0,
    test_clients: np.ndarray | None = None,
    is_ordered_by_time: bool = False,
    num_clients_left_out: int = 0,
    reading: str = "",
    notes: tuple[str, ...] = (),
    filled: Mapping[str, int] = MappingProxyType({}),
    weights: TrainWeights | None = None,
    blocks: TrainBlocks | None = None,
) -> ArrayDataset:
    """An `ArrayDataset` from (x, y) of both parts; labels become what the task stores, classes int32.

    The digest covers the decoded arrays, so a data set has one identity whatever file format it came in.

    Args:
      name: see `ArrayDataset`.
      train: (x, y), as the format says.
      test: likewise.
      format: of the examples and labels. The digest has its class names, its preprocessing and, unless they are those
        of a classification, its labels.
      clients: the natural client of each train example: integers or strings, shape (examples,); or None.
      num_dropped: examples that were left out because a reading was missing; no part of the digest.
      test_clients: the natural client of each test example, if these are to be the clients' own test splits.
      is_ordered_by_time: see `ArrayDataset`.
      num_clients_left_out: see `ArrayDataset`; like the two that follow no part of the digest.
      reading: see `ArrayDataset`.
      notes: see `ArrayDataset`.
      filled: see `ArrayDataset`.
      weights: see `ArrayDataset`; part of the digest if there are any.
      blocks: likewise.

    Raises:
      DatasetError: see `ArrayDataset`.
    """
    owners = _name_owners(name, clients, test_clients, (len(test[1]),))
    parts: dict[str, Any] = {
        "train_x": np.ascontiguousarray(train[0]),
        "train_y": np.ascontiguousarray(train[1], format.labels.dtype),
        "test_x": np.ascontiguousarray(test[0]),
        "test_y": np.ascontiguousarray(test[1], format.labels.dtype),
    }
    described = {"class_names": format.class_names, "preprocessing": format.preprocessing}
    identity: dict[str, Any] = {"name": name, **parts, **described, **owners}
    # Only if given: what is always there would change the digests of all data sets without it.
    if is_ordered_by_time:
        identity["is_ordered_by_time"] = True
    if format.labels != CLASS_LABELS:
        identity["labels"] = format.labels
    if weights is not None:
        identity |= {"weight_column": weights.column, "weights": weights.values}
    if blocks is not None:
        identity |= {"blocks": blocks.values, "overlap": blocks.overlap}
    return ArrayDataset(
        name=name,
        **parts,
        **owners,
        format=format,
        source_digest=_compute_digest(identity),
        num_dropped=num_dropped,
        is_ordered_by_time=is_ordered_by_time,
        num_clients_left_out=num_clients_left_out,
        reading=reading,
        notes=tuple(notes),
        filled=dict(filled),
        weights=weights,
        blocks=blocks,
    )


def _name_owners(
    name: str, clients: np.ndarray | None, test_clients: np.ndarray | None, test_shape: tuple[int, ...]
) -> dict[str, Any]:
    """The fields of an `ArrayDataset` that say whose the examples are, as its digest has them."""
    if clients is None:
        return {"train_clients": None, "client_names": None}
    ids, train_clients = np.unique(clients, return_inverse=True)
    client_names = tuple(str(client) if ids.dtype.kind == "U" else f"client_{client}" for client in ids)
    owners: dict[str, Any] = {"train_clients": train_clients, "client_names": client_names}
    # In the digest only if given, as above.
    if test_clients is not None:
        if test_clients.shape != test_shape or not set(test_clients.tolist()) <= set(ids.tolist()):
            raise DatasetError(f"{name}: expected a client of the train part for each test example")
        owners["test_clients"] = np.searchsorted(ids, test_clients)
    return owners


def _compute_digest(fields: dict[str, Any]) -> str:
    digest = hashlib.sha256()
    for key, value in fields.items():
        if isinstance(value, np.ndarray):
            digest.update(f"{key}:{value.dtype.str}{value.shape}".encode())
            digest.update(value.data)
        else:
            digest.update(f"{key}:{value!r}".encode())
    return digest.hexdigest()


def hold_out_test_part(
    labels: np.ndarray, fraction: float, seed: int, clients: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Stratified split: (train indices, test indices), ascending; of each class `fraction`, rounded, is held out.

    Labels that are no classes, several an example or numbers that are not whole, are taken as of one class.

    Halves are rounded up. With `fraction` below 0.5 every class keeps a train example. Where clients are given, those
    that the draw leaves without a train example get one back, and another client gives one of that class in its place.
    If none can, the test part is one smaller, as long as the class has another example in it.

    Args:
      labels: shape (examples, ...).
      fraction: of each class, 0..1.
      seed: of the draw.
      clients: whose each example is, shape (examples,); or None.
    """
    if labels.ndim > 1 or (labels.dtype.kind == "f" and not np.array_equal(labels, np.rint(labels))):
        labels = np.zeros(len(labels), np.int64)
    # Without clients the draw is that of earlier versions, so what clients need is drawn after it.
    rng = np.random.default_rng([seed, 3])
    held_out = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        # Halves go up; `round` would take them to even numbers.
        held_out[members[: int(len(members) * fraction + 0.5)]] = True
    if clients is not None:
        _return_lost_clients(held_out, labels, np.unique(clients, return_inverse=True)[1], rng)
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _return_lost_clients(
    held_out: np.ndarray, labels: np.ndarray, clients: np.ndarray, rng: np.random.Generator
) -> None:
    """Changes `held_out` so that clients, as integers from 0, have a train example; the rng is used for these alone."""
    num_train = np.bincount(clients[~held_out], minlength=clients.max(initial=-1) + 1)
    lost = np.flatnonzero(num_train == 0)
    if not len(lost):
        return
    # The examples of each client, by one sorting of all.
    own = np.split(np.argsort(clients, kind="stable"), np.cumsum(np.bincount(clients))[:-1])
    num_held_out = {label: np.count_nonzero(labels[held_out] == label) for label in np.unique(labels)}
    donors = {label: iter(rng.permutation(np.flatnonzero(~held_out & (labels == label)))) for label in num_held_out}

    def find_donor(label: int) -> int | None:
        return next((each for each in donors[label] if num_train[clients[each]] > 1), None)

    for client in lost:
        pairs = ((example, find_donor(labels[example])) for example in own[client])
        example, donor = next((pair for pair in pairs if pair[1] is not None), (None, None))
        if donor is None:
            example = next((each for each in own[client] if num_held_out[labels[each]] > 1), None)
            if example is None:
                continue
            num_held_out[labels[example]] -= 1
        else:
            held_out[donor] = True
            num_train[clients[donor]] -= 1
        held_out[example] = False
        num_train[client] += 1


def check_examples(path: str, key: str, x: np.ndarray) -> None:
    """Raises DatasetError unless these are numbers with an axis for the examples and at least one more, not empty."""
    if x.dtype.kind not in "biuf" or x.ndim < 2:
        fix = _FIXES_BY_KIND.get(x.dtype.kind, "")
        raise DatasetError(
            f"{path}: {key} is {x.dtype} of shape {x.shape}, expected numbers of shape (examples, ...){fix}"
        )
    if not x.size:
        raise DatasetError(f"{path}: {key} is empty, shape {x.shape}, expected at least one example of one value")


def convert_examples(path: str, key: str, x: np.ndarray, layout: str, client: np.ndarray | None = None) -> np.ndarray:
    """uint8 or float32 with the channels last, as a model is given them; tokens in uint8 or int32.

    Args:
      path: the file, for errors.
      key: the array's name in it.
      x: as `check_examples` takes it.
      layout: one of `datasets.layouts.LAYOUTS` but "auto".
      client: whose each example is, for errors.

    Raises:
      DatasetError: the layout is not of this shape; NaN, infinity, or a number that float32 cannot hold.
    """
    dtype = "int32" if layout == TOKENS else "float32"
    stored = x if x.dtype == np.uint8 else convert_values(path, key, x, dtype, client)
    return arrange(stored, layout, f"{path}: {key}")


def convert_values(path: str, key: str, x: np.ndarray, dtype: str, client: np.ndarray | None = None) -> np.ndarray:
    """Examples in a dtype that a model takes.

    Args:
      path: where they come from, for errors.
      key: the array's name there.
      x: numbers, shape (examples, ...).
      dtype: "float32", "int32" or "uint8".
      client: whose each example is, for errors.

    Raises:
      DatasetError: the dtype cannot hold one, or it is NaN or infinite; the first is named.
    """
    # What does not fit becomes another number, and is found below.
    with np.errstate(over="ignore", invalid="ignore"):
        converted = x.astype(dtype)
    is_wrong = ~np.isfinite(converted) if dtype == "float32" else (converted != x) | (converted < 0)
    rows = is_wrong.reshape(len(is_wrong), -1).any(axis=1)
    if not rows.any():
        return converted
    row = int(np.argmax(rows))
    at = (row, *map(int, np.unravel_index(np.argmax(is_wrong[row]), is_wrong.shape[1:])))
    problem, expected = f" ({x.dtype})", _WHOLE_NUMBERS.get(dtype)
    if expected is None:
        is_large = np.isfinite(x[at])
        problem = ", too large for float32 (at most 3.4e38)" if is_large else ""
        expected = f"expected finite numbers, {'rescale' if is_large else 'repair or drop'} them"
    column = f", column {at[1]}" if len(at) == 2 else ""
    whose = f", client {client[row]}" if client is not None else ""
    raise DatasetError(
        f"{path}: {key}{list(at)} is {x[at]}{problem}: row {row}{column} (counted from 0){whose}; "
        f"{np.count_nonzero(rows):,} of {len(rows):,} examples have such values; {expected}"
    )
