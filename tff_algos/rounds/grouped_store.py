"""What clients keep, where groups of them keep arrays of other shapes, such as models of several architectures.

Each group has a `ClientStore` of its own, whose methods are here for all clients together. Imports no TensorFlow.
"""

import pathlib
from collections.abc import Iterator, Sequence

import numpy as np

from tff_algos.rounds.client_store import MOST_BYTES, ClientStore, KeptState, Row

States = tuple[KeptState, ...]  # one for each group


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
            places = np.flatnonzero(self.group_of[clients] == group)
            written.append(store.write(state, clients[places], [values[place] for place in places], round_num))
        return tuple(written)

    def find_files(self, states: States) -> tuple[KeptState | None, ...] | None:
        found = tuple(store.find_files(state) for store, state in zip(self.stores, states, strict=True))
        return found if any(state is not None for state in found) else None

    def forget(self, needed: Sequence[tuple[KeptState | None, ...]]) -> None:
        for store, states in zip(self.stores, zip(*needed, strict=True), strict=False):
            store.forget([state for state in states if state is not None])
