"""Errors of reading in a line, and the files of a folder that can be read."""

import contextlib
import errno
import os
import pathlib
from collections.abc import Iterator
from typing import BinaryIO


def describe(error: object) -> str:
    """What an error says is wrong, without number and file name: "No such file or directory"."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


@contextlib.contextmanager
def explain_errors(
    path: str | os.PathLike, error_type: type[Exception], what: str = "cannot be read", fix: str = ""
) -> Iterator[None]:
    """Makes an OSError of the block one of `error_type`, in a line: "<path>: <what> (<reason>); <fix>".

    Args:
      path: what the line begins with.
      error_type: its only argument is the line.
      what: what went wrong.
      fix: what to do about it; "" if that is plain.
    """
    try:
        yield
    except OSError as error:
        raise error_type(f"{path}: {what} ({describe(error)}){fix and f'; {fix}'}") from None


def find_files(folder: str | os.PathLike, *patterns: str) -> list[pathlib.Path]:
    """The regular files below a folder of which a pattern is right, in order, links to such files among them.

    A pipe or a device is none, whatever it is called: who opened it would wait at it for ever.

    Args:
      folder: which need not exist.
      *patterns: as for `pathlib.Path.glob`.
    """
    found = {path for pattern in patterns for path in pathlib.Path(folder).glob(pattern)}
    return sorted(filter(os.path.isfile, found))


def open_regular(path: str | os.PathLike) -> BinaryIO:
    """Opens a regular file to read its bytes.

    Raises:
      OSError: it cannot be read, or is a pipe or a device, at which nobody waits.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not os.path.isfile(descriptor):
        is_folder = os.path.isdir(descriptor)
        os.close(descriptor)
        number, why = (errno.EISDIR, os.strerror(errno.EISDIR)) if is_folder else (errno.EINVAL, "no regular file")
        raise OSError(number, why, os.fspath(path))
    return os.fdopen(descriptor, "rb")


def read_regular(path: str | os.PathLike, max_bytes: int | None = None) -> bytes:
    """The content of a regular file.

    Args:
      path: of it.
      max_bytes: a larger one is not read: a file with holes claims any size. None: whatever it has.

    Raises:
      OSError: as `open_regular` does, or it is larger.
    """
    with open_regular(path) as file:
        if max_bytes is not None and os.fstat(file.fileno()).st_size > max_bytes:
            raise OSError(errno.EFBIG, f"larger than {max_bytes:,} bytes", os.fspath(path))
        return file.read()
