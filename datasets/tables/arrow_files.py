"""Where the files of a parquet or Arrow data set lie, and what their names and folders say of clients and splits.

data.parquet, data.arrow, data.feather           one table
train-00000-of-00001.parquet, test-...           splits of a table, as the hub names them; also in a folder "data"
data-00000-of-00002.arrow beside state.json      a Hugging Face data set saved to disk
train/, test/ of such folders                    one with splits
any/, other/ of such folders                     partitions, a client each, as Flower Datasets' are saved
alice.parquet, bob.parquet                       a file a client, unless a column names them
"""

import contextlib
import json
import math
import os
import re
from collections.abc import Iterator

from datasets.client_source import TRAIN
from datasets.errors import DatasetError
from datasets.example_store import sort_key
from datasets.tables.table import SPLIT_NAMES, ClientFile

PARQUET_ENDINGS, ARROW_ENDINGS = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
INFO_FILE, STATE_FILE, DICT_FILE = "dataset_info.json", "state.json", "dataset_dict.json"
_PLAIN_FOLDERS = ("data", "default")  # that say nothing
# part-0, part-00000-1b4e28ba-2fa1-11d2.c000, 0000, data-00000-of-00002, train-00000-of-00001
_SHARD = re.compile(r"part[-_.]\d.*|(?:(?P<name>.*?)[-_.])?\d{4,}(?:-of-\d+)?", re.IGNORECASE)
_MOST_FILES = 1_000_000


def is_arrow_file(path: str) -> bool:
    """Whether it is such a file, by its name or its first bytes."""
    if not os.path.isfile(path):
        return False
    if path.lower().endswith((*PARQUET_ENDINGS, *ARROW_ENDINGS)):
        return True
    with open(path, "rb") as file:
        return file.read(6)[:4] == b"PAR1" or _starts_as_arrow(path)


def _starts_as_arrow(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(6) == b"ARROW1"


def is_parquet_file(path: str) -> bool:
    """Whether a file is parquet and not Arrow."""
    if path.lower().endswith(PARQUET_ENDINGS):
        return True
    return not path.lower().endswith(ARROW_ENDINGS) and not _starts_as_arrow(path)


def walk_files(path: str, most_entries: float = math.inf) -> Iterator[str]:
    """The files of a data set, relative to its folder; caches of Hugging Face and hidden ones left out.

    It ends after so many entries of folders, whatever they are.
    """
    num_entries = 0
    for folder, subfolders, names in os.walk(path):
        num_entries += len(subfolders) + len(names)
        if num_entries > most_entries:
            return
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            is_named = name.lower().endswith((*PARQUET_ENDINGS, *ARROW_ENDINGS))
            if is_named and not name.startswith((".", "cache-")) and os.path.isfile(os.path.join(folder, name)):
                yield os.path.relpath(os.path.join(folder, name), path)


def find_arrow_files(path: str) -> list[ClientFile]:
    """The files of a data set, in a fixed order.

    Raises:
      DatasetError: there is none, or a folder in a folder names clients both times.
    """
    if os.path.isfile(path):
        return [ClientFile(path, "", TRAIN)]
    found = []
    for relative in walk_files(path):
        found.append(_place_file(path, relative))
        if len(found) > _MOST_FILES:
            raise DatasetError(f"{path}: more than {_MOST_FILES:,} files, expected fewer and larger ones")
    if not found:
        raise DatasetError(f"{path}: no parquet or Arrow file in this folder, expected *.parquet or *.arrow")
    if not all(file.client for file in found):
        found = [file._replace(client="") if file.is_own_name else file for file in found]
    without = next((file for file in found if not file.client), None)
    if without and any(file.client for file in found):
        raise DatasetError(
            f"{without.path}: lies beside the folders of clients, expected each file in a folder of its client"
        )
    return sorted(found, key=lambda file: (sort_key(file.client), file.split, file.path))


def _place_file(path: str, relative: str) -> ClientFile:
    *folders, name = relative.split(os.sep)
    split, client = "", ""
    for folder in folders:
        if folder.lower() in SPLIT_NAMES and not split:
            split = SPLIT_NAMES[folder.lower()]
        elif folder.lower() not in _PLAIN_FOLDERS:
            if client:
                raise DatasetError(
                    f"{os.path.join(path, relative)}: lies in the folders {client!r} and {folder!r}, expected one that "
                    f"names a client, and train/ or test/"
                )
            client = folder
    stem = os.path.splitext(name)[0]
    shard = _SHARD.fullmatch(stem)
    word = (shard["name"] or "data") if shard else stem
    if word.lower() in SPLIT_NAMES:
        split = split or SPLIT_NAMES[word.lower()]
    is_own = not client and not shard and word.lower() not in (*SPLIT_NAMES, "data")
    return ClientFile(os.path.join(path, relative), stem if is_own else client, split or TRAIN, is_own)


def read_class_names(folder: str) -> dict[str, tuple[str, ...]]:
    """The names of labels that a saved data set's `dataset_info.json` has, by column; {} if there is none."""
    for root, _, names in os.walk(folder):
        if INFO_FILE in names:
            with contextlib.suppress(OSError), open(os.path.join(root, INFO_FILE), "rb") as file:
                return find_class_names(file.read())
            break
    return {}


def find_class_names(content: bytes, *keys: str) -> dict[str, tuple[str, ...]]:
    """The names of labels in Hugging Face's description of columns, by column; {} if there is none.

    Args:
      content: JSON, in which "features" describes the columns.
      keys: of the objects that it lies in.
    """
    try:
        features = json.loads(content)
        for key in (*keys, "features"):
            features = features.get(key, {})
        return {
            name: tuple(map(str, each["names"]))
            for name, each in features.items()
            if isinstance(each, dict) and each.get("_type") == "ClassLabel" and isinstance(each.get("names"), list)
        }
    except (ValueError, AttributeError):
        return {}
