"""Checkpoints of a run: the state after a round, saved atomically, the last two kept."""

import asyncio
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

from tff_algos.process import State

KEPT = 2


class Checkpoints:
    """Saves and loads states by round number in a folder.

    Only the leaves are saved; their nesting comes from a template when they are loaded. So a leaf may have another
    shape than the template's, as a list of models that grows has.
    """

    def __init__(self, path: pathlib.Path):
        for unfinished in path.glob("*_temp*"):  # a save that was killed
            shutil.rmtree(unfinished, ignore_errors=True)
        self._manager = tff.program.FileProgramStateManager(str(path), keep_total=KEPT, keep_first=False)
        self._loop = asyncio.new_event_loop()  # its own, never installed: TFF's contexts look for the current one
        gc.collect()
        gc.freeze()  # what the libraries made stays; it need not be searched after each save (see `save`)

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(coroutine)

    def last_round(self) -> int:
        """The round of the newest checkpoint, 0 if there is none."""
        return max(self._run(self._manager.get_versions()) or [0])

    def save(self, state: State, round_num: int) -> None:
        """Saves the state after a round, unless it is there already. Ctrl-C takes effect when it is saved."""
        if round_num > self.last_round():
            with _hold_back_interrupt():
                self._run(self._manager.save(tf.nest.flatten(state), round_num))
            gc.collect()  # a SavedModel is full of reference cycles: 0.4 MB a save that Python would keep for long

    def load(self, round_num: int, template: State) -> State:
        """The state after a round, nested as `template`."""
        leaves = tf.nest.flatten(template)
        return tf.nest.pack_sequence_as(template, self._run(self._manager.load(round_num, [0] * len(leaves))))

    def close(self) -> None:
        """Ends the event loop and its threads."""
        self._run(self._loop.shutdown_default_executor())
        self._loop.close()


@contextlib.contextmanager
def _hold_back_interrupt() -> Iterator[None]:
    """Lets SIGINT wait until the block is done, so that it cannot stop a save half-way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []
    handler = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        raise KeyboardInterrupt
