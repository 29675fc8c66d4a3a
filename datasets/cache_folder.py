"""Where the files of a data set may lie: in the user's folder, or in the cache."""

import os
from collections.abc import Iterable

from files.cache_folder import default_cache_dir


def search_dirs(data_dir: str | None, subfolder: str) -> list[str]:
    """Where a data set's files may lie: `subfolder` of the data folder, the folder itself, then the same in the cache.

    The first is also where a download goes. An empty `data_dir` is none: FL_DATA_DIR= set to nothing must not mean the
    current folder, as an empty path would.
    """
    cache = default_cache_dir("data")
    roots = [os.path.abspath(os.path.expanduser(data_dir)), cache] if data_dir else [cache]
    return [path for root in roots for path in (os.path.join(root, subfolder), root)]


def find_file(data_dir: str | None, subfolder: str, names: Iterable[str]) -> str | None:
    """Path of the first of these files that lies where `search_dirs` looks; None if none does."""
    paths = (os.path.join(folder, name) for folder in search_dirs(data_dir, subfolder) for name in names)
    return next(filter(os.path.isfile, paths), None)


def describe_missing(subfolder: str, wanted: str, data_dir: str | None, is_downloaded: bool = False) -> str:
    """What to do about a data set that is nowhere, for the doctor and for errors.

    Args:
      subfolder: the data set's, as for `search_dirs`.
      wanted: the names of its files.
      data_dir: the data folder, or None.
      is_downloaded: whether a run would fetch it.
    """
    fix = "downloaded by the first run, or put" if is_downloaded else "put"
    return f"not found; {fix} {wanted} into {search_dirs(data_dir, subfolder)[0]}"
