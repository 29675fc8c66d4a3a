"""Files of any format become a source of clients: read through once, into a store, from which runs are served.

A format says what it will open and how it reads it (`Reading`). The examples go into a store that is named by the
digest of both, so that a second run reads none of the files, unless one has changed.

A table or a JSON file has its clients in any order. It is read through once, in pieces, and its examples go into two
raw files, rows of `x` and of `y` in the order of the file, with the client and the split of each row beside them, and
where the data weigh their examples the weight of each. A
client's rows are then looked up, whatever lies between them. Nothing but the piece at hand is ever in memory.
"""

import dataclasses
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
from tqdm import tqdm

from datasets.client_source import TEST, TRAIN, VALIDATION, ClientSource
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, read_example_format
from datasets.layouts import choose_preprocessing, describe_examples
from datasets.names import sort_key
from files.cache import Cache
from files.cache_folder import default_cache_dir
from files.digests import compute_source_digest
from files.reading import describe, explain_errors

FORMAT_NAME, FORMAT_VERSION = "federated-suite example store", 2
INDEX_FILE = "store.json"
# Such rows are nobody's example, but stay between the others: no window may reach over them.
LEFT_OUT = "left_out"
SPLIT_ORDER = (TRAIN, VALIDATION, TEST, LEFT_OUT)


class Named(NamedTuple):
    """Names of examples: index of each into the different ones, int64 (examples,)."""

    codes: np.ndarray
    names: list[str]


class StoreWriter:
    """Takes the examples of a file piece by piece.

    Attributes:
      num_rows: written so far.
    """

    def __init__(self, folder: str):
        self._files: dict[str, BinaryIO] = {}
        # Raw files grow by rows, and single rows of them are read back without the others.
        for kind in ("x", "y", "client", "split", "time", "weight"):
            self._files[kind] = open(os.path.join(folder, f"{kind}.raw"), "wb")  # noqa: SIM115 - closed by `close`
        self._clients: dict[str, int] = {}
        self._schemas: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._given: dict[str, bool] = {}  # of what need not be there, whether it is
        self.num_rows = 0

    def append(
        self,
        x: np.ndarray,
        y: np.ndarray,
        clients: str | Named,
        split: str | np.ndarray = TRAIN,
        times: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        """Adds examples.

        Args:
          x: of one shape and dtype at every call, shape (examples, ...).
          y: likewise.
          clients: whose each example is, or one name for all.
          split: one of `SPLIT_ORDER` for all of them, or the index of each, uint8 (examples,).
          times: of each, by which a client's examples are in order; None for the order of the calls. Float64, shape
            (examples,); given at every call or at none.
          weights: of each in training, likewise; float32, shape (examples,).
        """
        if isinstance(clients, str):
            clients = Named(np.zeros(len(x), np.int64), [clients])
        # Numbered as they come: only the last piece tells the order of all names.
        numbers = [self._clients.setdefault(name, len(self._clients)) for name in clients.names]
        indices = np.array(numbers, np.int32)[clients.codes]
        if not len(x) == len(y) == len(indices):
            raise ValueError(f"{len(x)} examples, {len(y)} labels and {len(indices)} clients")
        for kind, values in (("x", x), ("y", y)):
            schema = (values.dtype.name, values.shape[1:])
            if self._schemas.setdefault(kind, schema) != schema:
                raise ValueError(f"{kind} is {schema}, before it was {self._schemas[kind]}")
        codes = np.full(len(x), SPLIT_ORDER.index(split), np.uint8) if isinstance(split, str) else split
        for kind, given in (("time", times), ("weight", weights)):
            is_there = given is not None
            if self._given.setdefault(kind, is_there) != is_there or (given is not None and len(given) != len(x)):
                raise ValueError(f"{kind}s at every call, one for each of {len(x)} examples, or at none")
        if len(codes) != len(x):
            raise ValueError(f"{len(x)} examples, {len(codes)} splits")
        columns = {"x": x, "y": y, "client": indices, "split": codes}
        columns |= {} if times is None else {"time": times.astype(np.float64)}
        columns |= {} if weights is None else {"weight": weights.astype(np.float32)}
        for kind, values in columns.items():
            self._files[kind].write(np.ascontiguousarray(values).data if values.size else b"")
        self.num_rows += len(x)

    def fill_medians(self, features: Mapping[int, bool]) -> None:
        """Puts the median of a feature over the train examples in the place of NaN, in all examples so far.

        Args:
          features: index of each feature that is filled -> whether its median is rounded down.
        """
        # What is buffered is not in the files that are mapped and read here.
        for file in self._files.values():
            file.flush()
        dtype, shape = self._schemas["x"]
        x = np.memmap(self._files["x"].name, dtype, "r+", shape=(self.num_rows, *shape))
        is_train = np.fromfile(self._files["split"].name, np.uint8) == SPLIT_ORDER.index(TRAIN)
        for at, is_whole in features.items():
            column = x[:, at, 0]
            # Of one feature at a time, since all of them need not fit into memory.
            values = column[is_train & ~np.isnan(column)]
            column[np.isnan(column)] = find_fill(values, is_whole)
        x.flush()

    def relabel(self, ranks: np.ndarray) -> None:
        """Renumbers what was appended so far: a label y becomes ranks[y].

        Args:
          ranks: of each label that there is, for labels whose order only the last of them tells.
        """
        self._files["y"].flush()
        # No memory can be mapped of a file without bytes.
        if self.num_rows:
            labels = np.memmap(self._files["y"].name, self._schemas["y"][0], "r+")
            labels[:] = ranks[labels]
            labels.flush()

    def close(self) -> dict[str, Any]:
        """Ends the files and says what they hold."""
        for file in self._files.values():
            file.close()
        schemas = {kind: [dtype, list(shape)] for kind, (dtype, shape) in self._schemas.items()}
        content = {"clients": list(self._clients), "num_rows": self.num_rows}
        content |= {"has_times": self._given.get("time", False)}
        # Without weights there is no such entry, as in stores from before there were any.
        content |= {"has_weights": True} if self._given.get("weight") else {}
        return {**content, **schemas}


def find_fill(values: np.ndarray, is_whole: bool) -> np.floating | float:
    """What stands for values that are missing: the median of the others, (values,), rounded down if asked; or 0."""
    median = np.median(values) if len(values) else 0.0
    return np.floor(median) if is_whole else median


class GroupedExamples:
    """Examples that are found by client and part.

    Attributes:
      num_examples: see `ClientSource`; parts that nobody has are not in it, but train always is.
      y: the label of each example.
      weights: of each in training, float32 (examples,), or None.
      clients: whose each example is, index, int64 (examples,).
      splits: index into `SPLIT_ORDER` of each, uint8 (examples,).
      num_clients: that there are.
    """

    def __init__(
        self,
        read_x: Callable[[np.ndarray], np.ndarray],
        y: np.ndarray,
        weights: np.ndarray | None,
        clients: np.ndarray,
        splits: np.ndarray,
        num_clients: int,
        times: np.ndarray | None = None,
    ):
        """Takes the attributes, a function (indices of examples) -> x, and the times that order a client's examples."""
        self._read_x, self.y, self.weights = read_x, y, weights
        self.clients, self.splits, self.num_clients = clients, splits, num_clients
        # A group is a part of a client; sorted by group, the examples of each lie side by side.
        groups = clients * len(SPLIT_ORDER) + splits
        self._order = np.argsort(groups, kind="stable") if times is None else np.lexsort((times, groups))
        counts = np.bincount(groups, minlength=num_clients * len(SPLIT_ORDER))
        self._ends = np.cumsum(counts)
        by_split = dict(zip(SPLIT_ORDER, counts.reshape(num_clients, -1).T.astype(np.int64), strict=True))
        self.num_examples = {
            name: each for name, each in by_split.items() if name == TRAIN or (name != LEFT_OUT and each.any())
        }

    def _find(self, client: int, split: str) -> np.ndarray:
        """Indices of a client's examples of a part, int64: in the order of time, or else as they came."""
        group = client * len(SPLIT_ORDER) + SPLIT_ORDER.index(split)
        return self._order[self._ends[group - 1] if group else 0 : self._ends[group]]

    def read(self, client: int, split: str) -> tuple[np.ndarray, np.ndarray]:
        """One client's examples of a split, see `ClientSource.read`."""
        examples = self._find(client, split)
        return np.array(self._read_x(examples)), np.array(self.y[examples])

    def read_weights(self, client: int, split: str) -> np.ndarray:
        """The weights of what `read` gives, of data that have them: float32 (examples,)."""
        assert self.weights is not None
        return self.weights[self._find(client, split)]

    def count_labels(self, num_classes: int) -> np.ndarray:
        """How many train examples of each class each client has, int64 (clients, classes); labels are 0.. ."""
        is_train = self.splits == SPLIT_ORDER.index(TRAIN)
        cells = self.clients[is_train] * num_classes + self.y[is_train]
        counts = np.bincount(cells, minlength=self.num_clients * num_classes)
        return counts.reshape(self.num_clients, num_classes).astype(np.int64)


class ExampleStore(GroupedExamples):
    """A store that was written. Its examples are rows in the order of the file, its clients in that of their names.

    Attributes:
      facts: what the writer said of the data, from JSON.
      client_names: see `ClientSource`.
      x: of all rows, from disk, shape (rows, ...); so is `y`.
      times: of each row, float64 (rows,), or None.
    """

    def __init__(self, folder: str, index: Mapping[str, Any]):
        self.facts: dict[str, Any] = index["facts"]
        num_rows = index["num_rows"]

        def open_rows(kind: str) -> np.ndarray:
            dtype, shape = index[kind]
            path = os.path.join(folder, f"{kind}.raw")
            # No memory can be mapped of a file without bytes.
            if not num_rows or not os.path.getsize(path):
                return np.zeros((num_rows, *shape), dtype)
            return np.memmap(path, dtype, "r", shape=(num_rows, *shape))

        def read_column(kind: str, dtype: type[np.generic]) -> np.ndarray:
            return np.fromfile(os.path.join(folder, f"{kind}.raw"), dtype)

        self.x = open_rows("x")
        names = index["clients"]
        # In the file clients stand as they came; by name, the same data in another order are the same clients.
        order = sorted(range(len(names)), key=lambda client: sort_key(names[client]))
        rank = np.empty(len(names), np.int64)
        rank[order] = np.arange(len(names))
        self.client_names = tuple(names[client] for client in order)
        self.times = read_column("time", np.float64) if index.get("has_times") else None
        super().__init__(
            self.x.__getitem__,
            open_rows("y"),
            read_column("weight", np.float32) if index.get("has_weights") else None,
            rank[read_column("client", np.int32)],
            read_column("split", np.uint8),
            len(names),
            self.times,
        )


def open_or_write_store(digest: str, write: Callable[[StoreWriter], Mapping[str, Any]]) -> ExampleStore:
    """Finds the store of this digest in the cache, or writes it.

    Args:
      digest: of the file's contents and of all that says how it is read, 64 hex digits.
      write: hands the examples to the writer and returns what else is known, as JSON can hold it.

    Raises:
      DatasetError: `write` fails, the file has no example, or the folder cannot be written.
    """
    cache = _get_cache()

    def fill(folder: str) -> dict[str, Any]:
        writer = StoreWriter(folder)
        try:
            facts = dict(write(writer))
        finally:
            content = writer.close()
        if not writer.num_rows:
            raise DatasetError("no example was found")
        return {**content, "facts": facts}

    try:
        index = cache.find_or_write(digest, fill)
    except OSError as error:
        raise DatasetError(f"cannot write the examples into {cache.folder}: {describe(error)}") from None
    return ExampleStore(cache.name_entry(digest), index)


def _get_cache() -> Cache:
    return Cache(default_cache_dir("stores"), FORMAT_NAME, FORMAT_VERSION, INDEX_FILE)


def clean_store_dir() -> int:
    """Deletes the stores, finished or abandoned, and nothing else. Returns the bytes freed.

    Don't call it while a run uses them.

    Raises:
      DatasetError: one cannot be deleted.
    """
    try:
        return _get_cache().clean()
    except OSError as error:
        raise DatasetError(f"cannot delete {error.filename}: {describe(error)}") from None


Item = TypeVar("Item")
_SHOWN_AFTER_S = 5.0


def show_progress(items: Iterable[Item], what: str) -> Iterator[Item]:
    """The items, with a bar on the terminal from the fifth second on; without a terminal there is none.

    Args:
      items: what is worked on, one by one.
      what: they are, before the bar.
    """
    return iter(tqdm(items, what, leave=False, file=sys.stderr, disable=None, delay=_SHOWN_AFTER_S))


class Description(NamedTuple):
    """What is known of data once all of them were read; the store keeps it as JSON.

    Attributes:
      format: of the examples, as the store has them.
      has_clients: see `ClientSource`, like all below.
      is_ordered_by_time: see there.
      num_dropped: see there.
      reading: see there.
      notes: see there.
      filled: see there.
      more: what else the format wants to know of the store when it is opened again, as JSON can hold it.
    """

    format: ExampleFormat
    has_clients: bool = True
    is_ordered_by_time: bool = False
    num_dropped: int = 0
    reading: str = ""
    notes: tuple[str, ...] = ()
    filled: Mapping[str, int] = {}
    more: Any = None

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it; `open_store` reads it back."""
        return {**self._asdict(), "format": self.format.to_json(), "notes": list(self.notes)}


class Reading(NamedTuple):
    """What a format says of its files before it reads them.

    Attributes:
      name: how reports call the data.
      path: of the file or folder, for errors.
      files: all that are opened, in a fixed order; their contents name the store.
      how: what else decides what is read, as JSON can hold it; a number that changes with the reading itself is in it.
      write: hands all examples to the writer, and describes them. It raises DatasetError.
      store_version: of what a store holds, where it may be none of an earlier version; the digest is the same.
    """

    name: str
    path: str
    files: Iterable[str]
    how: Any
    write: Callable[[StoreWriter], Description]
    store_version: int = 0


def open_reading(reading: Reading) -> ClientSource:
    """The clients of files, from the store, which is written unless it is there.

    Raises:
      DatasetError: a file cannot be read, or what it holds is of no use; one line that names the file and the row.
    """
    return serve(reading.name, *open_store(reading))


def serve(name: str, store: ExampleStore, description: Description, digest: str) -> ClientSource:
    """The clients of a store, from what `open_store` gave; `name` is that of the data."""
    described = description._asdict()
    del described["more"]
    example_format = description.format
    return ClientSource(
        name,
        client_names=store.client_names,
        num_examples=store.num_examples,
        read=store.read,
        digest=digest,
        count_labels=(lambda: store.count_labels(example_format.num_classes))
        if example_format.labels.is_by_class
        else None,
        **described,
    )


def open_store(reading: Reading) -> tuple[ExampleStore, Description, str]:
    """(store, what is in it, its digest) of files; see `open_reading`."""
    with explain_errors(reading.path, DatasetError):
        digest = compute_source_digest(reading.files, reading.how)
    # The digest names the data in runs; only the store is another, where its content is.
    name = compute_source_digest((), [digest, reading.store_version]) if reading.store_version else digest
    store = open_or_write_store(name, lambda writer: reading.write(writer).to_json())
    read = {"format": read_example_format(store.facts["format"]), "notes": tuple(store.facts["notes"])}
    return store, Description(**{**store.facts, **read}), digest


def scale_source(source: ClientSource, scale: str, layout: str) -> ClientSource:
    """A source whose numbers are scaled, and whose `reading` begins with what its examples are.

    What a store holds is the same at any scale, so that another one reads no file again.

    Args:
      source: of any format.
      scale: see `layouts.choose_preprocessing`.
      layout: how the examples were read, one of `layouts.LAYOUTS`.

    Raises:
      DatasetError: a scale for tokens.
    """
    stored = source.format
    is_uint8 = stored.input_dtype == "uint8"
    preprocessing = choose_preprocessing(scale, stored.input_shape, is_uint8, stored.takes_tokens)
    return dataclasses.replace(
        source,
        format=dataclasses.replace(stored, preprocessing=preprocessing),
        reading=describe_examples(stored.input_shape, preprocessing, layout) + source.reading,
    )
