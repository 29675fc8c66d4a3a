"""What clients keep between rounds: control variates, personal layers or models, duals. Imports no TensorFlow.

A client's row is a tuple of arrays, alike for all clients. A client that has kept nothing yet has the first row, so
only those that took part cost memory. While the rows of all clients together would fit a bound, they lie in the state,
stacked. Beyond it the state only says in which round each was written last, and a row is a file of that client and
round: a round then reads and writes the rows of its cohort alone, however many clients there are.

A file is a pure function of the run, the client and the round. So a round that is computed again, after a kill, writes
the same bytes again. A file stays while a retained state needs it, see `ClientStore.forget`.

What clients keep, where groups of them keep arrays of other shapes, such as models of several architectures.

Each group has a `ClientStore` of its own, whose methods are here for all clients together. Imports no TensorFlow.
"""

import hashlib
import pathlib
import re
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from files.writing import write_whole
from tff_algos.protocol import ClientStateError

MOST_BYTES = 64 * 2**20  # the rows of all clients that a state may hold: each round copies them, each checkpoint too
_CLIENTS_PER_FOLDER = 1000
_DIGEST_BYTES = hashlib.sha256().digest_size
_NAME = re.compile(r"(\d{1,9})_(\d{1,9})\.bin")

Row = tuple[np.ndarray, ...]  # what one client keeps


class StoreState(NamedTuple):
    """Who keeps what, a part of a process' state.

    Attributes:
      clients: those that keep something of their own, ascending, int64, shape (n,).
      versions: the round in which each was written last, int32, shape (n,).
      arrays: the rows of these clients, one array for each of the row's, shape (n, *shape); if the rows lie in files,
        arrays of no row, shape (0, *shape).
    """

    clients: np.ndarray
    versions: np.ndarray
    arrays: tuple[np.ndarray, ...]


class ClientStore:
    """Reads and writes what clients keep.

    A state is never changed. The object itself knows only where the files are, and which of them may be of no use.

    Args:
      initial: the row of a client that has kept nothing yet: zeros, or the first weights. Its dtypes and shapes are
        those of all rows.
      num_clients: how many clients may keep something, numbered from 0.
      most_bytes: the rows of all clients together lie in files if they have more bytes. A run that has begun goes on as
        it began.
    """

    def __init__(self, initial: Sequence[np.ndarray], num_clients: int, most_bytes: int = MOST_BYTES):
        # A copy: whoever made the first row may go on to change it.
        self.initial: Row = tuple(_freeze(np.array(array, order="C")) for array in initial)
        self.num_clients = num_clients
        self.row_bytes = sum(array.nbytes for array in self.initial)
        self.begins_in_files = num_clients * self.row_bytes > most_bytes
        self._folder: pathlib.Path | None = None
        self._doubtful: set[tuple[int, int]] = set()  # files (client, version) that the newest state may not need

    def initialize(self) -> StoreState:
        """The state before the first round: nobody keeps anything."""
        arrays = tuple(np.zeros((0, *array.shape), array.dtype) for array in self.initial)
        return StoreState(np.zeros(0, np.int64), np.zeros(0, np.int32), arrays)

    def keep_in(self, folder: pathlib.Path) -> None:
        """Has files lie in this folder, which need not exist. Otherwise a temporary one is made when it is needed."""
        self._folder = folder
        found = [_NAME.fullmatch(path.name) for path in folder.glob("*/*.bin")] if folder.is_dir() else []
        self._doubtful = {(int(match[1]), int(match[2])) for match in found if match}

    def read(self, state: StoreState, clients: Sequence[int] | np.ndarray) -> list[Row]:
        """The rows of these clients, in the order given; those of others than the store's are the first row.

        The arrays are read-only.

        Raises:
          ClientStateError: a file is gone or damaged.
        """
        return list(self.iterate(state, clients))

    def iterate(self, state: StoreState, clients: Sequence[int] | np.ndarray) -> Iterator[Row]:
        """As `read`, one row after another, so that rows in files never are in memory all at once."""
        for client, index in zip(clients, _find_rows(state, clients), strict=True):
            if index < 0:
                yield self.initial
            elif _is_in_files(state):
                yield self._read_file(int(client), int(state.versions[index]))
            else:
                yield tuple(_freeze(array[index, ...]) for array in state.arrays)

    def write(
        self,
        state: StoreState,
        clients: Sequence[int] | np.ndarray,
        values: Sequence[Sequence[np.ndarray]],
        round_num: int,
    ) -> StoreState:
        """The state after these clients have written their rows in a round; `state` stays as it is.

        Args:
          state: the state before.
          clients: who writes, each once, in any order.
          values: the row of each, in this order, of the dtypes and shapes of `initial`.
          round_num: the round, later than any in which one of them wrote.

        Raises:
          ValueError: a client comes twice or is none of the store's, a row is of other shapes, or a client has written
            in this round or a later one.
          OSError: a file cannot be written.
        """
        clients = np.asarray(clients, np.int64).reshape(-1)
        rows = [self._check_row(client, value) for client, value in zip(clients, values, strict=True)]
        self._check_clients(state, clients, round_num)
        # Sorted, so that a client is found by bisection, and the state has the same bytes in any order of writing.
        joined = np.union1d(state.clients, clients)
        old, new = np.searchsorted(joined, state.clients), np.searchsorted(joined, clients)
        versions = np.zeros(len(joined), np.int32)
        versions[old], versions[new] = state.versions, round_num
        # A run that has begun goes on as it began, even if the bound has changed since.
        if _is_in_files(state) if len(state.clients) else self.begins_in_files:
            self._write_files(state, clients, rows, round_num)
            return StoreState(joined, versions, state.arrays)
        arrays = []
        for i, former in enumerate(state.arrays):
            array = np.empty((len(joined), *former.shape[1:]), former.dtype)
            array[old] = former
            for index, row in zip(new, rows, strict=True):
                array[index] = row[i]
            arrays.append(array)
        return StoreState(joined, versions, tuple(arrays))

    def find_files(self, state: StoreState) -> StoreState | None:
        """What `forget` must be told of a retained state; None if its rows lie in the state."""
        return state if _is_in_files(state) else None

    def forget(self, needed: Sequence[StoreState]) -> None:
        """Removes the files that none of these states needs, the newest state last.

        Only files that have been written anew since are looked at, and at first those that were there before.
        """
        if not self._doubtful or not needed:
            return
        files = sorted(self._doubtful)
        clients, versions = np.array(files, np.int64).T
        is_needed = [_names(state, clients, versions) for state in needed]
        for i, (client, version) in enumerate(files):
            # A retained checkpoint may be resumed from, so its rows stay with it.
            if any(named[i] for named in is_needed):
                # What the newest state needs comes back here when its client writes again.
                if is_needed[-1][i]:
                    self._doubtful.discard((client, version))
                continue
            self._find_path(client, version).unlink(missing_ok=True)
            self._doubtful.discard((client, version))

    def _check_row(self, client: int, value: Sequence[np.ndarray]) -> Row:
        row = tuple(np.asarray(array) for array in value)
        found, expected = ([(str(array.dtype), array.shape) for array in each] for each in (row, self.initial))
        if found != expected:
            raise ValueError(f"client {client} keeps {found}, expected {expected}")
        return row

    def _check_clients(self, state: StoreState, clients: np.ndarray, round_num: int) -> None:
        if len(np.unique(clients)) < len(clients) or np.any((clients < 0) | (clients >= self.num_clients)):
            raise ValueError(f"clients {clients.tolist()}, expected each once, from 0 to {self.num_clients - 1}")
        indices = _find_rows(state, clients)
        if np.any(state.versions[indices[indices >= 0]] >= round_num):
            raise ValueError(f"a client has written in round {round_num} or later already")

    def _find_path(self, client: int, version: int) -> pathlib.Path:
        if self._folder is None:
            self._folder = pathlib.Path(tempfile.mkdtemp(prefix="federated_kept_"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)  # or when the program ends
        return self._folder / str(client // _CLIENTS_PER_FOLDER) / f"{client}_{version}.bin"

    def _write_files(self, state: StoreState, clients: np.ndarray, rows: Sequence[Row], round_num: int) -> None:
        for client, index, row in zip(clients.tolist(), _find_rows(state, clients), rows, strict=True):
            # A file's name has the round, so an old state's row is never overwritten.
            content = b"".join(array.tobytes() for array in row)
            write_whole(self._find_path(client, round_num), _compute_digest(client, round_num, content), content)
            if index >= 0:
                self._doubtful.add((client, int(state.versions[index])))

    def _read_file(self, client: int, version: int) -> Row:
        path = self._find_path(client, version)
        try:
            # Looked at first: a folder or a huge file in its stead must not be read.
            status = path.stat()
            is_right = stat.S_ISREG(status.st_mode) and status.st_size == _DIGEST_BYTES + self.row_bytes
            content = path.read_bytes() if is_right else b""
        except OSError:
            content = b""
        row_content = memoryview(content)[_DIGEST_BYTES:]
        if content[:_DIGEST_BYTES] != _compute_digest(client, version, row_content):
            raise ClientStateError(
                f"{path}: gone or damaged, but it is what client {client} has kept since round {version}; restore it, "
                f"or remove the checkpoints from round {version} on and resume from an older one, or start a new run"
            )
        row, start = [], 0
        for array in self.initial:
            # Copied only behind an array of an odd number of bytes: TensorFlow wants arrays aligned.
            read = np.frombuffer(row_content[start : start + array.nbytes], array.dtype).reshape(array.shape)
            row.append(_freeze(np.require(read, requirements="A")))
            start += array.nbytes
        return tuple(row)


def _freeze(array: np.ndarray) -> np.ndarray:
    """The array itself, which nobody can write through from now on; what a view was made of is not changed."""
    array.setflags(write=False)
    return array


def _is_in_files(state: StoreState) -> bool:
    return any(len(array) != len(state.clients) for array in state.arrays)


def _find_rows(state: StoreState, clients: Sequence[int] | np.ndarray) -> np.ndarray:
    """The row of each client in the state, -1 for one that is not in it; int64, shape (clients,)."""
    clients = np.asarray(clients, np.int64).reshape(-1)
    indices = np.searchsorted(state.clients, clients)
    is_there = indices < len(state.clients)
    is_there[is_there] = state.clients[indices[is_there]] == clients[is_there]
    return np.where(is_there, indices, -1)


def _names(state: StoreState, clients: np.ndarray, versions: np.ndarray) -> np.ndarray:
    """Whether a state needs the file of each (client, version); bool, shape (files,)."""
    indices = _find_rows(state, clients)
    is_named = indices >= 0
    is_named[is_named] = state.versions[indices[is_named]] == versions[is_named]
    return is_named


def _compute_digest(client: int, version: int, content: bytes | memoryview) -> bytes:
    """SHA-256 of a row and of whose it is, so that a file that was swapped for another's is noticed."""
    digest = hashlib.sha256(f"{client} {version} ".encode())
    digest.update(content)
    return digest.digest()


States = tuple[StoreState, ...]  # one for each group


class GroupedStore:
    """Reads and writes what clients keep; each method is that of `ClientStore` with one state for each group.

    Args:
      initial: of each group, the row of a client that has kept nothing yet.
      group_of: the group of each client, int, shape (clients,).
      most_bytes: as in `ClientStore`.
    """

    def __init__(self, initial: Sequence[Sequence[np.ndarray]], group_of: np.ndarray, most_bytes: int = MOST_BYTES):
        self.stores = tuple(ClientStore(row, len(group_of), most_bytes) for row in initial)
        self.group_of = group_of

    def initialize(self) -> States:
        return tuple(store.initialize() for store in self.stores)

    def keep_in(self, folder: pathlib.Path) -> None:
        for group, store in enumerate(self.stores):
            store.keep_in(folder / f"group_{group}")

    def read(self, states: States, clients: Sequence[int] | np.ndarray) -> list[Row]:
        return list(self.iterate(states, clients))

    def iterate(self, states: States, clients: Sequence[int] | np.ndarray) -> Iterator[Row]:
        for client in clients:
            group = self.group_of[client]
            yield from self.stores[group].iterate(states[group], [client])

    def write(
        self,
        states: States,
        clients: Sequence[int] | np.ndarray,
        values: Sequence[Sequence[np.ndarray]],
        round_num: int,
    ) -> States:
        clients, written = np.asarray(clients, np.int64), []
        for group, (store, state) in enumerate(zip(self.stores, states, strict=True)):
            members = np.flatnonzero(self.group_of[clients] == group)
            written.append(store.write(state, clients[members], [values[member] for member in members], round_num))
        return tuple(written)

    def find_files(self, states: States) -> tuple[StoreState | None, ...] | None:
        found = tuple(store.find_files(state) for store, state in zip(self.stores, states, strict=True))
        return found if any(state is not None for state in found) else None

    def forget(self, needed: Sequence[tuple[StoreState | None, ...]]) -> None:
        for store, states in zip(self.stores, zip(*needed, strict=True), strict=False):
            store.forget([state for state in states if state is not None])
