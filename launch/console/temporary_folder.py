"""A temporary folder of its own for each command, which goes with it, or else with the next command.

TensorFlow, its converter, workers and Ray leave files in the temporary folder when they are killed, and many at a time.
So a command makes a folder that only its user may enter, and names it to the libraries and to what it starts. It holds
a lock on the folder, which the kernel gives back however it ends: a folder whose lock is free has lost its owner.
Imports no TensorFlow.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import stat
import tempfile
from collections.abc import Iterator

# Short: a socket's path has room for 107 characters, and Ray puts 66 after its folder. Earlier versions, which locked a
# file in the folder, called theirs fed_tmp_.
PREFIX = "fed_cmd_"
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
    shared, before = find_shared_folder(), (tempfile.tempdir, os.environ.get("TMPDIR"))
    sweep(shared)
    with contextlib.ExitStack() as stack:
        # On a full or read-only disk, who needs a temporary file will say so.
        with contextlib.suppress(OSError):
            draft = tempfile.mkdtemp(prefix=f".{PREFIX}", dir=shared)
            stack.callback(_remove_own, draft, os.getpid())
            lock = os.open(draft, OPEN_FOLDER)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
            folder = draft.replace(f".{PREFIX}", PREFIX)
            # Only now does it get the name by which others look for it: nobody finds it without its lock.
            os.rename(draft, folder)
            stack.callback(_remove_own, folder, os.getpid())
            stack.callback(_point_to, *before)
            _point_to(folder, folder)
        yield


def _point_to(folder: str | None, variable: str | None) -> None:
    tempfile.tempdir, os.environ["TMPDIR"] = folder, variable or ""
    if variable is None:
        del os.environ["TMPDIR"]


def _remove_own(folder: str, process: int) -> None:
    # Not in a copy of the process that a library has forked, which runs its parent's ends as well.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(shared: pathlib.Path) -> int:
    """Removes the folders of our user's commands that have ended without doing so; returns how many.

    No link is followed, and nothing of another user is touched, whatever it is called.
    """
    num_removed = 0
    for folder in shared.glob(f"{PREFIX}*"):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):  # it is no folder, or has an owner
            lock = os.open(folder, OPEN_FOLDER)
            stack.callback(os.close, lock)
            found = os.fstat(lock)
            if found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) == 0o700:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
                num_removed += 1
    return num_removed
