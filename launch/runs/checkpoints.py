"""Checkpoints of a run: the state after a round in one file, written atomically, the last two kept.

`checkpoints/round_<n>.npz` holds `leaf_0`, `leaf_1`, ..., the leaves of the state in the order of `flatten_state`;
`version`, that of this format; and `digest`, the SHA-256 of all else. Their nesting comes from a template when they
are loaded. So a leaf may have another shape than the template's, as the models of a list that grows have. `record` is
what the run had written by then, JSON as bytes, see `launch.training.round_loop`.
"""

import contextlib
import hashlib
import io
import pathlib
import re
import signal
import threading
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import tree

from files.locks import take_folder
from files.reading import find_files
from files.writing import write_whole
from launch.console.progress import say
from launch.runs.errors import RunFolderError
from tff_algos.protocol import State

NUMBER_KINDS = "biufc"  # of `dtype.kind`: what an .npz file gives back as it was, without pickle


def flatten_state(state: Any) -> list[np.ndarray]:
    """The leaves of a state as arrays; a scalar, NumPy's or Python's, becomes an array of shape ().

    Raises:
      TypeError: a leaf is no number or array of numbers, for example None or a string.
    """
    leaves = []
    for value in tree.flatten(state):
        leaf = np.asarray(value)
        if leaf.dtype.kind not in NUMBER_KINDS:
            raise TypeError(f"a state holds {type(value).__name__} ({leaf.dtype}), expected arrays of numbers only")
        leaves.append(leaf)
    return leaves


def pack_state(template: Any, leaves: Sequence[np.ndarray]) -> Any:
    """The state nested as `template` with these leaves, whose shapes may differ from the template's.

    A leaf of shape () becomes a NumPy scalar.

    Raises:
      ValueError: there are more or fewer leaves than the template has.
    """
    expected = len(tree.flatten(template))
    if len(leaves) != expected:
        raise ValueError(f"{len(leaves)} leaves, expected {expected}")
    return tree.unflatten_as(template, [leaf[()] for leaf in leaves])


KEPT = 2  # the newest, and one to fall back on if that is damaged
VERSION = 2
_LEAF = "leaf_"
_UNFINISHED = ".[0-9]*.npz"  # what a save leaves that is killed
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BEST = "best_{}.npz"  # the state after the best round, see `launch.training.run_models`
_BEST_NAME = re.compile(r"best_(\d+)\.npz")
_NAME = re.compile(r"round_(\d+)\.npz")


def find_checkpoints(path: pathlib.Path) -> dict[int, pathlib.Path]:
    """The checkpoints in a folder, oldest first, by round number; none if there is no such folder."""
    matches = [(_NAME.fullmatch(inner.name), inner) for inner in find_files(path, "*")]
    return dict(sorted((int(match[1]), inner) for match, inner in matches if match))


class Checkpoints:
    """Saves and loads states by round number in a folder."""

    def __init__(self, path: pathlib.Path):
        with take_folder(path) as is_alone:  # else a run may be saving, which an evaluation does not disturb
            for unfinished in path.glob(_UNFINISHED) if is_alone else ():
                unfinished.unlink(missing_ok=True)
        self._path = path

    def last_round(self) -> int:
        """The round of the newest checkpoint, 0 if there is none."""
        return max(find_checkpoints(self._path), default=0)

    def save(self, state: State, round_num: int, record: str = "") -> None:
        """Saves the state after a round, unless it is there already. Ctrl-C and SIGTERM wait until it is saved.

        Raises:
          TypeError: a leaf of the state is no array of numbers.
        """
        with _hold_back_stop():
            # The loop saves at its end in any case, also if it has just saved, or had no round left to run.
            if round_num > self.last_round():
                _write(self._path / f"round_{round_num}.npz", flatten_state(state), record)
            # Also what a process has left that was killed before it came to this.
            for _, old in list(find_checkpoints(self._path).items())[:-KEPT]:
                old.unlink(missing_ok=True)

    def load(self, round_num: int, template: State) -> State:
        """The state after a round, nested as `template`. What a damaged checkpoint raises can be of any type."""
        return pack_state(template, _read(find_checkpoints(self._path)[round_num])[0])

    def read_record(self, round_num: int) -> str:
        """What was saved beside the state after a round."""
        return _read(find_checkpoints(self._path)[round_num])[1]

    def save_best(self, state: State, round_num: int) -> None:
        """Saves the state after a round that is the best so far. Ctrl-C and SIGTERM wait until it is saved."""
        with _hold_back_stop():
            _write(self._path / _BEST.format(round_num), flatten_state(state))

    def load_best(self, round_num: int, template: State) -> State:
        """The state after the best round, nested as `template`.

        Raises:
          RunFolderError: it is gone or damaged.
        """
        path = self._path / _BEST.format(round_num)
        try:
            return pack_state(template, _read(path)[0])
        except Exception:  # of many types, as in `restore`
            raise RunFolderError(
                f"{path}: gone or damaged, but round {round_num} is the best so far; restore it, or start a new run"
            ) from None

    def list_rounds(self) -> list[int]:
        """The rounds after which a state is kept, ascending: in a checkpoint, or because it was the best so far."""
        best = [_BEST_NAME.fullmatch(path.name) for path in find_files(self._path, _BEST.format("*"))]
        return sorted({*find_checkpoints(self._path), *(int(match[1]) for match in best if match)})

    def load_any(self, round_num: int, template: State) -> State:
        """The state after one of `list_rounds`, as from `load` or `load_best`, and raises what they do."""
        is_checkpoint = round_num in find_checkpoints(self._path)
        return self.load(round_num, template) if is_checkpoint else self.load_best(round_num, template)

    def prune_best(self, kept: Collection[int | None]) -> None:
        """Removes the states of best rounds other than these."""
        names = {_BEST.format(round_num) for round_num in kept}
        for path in self._path.glob(_BEST.format("*")):
            if path.name not in names:
                path.unlink()

    def restore(self, template: State) -> tuple[int, State]:
        """(round, state) of the newest checkpoint that can be read, (0, `template`) if there is none at all.

        Damaged ones are removed if an older one serves.

        Raises:
          RunFolderError: no checkpoint can be read.
        """
        damaged: dict[int, pathlib.Path] = {}
        for round_num, path in reversed(find_checkpoints(self._path).items()):
            try:
                state = self.load(round_num, template)
            except Exception:  # NumPy, zipfile and TensorFlow raise errors of many types for a damaged file
                damaged[round_num] = path
                continue
            # They must go: `save` would take the rounds up to theirs for saved already.
            for newer, damaged_path in damaged.items():
                say(f"resume   the checkpoint of round {newer} is damaged; going on from round {round_num}")
                damaged_path.unlink(missing_ok=True)
            return round_num, state
        if damaged:
            raise RunFolderError(f"{self._path}: no checkpoint in it can be read; start a new run")
        return 0, template


def _write(path: pathlib.Path, leaves: Sequence[np.ndarray], record: str = "") -> None:
    # Not forced to the disk, which would take longer than the rest. A power cut may thus damage the newest file; its
    # digest then tells, and the one before serves.
    named = {f"{_LEAF}{i}": leaf for i, leaf in enumerate(leaves)}
    encoded = np.frombuffer(record.encode(), np.uint8)
    # In memory first: a zip that cannot be written to a full disk complains once more when it is collected.
    content = io.BytesIO()
    np.savez(content, version=VERSION, digest=_compute_digest([*leaves, encoded]), record=encoded, **named)
    write_whole(path, content.getbuffer())


def _read(path: pathlib.Path) -> tuple[list[np.ndarray], str]:
    """(leaves, record)."""
    with np.load(path, allow_pickle=False) as file:
        if file["version"] != VERSION:
            raise ValueError(f"a checkpoint of version {file['version']}, expected {VERSION}")
        leaves = [file[f"{_LEAF}{i}"] for i in range(sum(name.startswith(_LEAF) for name in file.files))]
        record = file["record"]
        if not np.array_equal(file["digest"], _compute_digest([*leaves, record])):
            raise ValueError("the digest does not fit the leaves")
    return leaves, bytes(record).decode()


def _compute_digest(leaves: Sequence[np.ndarray]) -> np.ndarray:
    """SHA-256 of arrays with their dtypes and shapes, uint8 (32,)."""
    digest = hashlib.sha256()
    for leaf in leaves:
        digest.update(f"{leaf.dtype.str}{leaf.shape}".encode())
        digest.update(np.asarray(leaf, order="C"))
    return np.frombuffer(digest.digest(), np.uint8)


@contextlib.contextmanager
def _hold_back_stop() -> Iterator[None]:
    """Lets Ctrl-C, SIGTERM and SIGHUP wait until the block is done, so that they cannot stop a save half-way."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    came = []
    handlers = {number: signal.signal(number, lambda number, _: came.append(number)) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    # One is enough: the first says with which code the process ends.
    if came:
        signal.raise_signal(came[0])
