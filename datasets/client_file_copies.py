"""Copies of single clients' files, on a machine that does not have the folder that a run wrote them to.

A copy lies in a cache folder of that machine, under the digest of its data, so that later runs find it. It counts only
if every file has the size that the machine with the original gives, and the right sum. Each file gets its name when it
is complete: no lock is needed.

Clients whose train labels are flipped, for attacks: their files beside the others, in an entry of the cache.
"""

import contextlib
import dataclasses
import functools
import hashlib
import os
import re
from collections.abc import Collection, Mapping

import numpy as np

from datasets.client_files import (
    SUFFIXES,
    WEIGHTS_SUFFIX,
    explain_write_errors,
    has_sums,
    is_client_whole,
    write_client,
)
from datasets.federated_data import ClientFiles, FederatedData
from files.cache_folder import default_cache_dir

_CLIENT_PATH = re.compile(r".*/(?P<digest>[0-9a-f]{64})/(?P<client>client_\d+)", re.DOTALL)


def default_copies_dir() -> str:
    """Where copies are kept: in the user's cache folder, apart from the client files of this machine's own runs."""
    return default_cache_dir("shard_copies")


def is_client_path(path: str) -> bool:
    """Whether a text is the path of a client's files, `ClientFiles.path`."""
    return _CLIENT_PATH.fullmatch(path) is not None


def measure_files(path: str) -> dict[str, int]:
    """The sizes in bytes of a client's files, by what follows `path` in their names. Raises OSError."""
    return {suffix: os.stat(path + suffix).st_size for suffix in _list_suffixes(path)}


def read_files(path: str) -> dict[str, bytes]:
    """The contents of a client's files, by what follows `path` in their names. Raises OSError."""
    contents = {}
    for suffix in _list_suffixes(path):
        with open(path + suffix, "rb") as file:
            contents[suffix] = file.read()
    return contents


def find_files(path: str, sizes: Mapping[str, int], copies_dir: str) -> str | None:
    """Where a client's files lie on this machine, as a path of the same kind; None if they are not here.

    Args:
      path: where the run's machine has them; looked for here first.
      sizes: what `measure_files` gave there.
      copies_dir: the folder of copies.
    """
    copy = _name_copy(path, copies_dir)
    for place in (path, copy):
        with contextlib.suppress(OSError):
            is_checked = place == copy or has_sums(place)  # else the run's machine has checked them all, when it began
            if measure_files(place) == sizes and (not is_checked or is_client_whole(place)):
                return place
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
        folder, name = os.path.split(client.place)
        digest = hashlib.sha256(f"{os.path.basename(folder)} with flipped labels".encode()).hexdigest()
        entry = os.path.join(os.path.dirname(folder), digest)
        write = functools.partial(_write, client, entry, name, data.format.num_classes, data.format.labels.dtype)
        flipped[index] = dataclasses.replace(client, place=os.path.join(entry, name), write=write)
    return dataclasses.replace(data, clients=tuple(flipped.get(client.index, client) for client in data.clients))


def _write(client: ClientFiles, entry: str, name: str, num_classes: int, label_dtype: str) -> None:
    path, place = client.path, os.path.join(entry, name)
    if is_client_whole(place):
        return
    with explain_write_errors(os.path.dirname(entry)):
        contents = read_files(path)
        labels = np.frombuffer(contents[_LABELS], label_dtype)
        write_client(place, {**contents, _LABELS: (num_classes - 1 - labels).astype(label_dtype).tobytes()})
