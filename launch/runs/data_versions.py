"""Which runs got other data, or another code of the user's own, though their flags are the same.

A table may be corrected, and a model edited, between two runs. Their `config.json` tells by digests, of which only like
are compared with like: the data alone whatever the seed, or what a run got of them with the same seed and partition.
Runs of earlier versions, and those that archives keep, may lack them: of these nothing is said. Imports no TensorFlow.
"""

import dataclasses
import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from datasets.dataset import CatalogOptions, OwnDataOptions
from launch.runs.columns import DEVICES, DIGEST, SOURCE_DIGEST
from launch.settings.data_flags import DataFlags, OwnDataFlags
from launch.settings.partition_flags import ArchetypeFlags, PartitionFlags
from launch.settings.resuming import PLACES

NO_DATA = {"loss", "huber_delta"}  # they stand among the flags of data
DATA_FLAGS = frozenset(
    {
        field.name
        for group in (DataFlags, OwnDataFlags, PartitionFlags, ArchetypeFlags)
        for field in dataclasses.fields(group)
    }
    - NO_DATA
    | {"smoke"}
)
READING_FLAGS = (
    frozenset(
        {field.name for group in (CatalogOptions, OwnDataOptions) for field in dataclasses.fields(group)}
        | {"dataset", "smoke"}
    )
    - PLACES
)
_SHOWN = 8  # hexadecimal digits of a digest


def find_data_versions(runs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> list[str]:
    """A word for the data of each run, where others of the same flags had other data; "" for all else.

    Args:
      runs: (flags, data section) of each. `dataset` among the flags is called as a user's file is.
    """
    alike = _Alike(len(runs))
    by_key: dict[Hashable, dict[Hashable, list[int]]] = {}
    for i, (flags, data) in enumerate(runs):
        devices = (flags.get(DEVICES), data.get(DEVICES))
        for kind, names in ((SOURCE_DIGEST, READING_FLAGS), (DIGEST, (DATA_FLAGS | {"seed"}) - PLACES)):
            if digest := data.get(kind):
                key = kind, devices[0], *(flags.get(name) for name in sorted(names))
                by_key.setdefault(key, {}).setdefault((digest, devices[1]), []).append(i)
    for found in by_key.values():
        for members in found.values():
            for member in members[1:]:
                alike.join(members[0], member)
    # Two digests of one version are no difference, as of a file that was written anew with the same content.
    differing: set[int] = set()
    for found in by_key.values():
        versions = {alike.find(members[0]) for members in found.values()}
        differing |= versions if len(versions) > 1 else set()
    names: dict[int, str] = {}
    for i, (_, data) in enumerate(runs):
        if (root := alike.find(i)) in differing:
            names.setdefault(root, _name(data))
    return [names.get(alike.find(i), "") for i in range(len(runs))]


def find_code_versions(modules: Sequence[Mapping[str, str]]) -> list[str]:
    """A word for the own code of each run, where a module of theirs was another in others; "" for all else.

    Args:
      modules: {module: SHA-256} of each run, as from `launch.settings.module_sums`; empty without any.
    """
    sums: dict[str, set[str]] = {}
    for own in modules:
        for name, digest in own.items():
            sums.setdefault(name, set()).add(digest)
    differing = {name for name, found in sums.items() if len(found) > 1}
    changed = [{name: digest for name, digest in own.items() if name in differing} for own in modules]
    digests = [hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest() for own in changed]
    return [f"code {digest[:_SHOWN]}" if own else "" for own, digest in zip(changed, digests, strict=True)]


def _name(data: Mapping[str, Any]) -> str:
    """The start of the digest by which `config.json` knows the data, and that of their devices."""
    devices = f", devices {data[DEVICES][:_SHOWN]}" if data.get(DEVICES) else ""
    return f"data {(data.get(SOURCE_DIGEST) or data[DIGEST])[:_SHOWN]}{devices}"


class _Alike:
    """Which of some things are the same: those that were joined, and what these were joined with."""

    def __init__(self, count: int):
        self._parents = list(range(count))

    def find(self, i: int) -> int:
        """What stands for all that are the same as `i`."""
        while self._parents[i] != i:
            i = self._parents[i]
        return i

    def join(self, i: int, j: int) -> None:
        self._parents[self.find(j)] = self.find(i)
