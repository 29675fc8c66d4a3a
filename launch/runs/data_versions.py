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
from launch.runs.columns import ARRAYS_DIGEST, CLASS_WEIGHTS, CLASS_WEIGHTS_DIGEST, DEVICES, DIGEST, SOURCE_DIGEST
from launch.settings.data_flags import DataFlags, OwnDataFlags
from launch.settings.resuming import PLACES
from launch.settings.run_flags import ArchetypeFlags, PartitionFlags

DATA_FLAGS = frozenset(
    {
        field.name
        for group in (DataFlags, OwnDataFlags, PartitionFlags, ArchetypeFlags)
        for field in dataclasses.fields(group)
    }
    | {"smoke"}
)
READING_FLAGS = (
    frozenset(
        {field.name for group in (CatalogOptions, OwnDataOptions) for field in dataclasses.fields(group)}
        | {"dataset", "task", "smoke"}
    )
    - PLACES
)
_SHOWN = 8  # hexadecimal digits of a digest

Digested = tuple[Mapping[str, Any], Mapping[str, str]]


def compare_like(runs: Sequence[Digested]) -> list[list[list[int]]]:
    """Of each data that flags ask for, the runs by what they got: indices of `runs`, the same got in one list.

    Args:
      runs: (flags, digests) of each, the latter by their names in the data section. `dataset` among the flags is called
        as a user's file is.
    """
    kinds = {
        SOURCE_DIGEST: READING_FLAGS,
        ARRAYS_DIGEST: READING_FLAGS | {"seed"},
        DIGEST: (DATA_FLAGS | {"seed"}) - PLACES,
    }
    by_key: dict[Hashable, dict[Hashable, list[int]]] = {}
    for i, (flags, digests) in enumerate(runs):
        for kind, names in kinds.items():
            if kind in digests:
                key = kind, flags.get(DEVICES), flags.get(CLASS_WEIGHTS), *(flags.get(name) for name in sorted(names))
                by_key.setdefault(key, {}).setdefault((digests[kind], *_get_beside(digests)), []).append(i)
    return [list(found.values()) for found in by_key.values()]


def find_data_versions(runs: Sequence[Digested]) -> list[str]:
    """A word for the data of each run, where others of the same flags had other data; "" for all else.

    Args:
      runs: as for `compare_like`.
    """
    # Only comparisons need it: it takes a third of a second to import.
    from scipy.cluster.hierarchy import DisjointSet

    # What has a digest in common is of one version, as a file that was written anew with the same content.
    alike, first = DisjointSet(range(len(runs))), {}
    for i, (_, digests) in enumerate(runs):
        for kind in (SOURCE_DIGEST, ARRAYS_DIGEST, DIGEST):
            if kind in digests:
                alike.merge(first.setdefault((digests[kind], *_get_beside(digests)), i), i)
    differing: set[int] = set()
    for found in compare_like(runs):
        versions = {alike[members[0]] for members in found}
        differing |= versions if len(versions) > 1 else set()
    names: dict[int, str] = {}
    for i, (_, digests) in enumerate(runs):
        if alike[i] in differing:
            names.setdefault(alike[i], _name(digests))
    return [names.get(alike[i], "") for i in range(len(runs))]


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


def _get_beside(digests: Mapping[str, str]) -> tuple[str | None, ...]:
    """The digests of what flags name beside the data: files of devices and of class weights."""
    return digests.get(DEVICES), digests.get(CLASS_WEIGHTS_DIGEST)


def _name(digests: Mapping[str, str]) -> str:
    """The start of the digest by which `config.json` knows the data, and those of their devices and class weights."""
    shown = next(digests[kind] for kind in (SOURCE_DIGEST, ARRAYS_DIGEST, DIGEST) if kind in digests)
    beside = zip(("devices", "weights"), _get_beside(digests), strict=True)
    return ", ".join([f"data {shown[:_SHOWN]}", *(f"{what} {digest[:_SHOWN]}" for what, digest in beside if digest)])
