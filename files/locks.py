"""Opens the files that processes lock, in folders that others may have prepared."""

import errno
import os
import stat
from typing import BinaryIO


def open_lock_file(path: str | os.PathLike) -> BinaryIO:
    """The file at `path`, made if it is not there; what it holds stays, and a symbolic link is not followed.

    Raises:
      OSError: it cannot be opened for writing, or is a link, a pipe or a device, at which nobody waits; it says which.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise _explain(path, errno.ELOOP, "a symbolic link") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _explain(path, errno.EINVAL, "a pipe or a device")
    return os.fdopen(descriptor, "r+b", buffering=0)


def _explain(path: str | os.PathLike, number: int, what: str) -> OSError:
    return OSError(number, f"its {os.path.basename(path)} is {what}, expected a file for locks; remove it", str(path))
