"""What a command prints, on any terminal and on none: one place for all commands. Imports no TensorFlow.

The text may hold names and files of others. So what steers a terminal is written out, and so is what it cannot show;
where nobody listens it goes nowhere.
"""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from launch.console.shown_text import escape_lines


class _ShownText:
    """A text stream in which what steers a terminal is written out, see `escape_lines`."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(escape_lines(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def show_text() -> Iterator[None]:
    """Inside, standard output takes any text, and both streams exist, whatever this program was started with."""
    # Those of 0 to 2 that were closed are opened, or the next file, such as a table, would be taken for the output.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # gets the lowest number that is free
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    before = sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        out, err = (stream or stack.enter_context(open(os.devnull, "w", encoding="utf-8")) for stream in before)
        if isinstance(out, io.TextIOWrapper):  # stderr writes out what its encoding lacks by itself
            stack.callback(_put_back, out, out.errors)
            out.reconfigure(errors="backslashreplace")
        sys.stdout, sys.stderr = _ShownText(out), err
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


def _put_back(stream: io.TextIOWrapper, errors: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # what is left cannot be written, or the stream is closed
        stream.reconfigure(errors=errors)
