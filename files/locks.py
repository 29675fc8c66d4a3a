"""Locks on files and folders, which others may have prepared; the kernel gives them back however a process ends."""

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from typing import BinaryIO

# Beyond these lie other machines, of whose locks the kernel here may know nothing.
_REMOTE = re.compile(r"nfs\d*|cifs|smb\d*|fuse(\..*)?|virtiofs|ceph|glusterfs|lustre|gpfs|beegfs|afs|vboxsf")
# Somebody may lock a folder that all write into, and keep it so.
_PATIENCE_S = 2.0


def open_lock_file(path: str | os.PathLike) -> BinaryIO:
    """The file at `path`, made if it is not there; what it holds stays, and a symbolic link is not followed.

    Raises:
      OSError: it cannot be opened for writing, or is a link, a pipe or a device, at which nobody waits; it says which.
    """
    # Without O_NONBLOCK, opening a pipe waits for its other end.
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


@contextlib.contextmanager
def hold_folder(folder: str | os.PathLike) -> Iterator[None]:
    """Holds a folder in the block, together with others who do. Where there are no locks, nothing is held.

    Whoever takes the folder alone waits for none, so this waits for a moment at most.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            until = time.monotonic() + _PATIENCE_S
            while not _try_lock(descriptor, fcntl.LOCK_SH) and time.monotonic() < until:
                time.sleep(0.01)
        yield


@contextlib.contextmanager
def take_folder(folder: str | os.PathLike) -> Iterator[bool | None]:
    """Yields whether nobody holds a folder, which then nobody can in the block; None if that cannot be known.

    It cannot where locks do nothing, or where other machines may hold the folder without this one's knowing.
    """
    with contextlib.ExitStack() as stack:
        try:
            # A second descriptor that gets a lock beside the first shows that locks do nothing here.
            first, second = (os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for _ in range(2))
            stack.callback(os.close, first)
            stack.callback(os.close, second)
            is_alone: bool | None = _try_lock(first, fcntl.LOCK_EX)
            if is_alone and (_try_lock(second, fcntl.LOCK_SH) or _is_remote(first)):
                is_alone = None
        except OSError:
            is_alone = None
        yield is_alone


def _try_lock(descriptor: int, kind: int) -> bool:
    """Whether the lock was taken; False if somebody has another. Raises OSError where there are no locks."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_remote(descriptor: int) -> bool:
    """Whether an open folder lies on a file system that other machines share."""
    number = os.fstat(descriptor).st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            mounts = [line.split() for line in file]
    except OSError:
        # Only Linux has this file.
        return False
    kinds = [fields[fields.index("-") + 1] for fields in mounts if fields[2] == device and "-" in fields]
    return any(map(_REMOTE.fullmatch, kinds))
