"""A folder with a journal, a line a record, that one command at a time writes and the next one goes on with."""

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Iterator

from files.locks import open_lock_file
from launch.runs.errors import RunFolderError

LOCK_FILE = ".lock"


@contextlib.contextmanager
def hold_journal(folder: pathlib.Path, journal: str, what: str) -> Iterator[None]:
    """Keeps other commands out of the folder, which is made. The kernel lets it go however this process ends.

    Args:
      folder: of the journal and its runs.
      journal: the name of the file.
      what: it is of, such as "search".

    Raises:
      RunFolderError: another command has it, or a link stands where a file would be written in place.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Both are written in place, and somebody else may have made the folder.
    for name in (journal, LOCK_FILE):
        if (folder / name).is_symlink():
            raise RunFolderError(f"{folder}: its {name} is a symbolic link, no file of a {what}; remove it")
    with open_lock_file(folder / LOCK_FILE) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFolderError(
                f"{folder}: a {what} goes on there; wait for it or choose another --runs_dir"
            ) from None
        yield


def drop_torn_line(path: pathlib.Path) -> None:
    """Cuts off the record that was being written when the machine went down."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
