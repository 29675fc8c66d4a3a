"""The identity of files: every byte of them. Of large ones a record in the cache folder spares reading them again.

A record is found by what the system says of the files: size, times, inode and device of each. So it is not found once
one has changed, even if its size is the same and its time was set back, since the time of its inode cannot be set. A
change shows in the times only if they had ended ticking before; so files that changed just now have no record.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

from files.cache_folder import default_cache_dir
from files.reading import find_files, open_regular, read_regular
from files.writing import write_whole

# Fewer bytes are read in no time.
RECORDED_BYTES = 64 * 2**20
# The last change must lie so long before the reading: the clocks of some disks tick so coarsely.
SETTLED_NS = 2 * 10**9
_KIND = "digests"  # the folder of the records among the caches
_SUM_BYTES = hashlib.sha256().digest_size


def compute_source_digest(paths: Iterable[str], how: Any = None) -> str:
    """SHA-256 (hex) of these files, in this order, and of how they are read.

    Args:
      paths: regular files; their names are no part of it.
      how: what else decides what is read, as JSON can hold it.

    Raises:
      OSError: a file cannot be read, or is a pipe or a device.
    """
    digest = hashlib.sha256(json.dumps(how, sort_keys=True, default=str).encode())
    digest.update(_compute_sums(list(paths)))
    return digest.hexdigest()


def compute_sum(path: str | os.PathLike, may_trust_record: bool = False) -> str:
    """SHA-256 (hex) of a file's bytes.

    Args:
      path: of a regular file.
      may_trust_record: whether a large one that has not changed, as far as the system says, is not read again.

    Raises:
      OSError: it cannot be read, or is a pipe or a device.
    """
    return (_compute_sums([path]) if may_trust_record else _read_sum(path)).hex()


def describe_states(paths: Iterable[str | os.PathLike]) -> tuple[tuple[int, ...], int]:
    """What tells, without reading them, whether files have changed: (size of each, number of all that is said of them).

    The number is right in this process alone. A change of which the system says nothing is not told: one within a tick
    of its clock, or on the disk below it.

    Raises:
      OSError: one is not there.
    """
    sizes, state = [], 0
    for path in paths:
        described = _describe_state(path)
        sizes.append(described[0])
        state = hash((state, described))
    return tuple(sizes), state


def _compute_sums(paths: Sequence[str | os.PathLike]) -> bytes:
    """The SHA-256 of each file, 32 bytes, one after the other."""
    before = [_describe_state(path) for path in paths]
    if sum(size for size, *_ in before) < RECORDED_BYTES:
        return b"".join(map(_read_sum, paths))
    name = hashlib.sha256(json.dumps(before).encode()).hexdigest()
    record = os.path.join(default_cache_dir(_KIND), name)
    with contextlib.suppress(OSError):
        content = read_regular(record, _SUM_BYTES * (len(paths) + 1))
        sums = content[_SUM_BYTES:]
        if len(sums) == _SUM_BYTES * len(paths) and content[:_SUM_BYTES] == hashlib.sha256(sums).digest():
            return sums
    youngest = max(max(changed) for _, *changed, _, _ in before)
    is_settled = youngest < time.time_ns() - SETTLED_NS
    sums = b"".join(map(_read_sum, paths))
    # A file that changed while it was read would have a record of bytes that never were there together.
    if is_settled and before == [_describe_state(path) for path in paths]:
        # Without a record they are read again next time.
        with contextlib.suppress(OSError):
            write_whole(record, hashlib.sha256(sums).digest(), sums)
    return sums


def _describe_state(path: str | os.PathLike) -> tuple[int, ...]:
    """Size, times of the last change of content and of inode, inode, device."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev


def _read_sum(path: str | os.PathLike) -> bytes:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type]  # typing knows no readinto of it


def clean_digest_records() -> int:
    """Deletes the records, and nothing else. Returns the bytes freed. Raises OSError."""
    records = find_files(default_cache_dir(_KIND), "[0-9a-f]" * 2 * _SUM_BYTES)
    freed_bytes = sum(path.stat().st_size for path in records)
    for path in records:
        path.unlink()
    return freed_bytes
