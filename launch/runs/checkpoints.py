"""Checkpoints of a run: the state after a round, saved atomically, the last two kept."""

import asyncio
import concurrent.futures
import contextlib
import gc
import pathlib
import shutil
import signal
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from launch.progress import say
from launch.runs.errors import RunFolderError
from tff_algos.protocol import State

KEPT = 2
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PREFIX = "program_state_"


class Checkpoints:
    """Saves and loads states by round number in a folder.

    Only the leaves are saved; their nesting comes from a template when they are loaded. So a leaf may have another
    shape than the template's, as a list of models that grows has.
    """

    def __init__(self, path: pathlib.Path):
        for unfinished in path.glob("*_temp*"):  # a save that was killed
            shutil.rmtree(unfinished, ignore_errors=True)
        self._path = path
        self._manager = tff.program.FileProgramStateManager(str(path), _PREFIX, keep_total=KEPT, keep_first=False)
        self._loop = asyncio.new_event_loop()  # its own, never installed: TFF's contexts look for the current one
        # One thread: each that ever saves gets a heap of its own from the C library, 10 MB that it keeps.
        self._loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(max_workers=1))
        gc.collect()
        gc.freeze()  # what the libraries made stays; it need not be searched after each save (see `save`)

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(coroutine)

    def last_round(self) -> int:
        """The round of the newest checkpoint, 0 if there is none."""
        return max(self._run(self._manager.get_versions()) or [0])

    def save(self, state: State, round_num: int) -> None:
        """Saves the state after a round, unless it is there already. Ctrl-C and SIGTERM wait until it is saved."""
        if round_num > self.last_round():
            with _hold_back_stop():
                self._run(self._manager.save(tf.nest.flatten(state), round_num))
            gc.collect()  # a SavedModel is full of reference cycles: 0.4 MB a save that Python would keep for long

    def load(self, round_num: int, template: State) -> State:
        """The state after a round, nested as `template`."""
        leaves = tf.nest.flatten(template)
        return tf.nest.pack_sequence_as(template, self._run(self._manager.load(round_num, [0] * len(leaves))))

    def restore(self, template: State) -> tuple[int, State]:
        """(round, state) of the newest checkpoint that can be read, (0, `template`) if there is none at all.

        Damaged ones are removed if an older one serves.

        Raises:
          RunFolderError: no checkpoint can be read.
        """
        damaged: list[int] = []
        for round_num in sorted(self._run(self._manager.get_versions()) or (), reverse=True):
            try:
                state = self.load(round_num, template)
            except Exception:  # the readers of a damaged SavedModel raise errors of many types
                damaged.append(round_num)
                continue
            for newer in damaged:
                say(f"resume   the checkpoint of round {newer} is damaged; going on from round {round_num}")
                shutil.rmtree(self._path / f"{_PREFIX}{newer}")
            return round_num, state
        if damaged:
            raise RunFolderError(f"{self._path}: no checkpoint in it can be read; start the run anew")
        return 0, template

    def close(self) -> None:
        """Ends the event loop and its threads."""
        self._run(self._loop.shutdown_default_executor())
        self._loop.close()


@contextlib.contextmanager
def _hold_back_stop() -> Iterator[None]:
    """Lets Ctrl-C, SIGTERM and SIGHUP wait until the block is done, so that they cannot stop a save half-way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []
    handlers = {number: signal.signal(number, lambda number, _: came.append(number)) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
