"""Where downloads and client shards are kept when the user names no folder."""

import os


def default_cache_dir(kind: str) -> str:
    """The folder for `kind` ("data", "shards") under XDG_CACHE_HOME, by default ~/.cache; not created."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(base), "federated_suite", kind)


def search_dirs(data_dir: str | None, subfolder: str) -> list[str]:
    """Where a data set's files may lie, first the best: `subfolder` of the data folder, the folder itself, the cache.

    The first is also where a download goes.
    """
    cache = default_cache_dir("data")
    roots = [cache] if data_dir is None else [os.path.abspath(os.path.expanduser(data_dir)), cache]
    return [path for root in roots for path in (os.path.join(root, subfolder), root)]
