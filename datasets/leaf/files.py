"""The JSON files of LEAF: which of a folder's there are, and the users in them, checked.

Source: Caldas et al., LEAF: A Benchmark for Federated Settings, 2018. A file is {"users": [names], "num_samples":
[numbers], "user_data": {name: {"x": [...], "y": [...]}}}, with "hierarchies" beside it where users belong to groups. A
folder has files `all_data*.json`, or folders `train` and `test` of them, or such folders as LEAF's scripts leave.
"""

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from datasets.client_source import TEST, TRAIN
from datasets.errors import DatasetError
from datasets.progress import show_progress
from files.reading import explain_errors, find_files, open_regular

_KEYS = ("users", "num_samples", "user_data", "hierarchies")
_PEEKED_BYTES = 256


class User(NamedTuple):
    """One user of a file: where that is, for errors; whose examples of which part; as JSON has them."""

    where: str
    name: str
    part: str
    x: list
    y: list


def looks_like_leaf(path: str) -> bool:
    """Whether a file begins as LEAF's do. Raises OSError."""
    with open(path, "rb") as file:
        start = file.read(_PEEKED_BYTES).lstrip()
    keys = tuple(f'"{key}"'.encode() for key in _KEYS)
    return start.startswith(b"{") and start[1:].lstrip().startswith(keys)


def find_leaf_files(path: str) -> list[tuple[str, str]]:
    """(path, part) of the files of a file or folder, in order of their names; [] if there is none of this form.

    Files `train` and `test` come before `all_data`, of which LEAF's scripts make them.

    Raises:
      OSError: the folder cannot be read.
    """
    if os.path.isfile(path):
        return [(path, TRAIN)]
    train, test = (_list_json(os.path.join(path, part)) for part in ("train", "test"))
    if train:
        return [(file, TRAIN) for file in train] + [(file, TEST) for file in test]
    files = [file for file in _list_json(path) if os.path.basename(file).startswith("all_data")]
    files = files or _list_json(os.path.join(path, "all_data"))
    if files:
        return [(file, TRAIN) for file in files]
    inner = os.path.join(path, "data")
    return find_leaf_files(inner) if os.path.isdir(inner) else []


def _list_json(folder: str) -> list[str]:
    return list(map(str, find_files(folder, "*.json")))


def iterate_users(files: list[tuple[str, str]]) -> Iterator[User]:
    """All users of all files, a file in memory at a time.

    Raises:
      DatasetError: a file is damaged, or its parts contradict each other; or a user is in two files of one part.
    """
    seen: dict[tuple[str, str], str] = {}
    for path, part in show_progress(files, "files"):
        content = _read(path)
        for place, name in enumerate(content["users"]):
            where = f"{path}: user {name!r}"
            if (part, name) in seen:
                first = "" if seen[part, name] == path else f", first in {seen[part, name]}"
                raise DatasetError(f"{where} is there twice{first}")
            seen[part, name] = path
            data = content["user_data"][name]
            x, y = (data.get(key) if isinstance(data, dict) else None for key in "xy")
            if not isinstance(x, list) or not isinstance(y, list):
                raise DatasetError(f"{where} has no lists x and y")
            if len(x) != len(y):
                raise DatasetError(f"{where} has {len(x)} examples in x, but {len(y)} labels in y")
            told = content["num_samples"][place]
            if told != len(y):
                raise DatasetError(f"{where} has {len(y)} examples, num_samples says {told}")
            # A file of many users need not stay whole while they are worked on.
            content["user_data"][name] = None
            yield User(where, name, part, x, y)


def _read(path: str) -> dict[str, Any]:
    """What a file holds, once its parts agree on who the users are."""
    try:
        with explain_errors(path, DatasetError), open_regular(path) as file:
            content = json.load(file)
    except DatasetError:
        raise
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path}: damaged or truncated, or no JSON ({error})") from None
    if not isinstance(content, dict):
        raise DatasetError(f"{path}: expected an object with users, num_samples and user_data, as LEAF writes it")
    kinds = {"users": list, "num_samples": list, "user_data": dict}
    for key, kind in kinds.items():
        if not isinstance(content.get(key), kind):
            raise DatasetError(f"{path}: {key} is no {'object' if kind is dict else 'list'}, expected LEAF's form")
    names = content["users"]
    if not all(isinstance(name, str) for name in names):
        raise DatasetError(f"{path}: users holds what is no text")
    for key in ("num_samples", "hierarchies"):
        if content.get(key) is not None and len(content[key]) != len(names):
            raise DatasetError(f"{path}: {len(content[key])} {key} for {len(names)} users")
    if missing := [name for name in names if name not in content["user_data"]]:
        raise DatasetError(f"{path}: user {missing[0]!r} has no user_data")
    if len(content["user_data"]) != len(known := set(names)):
        extra = next(name for name in content["user_data"] if name not in known)
        raise DatasetError(f"{path}: user_data has user {extra!r}, who is not among the users")
    return content
