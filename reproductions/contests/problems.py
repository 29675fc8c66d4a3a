"""The league's problems as contests.toml has them. Imports no TensorFlow."""

from collections.abc import Mapping
from typing import Any

from reproductions.engine.collection import read_toml

CONTESTS: Mapping[str, Mapping[str, Any]] = read_toml("contests", "contests.toml")
ALL = "all"
PROBLEMS = tuple(name for name in CONTESTS if name != ALL)
NEW = "new"


def read_words(name: str) -> Mapping[str, Any]:
    """What is written of a problem, and of the one that it is like but for some words and flags."""
    words = CONTESTS[name]
    if "like" not in words:
        return words
    like = CONTESTS[words["like"]]
    return {**like, **words, "flags": [*like["flags"], *words["but"]]}
