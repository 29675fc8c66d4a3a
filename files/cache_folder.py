"""Where downloads and all that is kept for later runs lie when the user names no folder."""

import os


def default_cache_dir(kind: str) -> str:
    """The folder for `kind` ("data", "shards") under XDG_CACHE_HOME, by default ~/.cache; not created."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(base), "federated_suite", kind)
