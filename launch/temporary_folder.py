"""A temporary folder of its own for each command, which goes with it, or else with the next command.

TensorFlow, its converter, workers and Ray leave files in the temporary folder when they are killed, and many at a time.
So a command makes a folder that only its user may enter, and names it to the libraries and to what it starts. It holds
a lock on a file in there, which the kernel gives back however it ends: a folder whose lock is free has lost its owner.
Imports no TensorFlow.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator

PREFIX = "fed_tmp_"  # short: a socket's path has room for 107 characters, and Ray puts 66 after its folder
OWNER_FILE = ".owner"
GRACE_S = 3600.0  # until a folder without its lock's file is known to have no owner that is about to make one
VARIABLE = "TMPDIR"
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def find_shared_folder() -> pathlib.Path:
    """The temporary folder that all commands share, also where this one has one of its own."""
    folder = pathlib.Path(tempfile.gettempdir())
    return folder.parent if folder.name.startswith(PREFIX) else folder


@contextlib.contextmanager
def own_temporary_folder() -> Iterator[None]:
    """Inside, temporary files of this process and of those that it starts go to a folder that is then removed.

    It lies beside that of the command that started this one, not in it: paths of sockets are short. What commands left
    that were killed is removed first. Where no folder can be made, nothing changes.
    """
    shared = find_shared_folder()
    sweep(shared)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a full or read-only disk: who needs a temporary file will say so
            folder = stack.enter_context(_make_folder(shared))
            stack.enter_context(_use(folder))
        yield


@contextlib.contextmanager
def _make_folder(shared: pathlib.Path) -> Iterator[str]:
    folder, process = tempfile.mkdtemp(prefix=PREFIX, dir=shared), os.getpid()
    try:
        draft = os.path.join(folder, f"{OWNER_FILE}.draft")
        with open(draft, "x") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            os.rename(draft, os.path.join(folder, OWNER_FILE))  # nobody finds it without its lock
            yield folder
    finally:
        if os.getpid() == process:  # not in a copy of the process that a library has forked
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _use(folder: str) -> Iterator[None]:
    before, variable = tempfile.tempdir, os.environ.get(VARIABLE)
    tempfile.tempdir = os.environ[VARIABLE] = folder
    try:
        yield
    finally:
        tempfile.tempdir = before
        if variable is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = variable


def sweep(shared: pathlib.Path) -> int:
    """Removes the folders of our user's commands that have ended without doing so; returns how many.

    No link is followed, and nothing of another user is touched, whatever it is called.
    """
    try:
        place = os.open(shared, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        with os.scandir(place) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(PREFIX)]
        return sum(_remove_if_left(place, name) for name in names)
    finally:
        os.close(place)


def _remove_if_left(place: int, name: str) -> bool:
    """Removes a folder in an open one if it is ours and has no owner any more; returns whether it did."""
    with contextlib.ExitStack() as stack:
        try:
            folder = os.open(name, OPEN_FOLDER, dir_fd=place)
            stack.callback(os.close, folder)
            found = os.fstat(folder)
            if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700:
                return False
            if not _has_lost_its_owner(folder, stack) and time.time() - found.st_mtime < GRACE_S:
                return False
            shutil.rmtree(name, ignore_errors=True, dir_fd=place)
        except OSError:  # it is no folder, is being removed, or has an owner
            return False
    return True


def _has_lost_its_owner(folder: int, stack: contextlib.ExitStack) -> bool:
    """Whether nobody holds the lock, which is then ours; False if there is none. Raises OSError if somebody does."""
    try:
        owner = os.open(OWNER_FILE, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return False
    stack.callback(os.close, owner)
    fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return True
