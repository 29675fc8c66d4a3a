"""The identity of files that may be large: all of their bytes, or of giant ones a part."""

import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any

WHOLE_BYTES = 4 * 2**30  # in all; of more, size, time and evenly spaced blocks are taken
_BLOCK_BYTES, _NUM_BLOCKS = 2**20, 64


def compute_source_digest(paths: Iterable[str], how: Any = None) -> str:
    """SHA-256 (hex) of these files, in this order, and of how they are read.

    Args:
      paths: regular files; their names are no part of it.
      how: what else decides what is read, as JSON can hold it.

    Raises:
      OSError: a file cannot be read.
    """
    digest = hashlib.sha256(json.dumps(how, sort_keys=True, default=str).encode())
    paths = list(paths)
    is_whole = sum(map(os.path.getsize, paths)) <= WHOLE_BYTES
    for path in paths:
        digest.update(_digest_whole(path) if is_whole else _digest_blocks(path))
    return digest.hexdigest()


def _digest_whole(path: str) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _digest_blocks(path: str) -> bytes:
    status = os.stat(path)
    digest = hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode())
    if status.st_size <= _NUM_BLOCKS * _BLOCK_BYTES:  # a small one beside giants; its time may change with a copy
        return _digest_whole(path)
    with open(path, "rb") as file:
        for block in range(_NUM_BLOCKS):
            file.seek(block * max(0, status.st_size - _BLOCK_BYTES) // (_NUM_BLOCKS - 1))
            digest.update(file.read(_BLOCK_BYTES))
    return digest.digest()
