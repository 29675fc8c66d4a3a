"""Opens the files that processes lock, in folders that others may have prepared."""

import os
from typing import BinaryIO


def open_lock_file(path: str | os.PathLike) -> BinaryIO:
    """The file at `path`, made if it is not there; what it holds stays, and a symbolic link is not followed.

    Raises:
      OSError: it cannot be opened for writing; of a link with ELOOP, "Too many levels of symbolic links".
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    return os.fdopen(descriptor, "r+b", buffering=0)
