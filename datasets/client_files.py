"""The cache of client files: a folder for each (data, partition), with an index and files of raw arrays.

There is a file for each client, split and array: little-endian, in C order, without a header. A folder gets its final
name only when it is complete, so it can be read without a lock, and two processes that write the same one do not
disturb each other.
"""

import contextlib
import fcntl
import json
import math
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from datasets.cache_folder import default_cache_dir
from datasets.errors import DatasetError
from datasets.federated_data import SPLITS
from datasets.lock_file import open_lock_file

# On disk the older word stays, so that what is in the cache is found.
FORMAT_NAME = "federated-suite client shards"
# Part of each digest: raise it when the files change, or how a seed divides the examples.
FORMAT_VERSION = 1
INDEX_FILE = "index.json"
LABEL_SIZE = "label_bytes"
LABEL_BYTES = 4  # of a class, int32; an index of other labels says how many theirs have
_WRITING_PREFIX = ".writing-"
# Writing takes seconds; a draft as old as this is one of a process that was killed.
_ABANDONED_AFTER_S = 24 * 3600
_ENTRY_PATTERN = re.compile(rf"({re.escape(_WRITING_PREFIX)})?[0-9a-f]{{64}}(-\w+)?")

# For each client: split -> (x, y).
ClientSplits = list[dict[str, tuple[np.ndarray, np.ndarray]]]


def default_client_dir() -> str:
    """Where client files are kept unless the user says otherwise: in the user's cache folder."""
    return default_cache_dir("shards")


def get_client_prefix(client: int) -> str:
    """The start of a client's file names."""
    return f"client_{client}"


def open_or_write_entry(
    client_dir: str, digest: str, make_splits: Callable[[], ClientSplits]
) -> tuple[str, dict[str, Any]]:
    """Finds the cache entry, or writes it if it is missing or damaged (a file missing or of the wrong size).

    Args:
      client_dir: the cache folder; made if it does not exist.
      digest: 64 hex digits, the entry's name.
      make_splits: called only if the entry must be written.

    Returns:
      The entry's absolute path, and its index: `clients` (for each, split -> number of examples) and `files` (name ->
      bytes).

    Raises:
      DatasetError: the folder cannot be written.
    """
    client_dir = os.path.abspath(os.path.expanduser(client_dir))
    entry = os.path.join(client_dir, digest)
    index = _read_intact_index(entry)
    if index is None:
        try:
            os.makedirs(client_dir, exist_ok=True)
            with _hold_lock(client_dir):
                _remove_abandoned_drafts(client_dir)
                # Another process may have written it during the wait.
                index = _read_intact_index(entry) or _write_entry(client_dir, digest, make_splits())
        except OSError as error:
            raise DatasetError(
                f"cannot write client files into {client_dir}: {error.strerror or error}; choose another --client_dir"
            ) from None
    return entry, index


def _read_index(entry: str) -> dict[str, Any] | None:
    """The index of an entry that this module wrote, complete or not; None if there is none."""
    try:
        with open(os.path.join(entry, INDEX_FILE), encoding="utf-8") as file:
            index = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return index if isinstance(index, dict) and index.get("format") == FORMAT_NAME else None


def _read_intact_index(entry: str) -> dict[str, Any] | None:
    index = _read_index(entry)
    if index is None or index.get("version") != FORMAT_VERSION:
        return None
    try:
        sizes = {item.name: item.stat().st_size for item in os.scandir(entry)}
    except OSError:
        return None
    try:
        is_intact = all(sizes.get(name) == num_bytes for name, num_bytes in index["files"].items())
        for client, counts in enumerate(index["clients"]):
            files = {split: f"{get_client_prefix(client)}.{split}.y" for split in SPLITS}
            label_bytes = index.get(LABEL_SIZE, LABEL_BYTES)
            is_intact &= all(index["files"][files[split]] == label_bytes * counts[split] for split in SPLITS)
    except (KeyError, TypeError, AttributeError):
        return None
    return index if is_intact else None


def _write_entry(client_dir: str, digest: str, splits: ClientSplits) -> dict[str, Any]:
    index = _make_index(splits)
    draft = os.path.join(client_dir, f"{_WRITING_PREFIX}{digest}-{secrets.token_hex(8)}")
    os.mkdir(draft)  # as the umask says; a folder of `tempfile` would be ours alone
    try:
        # The index comes first, so that a draft left by a killed process is known as ours.
        with open(os.path.join(draft, INDEX_FILE), "w", encoding="utf-8") as file:
            json.dump(index, file)
        for name, array in _iterate_files(splits):
            array.tofile(os.path.join(draft, name))
        _put_in_place(draft, os.path.join(client_dir, digest))
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return index


def write_open_entry(entry: str) -> None:
    """Makes the folder of an entry whose clients come one by one, unless it is there. Raises OSError.

    By its index `clean_client_dir` knows it as an entry; it names no files.
    """
    path = os.path.join(entry, INDEX_FILE)
    if os.path.exists(path):
        return
    os.makedirs(entry, exist_ok=True)
    index = {"format": FORMAT_NAME, "version": FORMAT_VERSION, "clients": [], "files": {}}
    write_whole(path, json.dumps(index).encode())


def write_whole(path: str, content: bytes) -> None:
    """Writes a file that gets its name when it is complete. Raises OSError."""
    descriptor, draft = tempfile.mkstemp(prefix=_WRITING_PREFIX, dir=os.path.dirname(path))
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def _iterate_files(splits: ClientSplits) -> Iterator[tuple[str, np.ndarray]]:
    for client, parts in enumerate(splits):
        for split in SPLITS:
            for kind, array in zip("xy", parts[split], strict=True):
                yield f"{get_client_prefix(client)}.{split}.{kind}", array


def _make_index(splits: ClientSplits) -> dict[str, Any]:
    label_bytes = {
        parts[split][1].dtype.itemsize * math.prod(parts[split][1].shape[1:]) for parts in splits for split in SPLITS
    }
    return {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "clients": [{split: len(parts[split][1]) for split in SPLITS} for parts in splits],
        "files": {name: array.nbytes for name, array in _iterate_files(splits)},
        **({} if label_bytes == {LABEL_BYTES} else {LABEL_SIZE: max(label_bytes)}),
    }


@contextlib.contextmanager
def _hold_lock(client_dir: str) -> Iterator[None]:
    """Spares a second process the work. A file system without locks is safe, too: only the rename matters."""
    with open_lock_file(os.path.join(client_dir, ".lock")) as file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_abandoned_drafts(client_dir: str) -> None:
    for item in os.scandir(client_dir):
        # Without locks, another process may put its draft in place between the listing and the look.
        with contextlib.suppress(FileNotFoundError):
            if item.name.startswith(_WRITING_PREFIX) and time.time() - item.stat().st_mtime > _ABANDONED_AFTER_S:
                shutil.rmtree(item.path, ignore_errors=True)


def _put_in_place(draft: str, entry: str) -> None:
    """Renames the draft to its final name. Another process's intact entry stays; a damaged one is replaced."""
    with contextlib.suppress(OSError):  # The name is taken.
        os.rename(draft, entry)
        return
    if _read_intact_index(entry) is None:
        shutil.rmtree(entry)
        os.rename(draft, entry)


def clean_client_dir(client_dir: str) -> int:
    """Deletes the cache entries, finished or abandoned, and nothing else. Returns the bytes freed.

    A folder is an entry if its name is a digest and its index file is this module's. Don't call it while a run uses
    the cache.

    Raises:
      DatasetError: an entry cannot be deleted.
    """
    freed_bytes = 0
    try:
        for entry in _find_entries(client_dir):
            num_bytes = sum(file.stat(follow_symlinks=False).st_size for file in os.scandir(entry))
            shutil.rmtree(entry)
            freed_bytes += num_bytes
    except OSError as error:
        raise DatasetError(f"cannot delete {error.filename}: {error.strerror or error}") from None
    return freed_bytes


def _find_entries(client_dir: str) -> list[str]:
    if not os.path.isdir(client_dir):
        return []
    folders = [item for item in os.scandir(client_dir) if item.is_dir(follow_symlinks=False)]
    return [item.path for item in folders if _ENTRY_PATTERN.fullmatch(item.name) and _read_index(item.path)]
