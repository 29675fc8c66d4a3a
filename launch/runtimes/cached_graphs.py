"""The graphs of earlier runs, in the cache folder: a run of the same settings need not trace them again.

A file holds what one computation was made into, under a digest of all that it was made of (`content_digest`). The
folder belongs to the user alone, since whoever writes a graph decides what it does. A file that is damaged, foreign or
of another version counts as none. Nothing that fails here stops a run: it traces, as the first one did.

Imports neither TensorFlow nor TFF.
"""

import contextlib
import hashlib
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from files.cache_folder import default_cache_dir
from files.reading import read_regular
from files.writing import write_whole

if TYPE_CHECKING:
    from launch.runtimes.graph_sessions import RoundGraphs

MAX_BYTES = 10**9  # of all files; above it, those that were used longest ago go
MAX_UNPACKED_BYTES = 4 * 10**9  # of one computation; TensorFlow refuses a graph of 2 GB
RETAINED_SHARE = 0.8  # of these bytes, what then stays
FORMAT = b"federated-suite graphs 1\n"
VARIABLE = "FL_KEEP_GRAPHS"
# With the beginning, or as the last, they are left by a process that was killed.
_NAME = re.compile(r"(\.\d+\.[0-9a-f]{8}\.)?[0-9a-f]{64}\.graphs|\.writing-\w+")


class CachedRound(NamedTuple):
    """A federated computation taken apart, and its type as `describe_type` describes it."""

    graphs: "RoundGraphs"
    described_type: Any


def default_graph_dir() -> str:
    """Where graphs are cached, in the user's cache folder; "" if the variable FL_KEEP_GRAPHS says 0."""
    return "" if os.environ.get(VARIABLE, "1") == "0" else default_cache_dir("graphs")


class GraphFolder:
    """A folder of cached graphs."""

    def __init__(self, path: str):
        self._path = path

    def find(self, digest: str) -> CachedRound | None:
        """The graphs under a digest; None if there are none, or they cannot be trusted or read."""
        path = self._name(digest)
        try:
            if not self._is_ours():
                return None
            cached = _read(read_regular(path, MAX_BYTES), digest)
            os.utime(path)  # used last
        except Exception:  # whatever a damaged one leads to, no memory and too deep nesting among it
            return None
        return cached

    def store(self, digest: str, cached: CachedRound) -> None:
        """Stores graphs for later runs, if the folder can be written and is the user's own."""
        with contextlib.suppress(OSError):
            os.makedirs(self._path, mode=0o700, exist_ok=True)
            if self._is_ours():
                write_whole(self._name(digest), _write(cached, digest), mode=0o600)
                files = sorted(_list_files(self._path), key=lambda item: item.stat().st_mtime)
                num_bytes = sum(item.stat().st_size for item in files)
                most_bytes = RETAINED_SHARE * MAX_BYTES if num_bytes > MAX_BYTES else MAX_BYTES
                for item in files:
                    if num_bytes > most_bytes:
                        num_bytes -= item.stat().st_size
                        os.unlink(item.path)

    def _name(self, digest: str) -> str:
        return os.path.join(self._path, f"{digest}.graphs")

    def _is_ours(self) -> bool:
        """Whether nobody else can put a file there."""
        found = os.lstat(self._path)
        is_open = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not is_open


def clean_graph_dir() -> int:
    """Deletes the cached graphs, and nothing else. Returns the bytes freed. Raises OSError."""
    freed_bytes = 0
    for item in list(_list_files(default_cache_dir("graphs"))):
        freed_bytes += item.stat().st_size
        os.unlink(item.path)
    return freed_bytes


def _list_files(folder: str) -> Iterator[os.DirEntry]:
    """What this module has written."""
    if os.path.isdir(folder):
        yield from (
            item for item in os.scandir(folder) if _NAME.fullmatch(item.name) and item.is_file(follow_symlinks=False)
        )


def _write(cached: CachedRound, digest: str) -> bytes:
    """A line of format, one with the digest of the rest, one of JSON, and the compressed graphs one after another."""
    graphs = {name: part for name, part in vars(cached.graphs).items() if name != "returns_client_values"}
    parts = {name: [len(part.graph_def), part.inputs, part.outputs, part.initialize] for name, part in graphs.items()}
    head = {
        "digest": digest,
        "type": cached.described_type,
        "parts": parts,
        "lists": cached.graphs.returns_client_values,
    }
    rest = json.dumps(head).encode() + b"\n" + zlib.compress(b"".join(part.graph_def for part in graphs.values()), 1)
    return FORMAT + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _read(content: bytes, digest: str) -> CachedRound:
    """What `_write` wrote under that digest. Raises errors of many types if it is not that."""
    from launch.runtimes.graph_sessions import GraphPart, RoundGraphs

    if not content.startswith(FORMAT):
        raise ValueError("not of this format")
    told, _, rest = content.removeprefix(FORMAT).partition(b"\n")
    if told.decode() != hashlib.sha256(rest).hexdigest():
        raise ValueError("damaged")
    line, _, packed = rest.partition(b"\n")
    head = json.loads(line)
    if head["digest"] != digest:
        raise ValueError("of another name")
    sizes = [size for size, *_ in head["parts"].values()]
    if not all(type(size) is int and size >= 0 for size in sizes) or sum(sizes) > MAX_UNPACKED_BYTES:
        raise ValueError("graphs of no size, or too large")
    unpacker = zlib.decompressobj()
    graphs = unpacker.decompress(packed, sum(sizes) + 1)  # a kilobyte can hold a megabyte
    if len(graphs) != sum(sizes) or not unpacker.eof:
        raise ValueError("graphs of another size than is told")
    start, parts = 0, {}
    for name, (size, inputs, outputs, initialize) in head["parts"].items():
        parts[name] = GraphPart(graphs[start : start + size], tuple(inputs), tuple(outputs), initialize)
        start += size
    return CachedRound(RoundGraphs(**parts, returns_client_values=head["lists"]), head["type"])
