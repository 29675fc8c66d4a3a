"""`clients_by_round.csv.gz`: what each evaluated client reaches in each evaluated round. Imports no TensorFlow.

A row holds the round, the client's name, its model's, and for each split the loss and the metrics; a cell is empty
where nothing is known. Each round is a gzip member of its own, which is appended; `pandas.read_csv` and `zcat` read
them as one table. A run that goes on keeps the members up to its checkpoint, so that a kill changes no byte.
"""

import hashlib
import pathlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from datasets.federated_data import ClientFiles
from files.reading import open_regular
from launch.runs.columns import CLIENT, LOSS, MODEL, ROUND
from launch.runs.errors import RunFolderError
from launch.runs.round_table import GrowingFile
from launch.runs.tables import blank_nan, format_cell, format_lines
from launch.runs.task_columns import TaskColumns

SPLITS = ("test", "validation")
_GZIP = 16 + zlib.MAX_WBITS  # zlib's way to ask for gzip's header; its time is 0
_LEVEL = 6
_MOST_MEMBER_BYTES = 2**28  # of a round: some million clients
_PIECE_BYTES = 2**16


class ClientResults(NamedTuple):
    """One value a client, float64 (clients,), NaN where nothing is known.

    Attributes:
      metric: the main one.
      loss: the mean.
      further: the task's other metrics, by name.
      undefined: by the index of a client with examples, the metrics that these leave undefined, and why, as
        `launch.training.evaluation` has it.
    """

    metric: np.ndarray
    loss: np.ndarray
    further: dict[str, np.ndarray]
    undefined: dict[int, dict[str, str]]


class ClientRounds:
    """The file. An evaluation gives it the results of a state, the loop over rounds the number of their round.

    Args:
      clients: whose results are written, in this order.
      task: what their columns are called after.
    """

    def __init__(self, clients: Sequence[ClientFiles], task: TaskColumns):
        self._clients = clients
        self._metrics = (task.of_client, *task.further_of_client)
        self._digest = hashlib.sha256()
        self._rows: list[list[str]] = []

    def begin(self, path: pathlib.Path, last_round: int) -> None:
        """Opens the file, with the rounds up to that of the checkpoint; 0 starts anew.

        Raises:
          RunFolderError: the file cannot be read.
        """
        self._file = GrowingFile(path)
        kept = []
        for round_num, member, text in _read_members(path) if last_round and path.exists() else ():
            if round_num > last_round:
                break
            kept.append(member)
            self._digest.update(text)
        if kept:
            self._file.keep(b"".join(kept))
        else:
            path.unlink(missing_ok=True)

    def take(self, models: Sequence[str], results: Mapping[str, ClientResults]) -> None:
        """Notes the results of a round, which `append` writes.

        Args:
          models: the name of each client's model, by its index.
          results: by split, a value for each client by its index.
        """
        measured = []
        for split in SPLITS:
            of_split = results[split]
            measured += map(blank_nan, (of_split.loss, of_split.metric, *of_split.further.values()))
        self._rows = [
            [client.name, models[client.index], *(values[client.index] for values in measured)]
            for client in self._clients
        ]

    def append(self, round_num: int) -> None:
        """Writes the rows that were noted last, as those of this round."""
        rows = [[format_cell(value) for value in (round_num, *row)] for row in self._rows]
        if self._file.is_empty:
            named = [f"{split}_{name}" for split in SPLITS for name in (LOSS, *self._metrics)]
            rows.insert(0, [ROUND, CLIENT, MODEL, *named])
        text = format_lines(rows).encode()
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._file.append(packer.compress(text) + packer.flush())
        self._digest.update(text)

    def digest(self) -> str:
        """SHA-256 of all rows, in hexadecimal."""
        return self._digest.hexdigest()


def read_clients_by_round(path: pathlib.Path) -> str:
    """The whole table as CSV, also while its run goes on.

    Raises:
      RunFolderError: the file cannot be read.
    """
    return "".join(text.decode() for _, _, text in _read_members(path))


def _read_members(path: pathlib.Path) -> Iterator[tuple[int, bytes, bytes]]:
    """(round, member as it is, its text) of the whole members; one that a kill has cut off is left out."""
    try:
        with open_regular(path) as file:
            content = file.read()
        start = 0
        while start < len(content):
            end, text = _unpack(content, start)
            if not end:
                return
            # The first line of the first member names the columns.
            yield int(text.split(b"\n")[0 if start else 1].split(b",")[0]), content[start:end], text
            start = end
    except (OSError, ValueError, IndexError, zlib.error):
        raise RunFolderError(f"{path}: damaged; restore it, or start a new run") from None


def _unpack(content: bytes, start: int) -> tuple[int, bytes]:
    """Where the member that begins at `start` ends, 0 if it is cut off, and its text."""
    unpacker, parts, size_bytes, end = zlib.decompressobj(_GZIP), [], 0, start
    while not unpacker.eof and end < len(content):
        # By pieces, since zlib copies what lies behind a member.
        piece = content[end : end + _PIECE_BYTES]
        parts.append(unpacker.decompress(piece, _MOST_MEMBER_BYTES))
        size_bytes += len(parts[-1])
        if unpacker.unconsumed_tail or size_bytes > _MOST_MEMBER_BYTES:
            raise ValueError("larger than any round")
        end += len(piece) - len(unpacker.unused_data)
    return end if unpacker.eof else 0, b"".join(parts)
