"""Copies of single clients' shards, on a machine that does not have the folder that a run wrote them to.

A copy lies in a cache folder of that machine, under the digest of its data, so that later runs find it. It counts only
if every file has the size that the machine with the original gives, and each file gets its name when it is complete:
no lock is needed.
"""

import os
import re
from collections.abc import Mapping

from datasets.cache_folder import default_cache_dir
from datasets.federated_data import SPLITS
from datasets.shards import write_open_entry, write_whole

_SHARD_PATH = re.compile(r".*/(?P<digest>[0-9a-f]{64})/(?P<client>client_\d+)", re.DOTALL)
_SUFFIXES = tuple(f".{split}.{kind}" for split in SPLITS for kind in "xy")


def default_copies_dir() -> str:
    """Where copies are kept: in the user's cache folder, apart from the shards of this machine's own runs."""
    return default_cache_dir("shard_copies")


def is_shard_path(path: str) -> bool:
    """Whether a text is the path of a client's shard, `ClientShard.path`."""
    return _SHARD_PATH.fullmatch(path) is not None


def measure_shard(path: str) -> dict[str, int]:
    """The sizes in bytes of a shard's files, by what follows `path` in their names. Raises OSError."""
    return {suffix: os.stat(path + suffix).st_size for suffix in _SUFFIXES}


def read_shard(path: str) -> dict[str, bytes]:
    """The contents of a shard's files, by what follows `path` in their names. Raises OSError."""
    contents = {}
    for suffix in _SUFFIXES:
        with open(path + suffix, "rb") as file:
            contents[suffix] = file.read()
    return contents


def find_shard(path: str, sizes: Mapping[str, int], copies_dir: str) -> str | None:
    """Where a shard lies on this machine, as a path of the same kind; None if it is not here.

    Args:
      path: where the run's machine has it; looked for here first.
      sizes: what `measure_shard` gave there.
      copies_dir: the folder of copies.
    """
    for place in (path, _name_copy(path, copies_dir)):
        try:
            if measure_shard(place) == sizes:
                return place
        except OSError:
            continue
    return None


def write_copy(path: str, contents: Mapping[str, bytes], copies_dir: str) -> str:
    """Writes what `read_shard(path)` gave on another machine. Returns the copy's path; raises OSError."""
    copy = _name_copy(path, copies_dir)
    write_open_entry(os.path.dirname(copy))
    for suffix, content in contents.items():
        write_whole(copy + suffix, content)
    return copy


def _name_copy(path: str, copies_dir: str) -> str:
    named = _SHARD_PATH.fullmatch(path)
    return os.path.join(copies_dir, named["digest"], named["client"])
