"""A cache of folders, each made once, by the digest of what it is made from.

An entry has an index, which says what format and version it is of, what else is known, and of each file the bytes and
the SHA-256; it has a sum of its own. An entry is used only if all of that is right, and is made anew otherwise. It is
written as a draft that gets its name when it is complete, so that it can be read without a lock.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from files.digests import compute_sum, describe_states
from files.locks import open_lock_file
from files.reading import find_files, read_regular
from files.writing import ABANDONED_AFTER_S, replace_folder, write_text

# Drafts are called as `files.writing` calls them, or as earlier versions did.
_DRAFT = re.compile(r"(\.\d+\.[0-9a-f]{8}\.[0-9a-f]{64}|\.writing-[0-9a-f]{64}-\w+)")
_ENTRY = re.compile(rf"[0-9a-f]{{64}}|{_DRAFT.pattern}")
_LOCK = re.compile(r"\.lock(-[0-9a-f]{2})?")
# The index of 300,000 clients has 250 MB.
_MAX_INDEX_BYTES = 2**30
# (entry, sum of its index) whose files this process has read and found right -> their states then
_checked: dict[tuple[str, str], int] = {}


class Cache(NamedTuple):
    """A folder of entries of one format.

    Attributes:
      folder: where they lie; made when the first is written.
      format_name: of the entries; what has another is not this cache's.
      version: an entry of another is made anew.
      index_file: the name of the index in an entry.
      may_trust_records: whether large files that have not changed since they were read, as far as the system says, are
        not read again; see `files.digests`.
    """

    folder: str
    format_name: str
    version: int
    index_file: str = "index.json"
    may_trust_records: bool = False

    def name_entry(self, digest: str) -> str:
        """The path of an entry, whether it is there or not; `digest` is 64 hex digits."""
        return os.path.join(self.folder, digest)

    def find(self, digest: str) -> dict[str, Any] | None:
        """The index of an entry that is whole; None if there is none.

        Its files are read once a process, and again when the system says that one has changed.
        """
        entry = self.name_entry(digest)
        index = self._read_any_index(entry)
        try:
            if index is None or index.get("version") != self.version or index["sum"] != _sum_up(index):
                return None
            sizes, sums, checked = index["files"], index["sums"], (os.path.abspath(entry), index["sum"])
            found, state = describe_states(os.path.join(entry, name) for name in sizes)
            if found != tuple(sizes.values()):
                return None
            # What this process has found right is read again only after a change.
            if _checked.get(checked) != state:
                for name in sizes:
                    if compute_sum(os.path.join(entry, name), self.may_trust_records) != sums[name]:
                        return None
        except (OSError, KeyError, TypeError, AttributeError, ValueError, RecursionError, MemoryError):
            return None
        _checked[checked] = state
        return index

    def find_or_write(self, digest: str, write: Callable[[str], Mapping[str, Any] | None]) -> dict[str, Any]:
        """The index of an entry, which is written unless it is there and whole. Other processes wait meanwhile.

        Args:
          digest: see `name_entry`.
          write: puts files into the folder of this path, and may return what else the index is to say, as JSON can
            hold it. It writes no other entry of this cache, which could wait for this one.

        Raises:
          OSError: the entry cannot be written.
        """
        index = self.find(digest)
        if index is not None:
            return index
        entry = self.name_entry(digest)
        os.makedirs(self.folder, exist_ok=True)
        # A lock for some digests each, so that not all others wait.
        with open_lock_file(os.path.join(self.folder, f".lock-{digest[:2]}")) as lock:
            # Without locks the work is done twice, and what is ready first stays.
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            for item in os.scandir(self.folder):
                # A draft may get its name between the listing and the look.
                with contextlib.suppress(FileNotFoundError):
                    if _DRAFT.fullmatch(item.name) and time.time() - item.stat().st_mtime > ABANDONED_AFTER_S:
                        shutil.rmtree(item.path, ignore_errors=True)
            # Another process may have written it meanwhile.
            index = self.find(digest)
            if index is not None:
                return index
            # Without locks two processes may come here; the first that is ready stays.
            with replace_folder(entry, lambda: self.find(digest) is not None) as draft:
                # First of all, so that a draft left by a killed process is known as ours.
                self._write_index(draft, {})
                known = write(str(draft)) or {}
                files = [path for path in find_files(draft, "*") if path.name != self.index_file]
                sizes = {path.name: path.stat().st_size for path in files}
                sums = {path.name: compute_sum(path) for path in files}
                index = self._write_index(draft, {**known, "files": sizes, "sums": sums})
        with contextlib.suppress(OSError):
            files = [os.path.join(entry, name) for name in sizes]
            _checked[os.path.abspath(entry), index["sum"]] = describe_states(files)[1]
        return self.find(digest) or index

    def _write_index(self, folder: pathlib.Path, known: Mapping[str, Any]) -> dict[str, Any]:
        index = {"format": self.format_name, "version": self.version, **known}
        # The sum is of the index as it will be read.
        index = json.loads(json.dumps(index))
        index["sum"] = _sum_up(index)
        write_text(folder / self.index_file, json.dumps(index))
        return index

    def _read_any_index(self, entry: str) -> dict[str, Any] | None:
        """The index of an entry of this format, whole or not; None if there is none."""
        try:
            index = json.loads(read_regular(os.path.join(entry, self.index_file), _MAX_INDEX_BYTES))
        except (OSError, ValueError, RecursionError, MemoryError):
            return None
        return index if isinstance(index, dict) and index.get("format") == self.format_name else None

    def clean(self) -> int:
        """Deletes the entries, finished or abandoned, and nothing else. Returns the bytes freed.

        A folder is an entry if it has the name and the index of one. Don't call it while a run uses the cache.

        Raises:
          OSError: one cannot be deleted.
        """
        freed_bytes = 0
        for item in os.scandir(self.folder) if os.path.isdir(self.folder) else ():
            if item.is_file(follow_symlinks=False) and _LOCK.fullmatch(item.name):
                os.remove(item.path)
            is_named = item.is_dir(follow_symlinks=False) and _ENTRY.fullmatch(item.name)
            if is_named and self._read_any_index(item.path) is not None:
                num_bytes = sum(file.stat(follow_symlinks=False).st_size for file in os.scandir(item.path))
                shutil.rmtree(item.path)
                freed_bytes += num_bytes
        return freed_bytes


def _sum_up(index: Mapping[str, Any]) -> str:
    """The sum of all that an index says."""
    said = {name: value for name, value in index.items() if name != "sum"}
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
