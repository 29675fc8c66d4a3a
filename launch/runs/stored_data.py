"""What `config.json` says of a run's data, checked when it is read: the file may be damaged, or somebody else's."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from launch.runs.columns import NOTES, READING
from launch.runs.errors import RunFolderError

NEEDED = ("input_shape", "input_dtype", "scale", "offset", "class_names")
MAX_VALUES = 10**9  # in one example


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= 1e300 and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_shape(value: Any) -> bool:
    sizes = value if isinstance(value, list) else []
    return (
        1 <= len(sizes) <= 8
        and all(type(size) is int and size >= 1 for size in sizes)
        and math.prod(sizes) < MAX_VALUES
    )


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and len(value) >= 2 and all(map(_is_text, value)) and len(set(value)) == len(value)


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("dataset", "digest", "device_profiles", READING), (_is_text, "text")),
    **dict.fromkeys(("scale", "offset"), (_is_number, "a finite number")),
    "input_shape": (_is_shape, "a list of sizes of at least 1"),
    "input_dtype": (lambda value: value in ("uint8", "float32"), "uint8 or float32"),
    "class_names": (_are_names, "a list of at least 2 different names"),
    "archetypes": (lambda value: isinstance(value, dict), "an object"),
    **dict.fromkeys(("label_counts", NOTES), (lambda value: isinstance(value, list), "a list")),
}


def check_data_section(data: Any, path: Any) -> Mapping[str, Any]:
    """`data` itself, if it is a data section that the commands can use.

    Args:
      data: what `config.json` holds under "data".
      path: the file, for errors.

    Raises:
      RunFolderError: it is no object, something that commands need is missing, or a value is of another kind.
    """
    if not isinstance(data, dict):
        raise RunFolderError(f"{path}: damaged, says nothing of the data; restore it, or train again")
    missing = [name for name in NEEDED if name not in data]
    if missing:
        raise RunFolderError(f"{path}: damaged, its data says nothing of {', '.join(missing)}; restore it")
    for name, value in data.items():
        is_right, expected = _CHECKS.get(name, (_is_count, "a whole number") if name.startswith("num_") else (bool, ""))
        if expected and not is_right(value):
            raise RunFolderError(f"{path}: damaged, its data has {name}={value!r:.60}, expected {expected}; restore it")
    return data
