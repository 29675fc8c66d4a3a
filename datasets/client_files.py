"""The cache of client files: a folder for each (data, partition), with an index and files of raw arrays.

There is a file for each client, split and array: little-endian, in C order, without a header. Where the data weigh
their examples, a client has one more, of the weights of its train examples as the data have them, float32. A folder is
an entry of a `files.cache.Cache`: complete once it has its name, and made anew when a byte of it is wrong. Clients may
also come one by one into an entry; each then has a file of sums of its own.

A copy of a client's files, on a machine that does not have the folder that a run wrote them to, lies in a cache folder
of that machine, under the digest of its data, so that later runs find it. It counts only if every file has the size
that the machine with the original gives, and the right sum. Each file gets its name when it is complete: no lock is
needed.

Clients whose train labels are flipped, for attacks: their files beside the others, in an entry of the cache.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from datasets.errors import DatasetError
from datasets.federated_data import SPLITS, ClientFiles, FederatedData
from files.cache import Cache
from files.cache_folder import default_cache_dir
from files.digests import compute_sum, describe_states
from files.reading import describe, read_regular
from files.writing import replace_whole, write_whole

# On disk the older word stays, so that what is in the cache is found.
FORMAT_NAME = "federated-suite client shards"
# Part of each digest: raise it when the files change, or how a seed divides the examples.
FORMAT_VERSION = 1
# The version is of the index alone: 1 had no sums.
INDEX_FILE, INDEX_VERSION = "index.json", 2
SUFFIXES = tuple(f".{split}.{kind}" for split in SPLITS for kind in "xy")
WEIGHTS_SUFFIX = ".train.w"  # of data that weigh their examples
_SUMS = ".sums"  # of the files of a client that came by itself, {suffix: [bytes, SHA-256]}
_MAX_SUMS_BYTES = 2**16
_checked: dict[str, int] = {}  # places of such clients whose files this process has found right -> their states then

# For each client: split -> (x, y); where the data weigh their examples, of the train split (x, y, weights).
ClientSplits = list[dict[str, tuple[np.ndarray, ...]]]


def default_client_dir() -> str:
    """Where client files are stored unless the user says otherwise: in the user's cache folder."""
    return default_cache_dir("shards")


def get_client_prefix(client: int) -> str:
    """The start of a client's file names."""
    return f"client_{client}"


def _get_cache(client_dir: str) -> Cache:
    return Cache(client_dir, FORMAT_NAME, INDEX_VERSION, INDEX_FILE)


def open_or_write_entry(
    client_dir: str, digest: str, make_splits: Callable[[], ClientSplits]
) -> tuple[str, dict[str, Any]]:
    """Finds the cache entry, or writes it if it is missing or damaged.

    Args:
      client_dir: the cache folder; made if it does not exist.
      digest: 64 hex digits, the entry's name.
      make_splits: called only if the entry must be written.

    Returns:
      The entry's absolute path, and its index: `clients` (for each, split -> number of examples), `files` (name ->
      bytes) and `sums` (name -> SHA-256).

    Raises:
      DatasetError: the folder cannot be written.
    """
    cache = _get_cache(os.path.abspath(os.path.expanduser(client_dir)))

    def write(folder: str) -> dict[str, Any]:
        splits = make_splits()
        for client, parts in enumerate(splits):
            for split in SPLITS:
                for kind, array in zip("xyw"[: len(parts[split])], parts[split], strict=True):
                    array.tofile(os.path.join(folder, f"{get_client_prefix(client)}.{split}.{kind}"))
        return {"clients": [{split: len(parts[split][1]) for split in SPLITS} for parts in splits]}

    with explain_write_errors(cache.folder):
        return cache.name_entry(digest), cache.find_or_write(digest, write)


@contextlib.contextmanager
def explain_write_errors(client_dir: str) -> Iterator[None]:
    """Makes an OSError of the block a DatasetError that names the cache folder of client files."""
    try:
        yield
    except OSError as error:
        raise DatasetError(
            f"cannot write client files into {client_dir}: {describe(error)}; choose another --client_dir"
        ) from None


def write_client(prefix: str, contents: Mapping[str, bytes]) -> None:
    """Writes the files of one client of an entry whose clients come one by one, and makes the entry for the first.

    By its index `clean_client_dir` knows it as an entry; it names no files. Each client has a file of sums, the last to
    be written: see `is_client_whole`.

    Args:
      prefix: the entry's path and `get_client_prefix`.
      contents: by what follows `prefix` in the names, `SUFFIXES` and, of data with weights, `WEIGHTS_SUFFIX`.

    Raises:
      OSError: they cannot be written.
    """
    _make_entry(prefix)
    for suffix, content in contents.items():
        write_whole(prefix + suffix, content)
    _note_sums(
        prefix, {suffix: [len(content), hashlib.sha256(content).hexdigest()] for suffix, content in contents.items()}
    )


@contextlib.contextmanager
def write_client_in_parts(prefix: str, suffixes: Collection[str]) -> Iterator[dict[str, BinaryIO]]:
    """Yields the files of a client, open to be written, by suffix; as `write_client`, of what is large."""
    _make_entry(prefix)
    with contextlib.ExitStack() as stack:
        drafts = {suffix: stack.enter_context(replace_whole(prefix + suffix)) for suffix in suffixes}
        yield {suffix: stack.enter_context(open(draft, "xb")) for suffix, draft in drafts.items()}
    _note_sums(
        prefix, {suffix: [os.path.getsize(prefix + suffix), compute_sum(prefix + suffix)] for suffix in suffixes}
    )


def _make_entry(prefix: str) -> None:
    client_dir, digest = os.path.split(os.path.dirname(prefix))
    _get_cache(client_dir).find_or_write(digest, lambda _: {"clients": []})


def _note_sums(prefix: str, sums: Mapping[str, list]) -> None:
    # Last: only with its sums a client counts.
    write_whole(prefix + _SUMS, json.dumps(sums).encode())
    _checked[prefix] = describe_states(prefix + suffix for suffix in sums)[1]


def is_client_whole(prefix: str) -> bool:
    """Whether all that `write_client` wrote is there; its bytes are read once a process, and again after a change."""
    try:
        sums = json.loads(read_regular(prefix + _SUMS, _MAX_SUMS_BYTES))
        suffixes = (*SUFFIXES, WEIGHTS_SUFFIX) if WEIGHTS_SUFFIX in sums else SUFFIXES
        sizes, state = describe_states(prefix + suffix for suffix in suffixes)
        if sizes != tuple(sums[suffix][0] for suffix in suffixes):
            return False
        if _checked.get(prefix) != state and any(
            compute_sum(prefix + suffix) != sums[suffix][1] for suffix in suffixes
        ):
            return False
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False
    _checked[prefix] = state
    return True


def clean_client_dir(client_dir: str) -> int:
    """Deletes the cache entries, finished or abandoned, and nothing else. Returns the bytes freed.

    A folder is an entry if its name is a digest and its index file is this module's. Don't call it while a run uses
    the cache.

    Raises:
      DatasetError: an entry cannot be deleted.
    """
    try:
        return _get_cache(client_dir).clean()
    except OSError as error:
        raise DatasetError(f"cannot delete {error.filename}: {describe(error)}") from None


_CLIENT_PATH = re.compile(r".*/(?P<digest>[0-9a-f]{64})/(?P<client>client_\d+)", re.DOTALL)


def default_copies_dir() -> str:
    """Where copies are stored: in the user's cache folder, apart from the client files of this machine's own runs."""
    return default_cache_dir("shard_copies")


def is_client_path(path: str) -> bool:
    """Whether a text is the path of a client's files, `ClientFiles.path`."""
    return _CLIENT_PATH.fullmatch(path) is not None


def measure_files(path: str) -> dict[str, int]:
    """The sizes in bytes of a client's files, by what follows `path` in their names. Raises OSError."""
    return {suffix: os.stat(path + suffix).st_size for suffix in _list_suffixes(path)}


def read_files(path: str) -> dict[str, bytes]:
    """The contents of a client's files, by what follows `path` in their names. Raises OSError."""
    return {suffix: pathlib.Path(path + suffix).read_bytes() for suffix in _list_suffixes(path)}


def find_files(path: str, sizes: Mapping[str, int], copies_dir: str) -> str | None:
    """Where a client's files lie on this machine, as a path of the same kind; None if they are not here.

    Args:
      path: where the run's machine has them; looked for here first.
      sizes: what `measure_files` gave there.
      copies_dir: the folder of copies.
    """
    copy = _name_copy(path, copies_dir)
    for prefix in (path, copy):
        with contextlib.suppress(OSError):
            # Without sums, the run's machine has checked them all, when it began.
            is_checked = prefix == copy or os.path.isfile(prefix + _SUMS)
            if measure_files(prefix) == sizes and (not is_checked or is_client_whole(prefix)):
                return prefix
    return None


def write_copy(path: str, contents: Mapping[str, bytes], copies_dir: str) -> str:
    """Writes what `read_files(path)` gave on another machine. Returns the copy's path; raises OSError."""
    copy = _name_copy(path, copies_dir)
    write_client(copy, contents)
    return copy


def _list_suffixes(path: str) -> tuple[str, ...]:
    return (*SUFFIXES, WEIGHTS_SUFFIX) if os.path.exists(path + WEIGHTS_SUFFIX) else SUFFIXES


def _name_copy(path: str, copies_dir: str) -> str:
    named = _CLIENT_PATH.fullmatch(path)
    return os.path.join(copies_dir, named["digest"], named["client"])


_LABELS = ".train.y"


def flip_labels(data: FederatedData, clients: Collection[int]) -> FederatedData:
    """The federation in which these clients (indices) have the train labels classes - 1 - y.

    Their files are written when somebody asks for them. All else stays: the other splits, and `label_counts`.
    """
    flipped = {}
    for index in map(int, clients):
        client = data.clients[index]
        folder, name = os.path.split(client.prefix)
        # The flipped files are others, so that their entry has another name.
        digest = hashlib.sha256(f"{os.path.basename(folder)} with flipped labels".encode()).hexdigest()
        entry = os.path.join(os.path.dirname(folder), digest)
        write = functools.partial(_write, client, entry, name, data.format.num_classes, data.format.labels.dtype)
        flipped[index] = dataclasses.replace(client, prefix=os.path.join(entry, name), write=write)
    return dataclasses.replace(data, clients=tuple(flipped.get(client.index, client) for client in data.clients))


def _write(client: ClientFiles, entry: str, name: str, num_classes: int, label_dtype: str) -> None:
    path, prefix = client.path, os.path.join(entry, name)
    if is_client_whole(prefix):
        return
    with explain_write_errors(os.path.dirname(entry)):
        contents = read_files(path)
        labels = np.frombuffer(contents[_LABELS], label_dtype)
        write_client(prefix, {**contents, _LABELS: (num_classes - 1 - labels).astype(label_dtype).tobytes()})
