"""The description of a run's examples in a file that a person wrote, checked and completed: `--schema=schema.json`.

The least of a table: {"columns": [{"name": "age"}, {"name": "colour", "values": ["red", "green"]}], "label": {"name":
"ill", "classes": ["no", "yes"]}}. What else may stand there, `launch.live.description` says.
"""

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from datasets.drawn_images import FRAMINGS, PLAIN, is_picture, make_image
from datasets.errors import DatasetError
from datasets.options import DECIMAL_MARKS, DEFAULT_MISSING_WORDS, MISSING
from datasets.tables.features import INDEX, ONE_HOT
from files.reading import describe, read_regular
from launch.live.description import ARRAYS, LEAST_DEVIATION, NUMBER, TABLE, make_format
from tff_algos.settings.config_fields import ConfigError

MOST_BYTES = 2**24  # of the file


def read_schema(path: str) -> dict[str, Any]:
    """The description in a file, what it leaves out at its default; `kind` is that of a table if it has columns.

    Raises:
      ConfigError: it cannot be read, or is no description.
    """
    try:
        content = json.loads(read_regular(os.path.expanduser(path), MOST_BYTES))
    except OSError as error:
        raise ConfigError("schema", path, f"a file that can be read ({describe(error)})") from None
    except (ValueError, RecursionError):
        raise ConfigError("schema", path, 'JSON, as in {"columns": [{"name": "age"}], "label": {...}}') from None
    try:
        found = _complete(content)
        make_format(found)
    except DatasetError as error:
        raise ConfigError("schema", path, f"a description of examples, but {error}") from None
    return found


_is_text = lambda value: isinstance(value, str) and value == value.strip() and value != ""
_is_number = lambda value: type(value) in (int, float) and math.isfinite(value) and abs(value) < 3e38
_are_names = lambda value: isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)
_are_words = lambda value: isinstance(value, list) and all(map(_is_text, value))
_one_of = lambda names: lambda value: value in names
_REQUIRED = object()
# Of each entry: whether a value is right, what it should be, and its default.
_SCALE = {
    "scale": (lambda value: _is_number(value) and value > 0, "a number above 0", 1.0),
    "offset": (_is_number, "a number", 0.0),
}
_TABLE = {
    "name": (_is_text, "a name", "own data"),
    "kind": (_one_of((TABLE,)), TABLE, TABLE),
    "columns": (lambda value: isinstance(value, list) and len(value) > 0, "a list of columns", _REQUIRED),
    "label": (lambda value: isinstance(value, dict), "an object with name and classes", _REQUIRED),
    "missing": (_one_of(MISSING), ", ".join(MISSING), MISSING[0]),
    "missing_words": (_are_words, "a list of words", sorted(DEFAULT_MISSING_WORDS.split(","))),
    "decimal_mark": (_one_of(DECIMAL_MARKS), ", ".join(DECIMAL_MARKS), DECIMAL_MARKS[0]),
    "left_out": (_are_names, "a list of different names", []),
    **_SCALE,
}
_ARRAYS = {
    "name": (_is_text, "a name", "own data"),
    "kind": (_one_of((ARRAYS,)), ARRAYS, ARRAYS),
    "input_shape": (
        lambda value: isinstance(value, list) and value and all(type(size) is int and size > 0 for size in value),
        "a list of sizes",
        _REQUIRED,
    ),
    "input_dtype": (_one_of(("uint8", "float32")), "uint8 or float32", "float32"),
    "classes": (_are_names, "a list of different names", _REQUIRED),
    "image": (lambda value: value is None or isinstance(value, dict), "an object with low and high", None),
    **_SCALE,
}
# Pictures that people draw, or give as files.
_IMAGE = {
    "low": (_is_number, "a number", 0.0),
    "high": (_is_number, "a number", 255.0),
    "framing": (_one_of(FRAMINGS), ", ".join(FRAMINGS), PLAIN),
    "is_white": (lambda value: isinstance(value, bool), "true or false", False),
}
_NUMBER = {
    "name": (_is_text, "a name", _REQUIRED),
    "kind": (_one_of((NUMBER,)), f"{NUMBER}, or values of a category", NUMBER),
    "fill": (_is_number, "a number", 0.0),
    "mean": (_is_number, "a number", 0.0),
    "deviation": (lambda value: _is_number(value) and value >= LEAST_DEVIATION, "a number above 0", 1.0),
}
_CATEGORY = {
    "name": (_is_text, "a name", _REQUIRED),
    "kind": (_one_of((ONE_HOT, INDEX)), f"{ONE_HOT} or {INDEX}", ONE_HOT),
    "values": (lambda value: _are_names(value) and len(value) > 0, "a list of different names", _REQUIRED),
    "joined": (
        lambda value: isinstance(value, dict) and all(map(_is_text, (*value, *value.values()))),
        "{spelling: value}",
        {},
    ),
    "most_frequent": (lambda value: type(value) is int and value >= 0, "the place of a value, from 0", 0),
}
_LABEL = {
    "name": (_is_text, "a name", _REQUIRED),
    "classes": (lambda value: _are_names(value) and len(value) > 1, "a list of two different names or more", _REQUIRED),
    "numbers": (lambda value: isinstance(value, list) and all(map(_is_number, value)), "a list of numbers", []),
    "spellings": (lambda value: isinstance(value, dict) and all(map(_is_text, value)), "{text: place of a class}", {}),
}


def _complete(content: Any) -> dict[str, Any]:
    """The description with its defaults. Raises DatasetError, whose text goes on after "but"."""
    if not isinstance(content, dict):
        raise DatasetError("it is no object")
    if content.get("kind", TABLE if "columns" in content else ARRAYS) == ARRAYS:
        found = _take(content, _ARRAYS, "it")
        return found if found["image"] is None else found | {"image": _complete_image(found)}
    found = _take(content, _TABLE, "it")
    found["columns"] = [
        _take(each, _CATEGORY if isinstance(each, dict) and "values" in each else _NUMBER, f"column {number}")
        for number, each in enumerate(found["columns"], 1)
    ]
    for column in found["columns"]:
        values = column.get("values")
        if values and (column["most_frequent"] >= len(values) or set(column["joined"].values()) - set(values)):
            raise DatasetError(f"column {column['name']} has joined or most_frequent beyond its values")
    found["label"] = _complete_label(found["label"])
    names = [each["name"] for each in (*found["columns"], found["label"])]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DatasetError(f"the column {twice[0]} stands there twice")
    return found


def _complete_image(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """How a drawing becomes an example of these arrays."""
    image, shape = _take(arrays["image"], _IMAGE, "image"), arrays["input_shape"]
    is_whole = arrays["input_dtype"] == "uint8"
    if not is_picture(shape):
        raise DatasetError(f"it has an image, expected input_shape of (height, width, 1 or 3) then, not {shape}")
    if not image["low"] < image["high"] or (is_whole and not 0 <= image["low"] < image["high"] <= 255):
        raise DatasetError("image has low and high of no use, expected low below high, of uint8 in 0..255")
    return make_image(tuple(shape), image["low"], image["high"], image["framing"], image["is_white"], is_whole)


def _complete_label(content: Any) -> dict[str, Any]:
    """A label of which nothing else is said has its classes written as they are called, whole numbers as numbers."""
    label = _take(content, _LABEL, "label")
    classes, numbers, spellings = label["classes"], label["numbers"], label["spellings"]
    if any(type(place) is not int or not 0 <= place < len(classes) for place in spellings.values()):
        raise DatasetError(f"label has spellings of other places than 0 to {len(classes) - 1}")
    if numbers and (len(set(numbers)) != len(classes) or len(numbers) != len(classes) or spellings):
        raise DatasetError("label has numbers, expected a different one for each class, and no spellings beside them")
    if not numbers and not spellings:
        # Whole numbers are written in several ways, such as 1 and 1.0.
        are_numbers = all(name.isascii() and name.isdigit() for name in classes)
        numbers = [float(name) for name in classes] if are_numbers else []
        spellings = {} if are_numbers else {name: place for place, name in enumerate(classes)}
    return label | {"numbers": numbers, "spellings": spellings}


def _take(content: Any, entries: Mapping[str, tuple[Any, str, Any]], where: str) -> dict[str, Any]:
    """These entries of an object, with their defaults."""
    if not isinstance(content, dict):
        raise DatasetError(f"{where} is no object")
    if unknown := [name for name in content if name not in entries]:
        raise DatasetError(f"{where} has {unknown[0]!r}, expected of {', '.join(entries)}")
    found = {}
    for name, (is_right, expected, default) in entries.items():
        if name not in content and default is _REQUIRED:
            raise DatasetError(f"{where} lacks {name}, {expected}")
        value = content.get(name, default)
        if not is_right(value):
            raise DatasetError(f"{where} has {name}={value!r:.60}, expected {expected}")
        found[name] = value
    return found
