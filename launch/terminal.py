"""What a command prints, on any terminal and on none: one place for all commands. Imports no TensorFlow.

The text may hold names and files of others. So what steers a terminal is written out, what it cannot show is replaced,
and where nobody listens it goes nowhere.
"""

import codecs
import contextlib
import io
import os
import re
import sys
import threading
import unicodedata
from collections.abc import Iterator
from typing import Any

from launch.runs.shown_text import escape_lines

REPLACING = "federated_replace"  # the name of an error handler, as `open` takes it
_SURROGATE = re.compile("[\ud800-\udfff]")
NOT_UTF8 = "not UTF-8; expected arguments and names of files in UTF-8, with PYTHONUTF8=1 where the locale is not"


def _replace(error: UnicodeError) -> tuple[str, int]:
    """What stands in the place of characters that an encoding lacks: the nearest in ASCII, else a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(map(_find_nearest, lacking)), error.end


def _find_nearest(letter: str) -> str:
    return unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"


codecs.register_error(REPLACING, _replace)


class _ShownText:
    """A text stream in which what steers a terminal is written out, see `escape_lines`."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(escape_lines(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_showing = threading.Lock()
_stack, _num_showing = contextlib.ExitStack(), 0  # what the first block has opened, and how many are entered


@contextlib.contextmanager
def show_text() -> Iterator[None]:
    """Inside, standard output takes any text, and both streams exist, whatever this program was started with.

    The streams are the whole program's: of blocks in several threads the last one puts back what the first one found.
    """
    global _num_showing
    with _showing:
        if not _num_showing:
            _stack.enter_context(_replace_streams())
        _num_showing += 1
    try:
        yield
    finally:
        with _showing:
            _num_showing -= 1
            if not _num_showing:
                _stack.close()


@contextlib.contextmanager
def _replace_streams() -> Iterator[None]:
    _fill_descriptors()
    before = sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        out, err = (stream or stack.enter_context(open(os.devnull, "w", encoding="utf-8")) for stream in before)
        for stream in (out, err):
            stack.enter_context(_replace_what_it_lacks(stream))
        sys.stdout, sys.stderr = _ShownText(out), err
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


def _fill_descriptors() -> None:
    """Opens those of 0 to 2 that were closed, or the next file, such as a table, would be taken for standard output."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
            os.set_inheritable(descriptor, True)


@contextlib.contextmanager
def _replace_what_it_lacks(stream: Any) -> Iterator[None]:
    if not isinstance(stream, io.TextIOWrapper):
        yield
        return
    before = stream.errors
    stream.reconfigure(errors=REPLACING)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):  # what is left cannot be written, or the stream is closed
            stream.reconfigure(errors=before)


def is_broken(text: str) -> bool:
    """Whether a text came from bytes that are not UTF-8, so that it holds halves of surrogate pairs."""
    return _SURROGATE.search(text) is not None
