"""The numbers in the names of layers that were given none, which Keras counts on through the whole process."""

import contextlib
import sys
from collections.abc import Iterator

import tensorflow as tf


@contextlib.contextmanager
def number_layers_anew() -> Iterator[None]:
    """Has Keras number layers inside from 1 on, as in a user's first model, and after it as if none were built.

    There is no public way to set these numbers back; the version is locked.
    """
    numbered = sys.modules[tf.keras.backend.get_uid.__module__].PER_GRAPH_OBJECT_NAME_UIDS
    before = dict(numbered)
    numbered.clear()
    try:
        yield
    finally:
        numbered.clear()
        numbered.update(before)
