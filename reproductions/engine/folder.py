"""The folder of a paper: the data in it that reports are made from."""

import functools
import pathlib
import tomllib
from collections.abc import Mapping
from typing import Any

FOLDER = pathlib.Path(__file__).parents[1]  # a folder a paper


@functools.cache
def read_toml(paper: str, name: str) -> Mapping[str, Any]:
    """A TOML file of a paper's folder."""
    return tomllib.loads((FOLDER / paper / name).read_text(encoding="utf-8"))


WORDS = read_toml("engine", "words.toml")  # what the pages of all papers say
