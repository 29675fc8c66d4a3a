"""Files that processes lock, in folders that others may have prepared."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from typing import BinaryIO


def open_lock_file(path: str | os.PathLike) -> BinaryIO:
    """The file at `path`, made if it is not there; what it holds stays, and a symbolic link is not followed.

    Raises:
      OSError: it cannot be opened for writing; of a link with ELOOP, "Too many levels of symbolic links".
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    return os.fdopen(descriptor, "r+b", buffering=0)


@contextlib.contextmanager
def hold_lock(path: str | os.PathLike) -> Iterator[None]:
    """Waits for the lock on a file and holds it in the block; where the file system has no locks, nobody waits.

    Raises:
      OSError: see `open_lock_file`.
    """
    with open_lock_file(path) as file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
