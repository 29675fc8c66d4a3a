"""Files and folders that get their names when they are complete. So whoever reads one, at any moment, finds it whole.

What is being written lies beside its place, as `.<process>.<digits>.<name>`, in a folder that its writer holds by a
lock. A kill leaves it there, for `remove_unfinished`. The number of a process alone says little: another container
that has the folder, too, counts its own.
"""

import contextlib
import errno
import functools
import os
import pathlib
import re
import secrets
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

from files.locks import hold_folder, take_folder

_DRAFT = re.compile(r"\.(\d+)\.")
# No write takes so long.
ABANDONED_AFTER_S = 24 * 3600


@contextlib.contextmanager
def replace_whole(path: str | os.PathLike, makes_folder: bool = True) -> Iterator[pathlib.Path]:
    """Yields a path beside `path`, with the same suffix, to write to. It becomes `path` at the end of the block.

    If the block fails, what was written is removed and `path` stays as it was.

    Args:
      path: of the file.
      makes_folder: whether a folder that is missing is made.

    Raises:
      OSError: the file cannot be written; its `filename` is `path`, also where the system names none, on a full disk.
    """
    path = pathlib.Path(path)
    draft = _name_draft(path)
    with name_in_errors(path):
        if makes_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        with hold_folder(path.parent):
            try:
                yield draft
                os.replace(draft, path)
            finally:
                # There may be no folder.
                with contextlib.suppress(OSError):
                    draft.unlink()


def write_whole(path: str | os.PathLike, *parts: bytes, mode: int = 0o666) -> None:
    """Writes a file of these bytes, one part after the other.

    Args:
      path: of the file.
      *parts: its content.
      mode: who may read and write it, less what the umask forbids.

    Raises:
      OSError: see `replace_whole`.
    """
    with replace_whole(path) as draft, open(draft, "xb", opener=functools.partial(os.open, mode=mode)) as file:
        file.writelines(parts)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Writes a file of text in UTF-8. Raises OSError as `replace_whole` does."""
    with replace_whole(path) as draft:
        draft.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def replace_folder(path: str | os.PathLike, is_whole: Callable[[], bool] = lambda: False) -> Iterator[pathlib.Path]:
    """Yields a new folder beside `path`, which becomes `path` at the end of the block; all that is missing is made.

    If the block fails, the new folder is removed and `path` stays as it was. A kill may leave no `path`, but never half
    of one.

    Args:
      path: of the folder.
      is_whole: asked if something has the name by then. What is whole stays, since another process was quicker; else
        it is replaced.

    Raises:
      OSError: see `replace_whole`.
    """
    path = pathlib.Path(path)
    draft = _name_draft(path)
    with name_in_errors(path), contextlib.ExitStack() as stack:
        path.parent.mkdir(parents=True, exist_ok=True)
        stack.enter_context(hold_folder(path.parent))
        # Others may read it, as the umask says; a folder of `tempfile` would be ours alone.
        draft.mkdir()
        stack.callback(_remove, draft)
        yield draft
        # A folder cannot take the place of one with content, so this one is moved away, as often as another one comes.
        while not _put_in_place(draft, path) and not is_whole():
            former = _name_draft(path)
            stack.callback(_remove, former)
            # Another process may move it away, too.
            with contextlib.suppress(FileNotFoundError):
                os.rename(path, former)


def _put_in_place(draft: pathlib.Path, path: pathlib.Path) -> bool:
    """Whether the name was free."""
    try:
        os.rename(draft, path)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        return False
    return True


def _name_draft(path: pathlib.Path) -> pathlib.Path:
    # Two threads may write one file, and nobody can put a link there beforehand, to have it written through.
    return path.with_name(f".{os.getpid()}.{secrets.token_hex(4)}.{path.name}")


@contextlib.contextmanager
def name_in_errors(path: str | os.PathLike) -> Iterator[None]:
    """Gives `path` as file name to an OSError of the block that names no other file than its unfinished one."""
    try:
        yield
    except OSError as error:
        named = os.path.basename(str(error.filename or ""))
        ours = rf"(\.{os.getpid()}\.[0-9a-f]{{8}}\.{re.escape(os.path.basename(path))})?"
        if error.errno and re.fullmatch(ours, named, re.DOTALL):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def remove_unfinished(folder: str | os.PathLike) -> None:
    """Removes, at any depth, what writes of this module left that were killed, those of earlier versions too.

    What somebody writes who still lives stays, here, in another container or on another machine: another command may
    be writing into the folder. Where locks do not say, and where a process of that number lives, only what is old goes.

    Raises:
      OSError: something cannot be removed.
    """
    found: dict[pathlib.Path, list[pathlib.Path]] = defaultdict(list)
    for path in pathlib.Path(folder).rglob(".[0-9]*.*"):
        if _DRAFT.match(path.name):
            found[path.parent].append(path)
    for parent, drafts in found.items():
        with take_folder(parent) as is_alone:
            if is_alone is False:
                continue
            for draft in drafts:
                if (is_alone and not _is_alive(int(_DRAFT.match(draft.name)[1]))) or _is_old(draft):
                    _remove(draft)


def _is_old(draft: pathlib.Path) -> bool:
    """Whether nothing of a draft was written for a day."""
    try:
        youngest = max(path.lstat().st_mtime for path in (draft, *draft.rglob("*")))
    except FileNotFoundError:
        # It got its name meanwhile.
        return False
    return time.time() - youngest > ABANDONED_AFTER_S


def _remove(path: pathlib.Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return process != os.getpid()
