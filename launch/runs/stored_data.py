"""What `config.json` says of a run's data, checked when it is read: the file may be damaged, or somebody else's."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from datasets.category_groups import GROUPS
from datasets.errors import DatasetError
from datasets.example_format import (
    CATEGORIES,
    KIND,
    TASK,
    WEIGHTS,
    ExampleFormat,
    ExampleWeights,
    Padding,
    read_example_format,
)
from launch.runs.columns import (
    ARRAYS_DIGEST,
    CLASS_WEIGHTS,
    CLASS_WEIGHTS_DIGEST,
    DEVICES,
    DIGEST,
    FILLED,
    NOTES,
    READING,
    SOURCE_DIGEST,
)
from launch.runs.errors import RunFolderError

# Only where a model scales its features.
FEATURE_MEANS, FEATURE_DEVIATIONS = "feature_means", "feature_deviations"
FEATURE_PADDING = "feature_padding"  # only where steps of sequences stay as they are meanwhile
NEEDED = ("input_shape", "input_dtype", "scale", "offset", "class_names")
MAX_VALUES = 10**9  # in one example
MAX_OUTPUTS = 10**7


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
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_VALUES and all(map(_is_text, value))


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_OUTPUTS and all(map(_is_number, value))


def _are_deviations(value: Any) -> bool:
    return _are_numbers(value) and all(number > 0 for number in value)


def _are_class_weights(value: Any) -> bool:
    return _are_numbers(value) and all(number >= 0 for number in value)


def _is_range(value: Any) -> bool:
    return value is None or (_are_numbers(value) and len(value) == 2)


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_count, value.values()))


def _are_places(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_VALUES and all(map(_is_count, value))


def _are_groups(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, dict)
        and set(each) == {"name", "features", "values", "is_index", "has_none"}
        and _is_text(each["name"])
        and _are_places(each["features"])
        and _are_texts(each["values"])
        and isinstance(each["is_index"], bool)
        and isinstance(each["has_none"], bool)
        for each in value
    )


def _is_padding(value: Any) -> bool:
    names = set(Padding._fields)
    return (
        isinstance(value, dict)
        and set(value) == names
        and _is_number(value["value"])
        and isinstance(value["is_anywhere"], bool)
    )


def _are_weights(value: Any) -> bool:
    counts, numbers = ("num_examples", "num_zero"), ("mean", "lowest", "highest")
    if not isinstance(value, dict) or set(value) != set(ExampleWeights._fields) or not _is_text(value["column"]):
        return False
    return all(_is_count(value[name]) for name in counts) and all(_is_number(value[name]) for name in numbers)


def _is_task(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {KIND, *_LABEL_CHECKS}:
        return False
    return isinstance(value[KIND], str) and all(check(value[name]) for name, check in _LABEL_CHECKS.items())


# What is said of labels beside the kind of task: the fields of `LabelFormat`.
_LABEL_CHECKS: dict[str, Callable[[Any], bool]] = {
    "shape": lambda value: value == [] or _is_shape(value),
    "num_outputs": lambda value: _is_count(value) and value <= MAX_OUTPUTS,
    "offset": _are_numbers,
    "scale": _are_numbers,
    "padding": lambda value: type(value) is int and abs(value) < 2**31,
    "oov": lambda value: value is None or (type(value) is int and abs(value) < 2**31),
}


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(
        ("dataset", DIGEST, SOURCE_DIGEST, ARRAYS_DIGEST, DEVICES, CLASS_WEIGHTS_DIGEST, READING), (_is_text, "text")
    ),
    **dict.fromkeys(("scale", "offset"), (_is_number, "a finite number")),
    "input_shape": (_is_shape, "a list of sizes of at least 1"),
    "input_dtype": (lambda value: value in ("uint8", "int32", "float32"), "uint8, int32 or float32"),
    "class_names": (_are_names, "a list of different names"),
    TASK: (_is_task, "a task and what its labels are"),
    "feature_range": (_is_range, "two finite numbers, or null"),
    **dict.fromkeys(
        ("takes_tokens", "are_features", "has_whole_steps"), (lambda value: isinstance(value, bool), "true or false")
    ),
    CATEGORIES: (_are_places, "a list of places from 0"),
    GROUPS: (_are_groups, "a list of categories with the places of their features"),
    **dict.fromkeys(("feature_names", "feature_units"), (_are_texts, "a list of texts")),
    FEATURE_MEANS: (_are_numbers, "a list of finite numbers"),
    FEATURE_DEVIATIONS: (_are_deviations, "a list of numbers above 0"),
    CLASS_WEIGHTS: (_are_class_weights, "a list of numbers of at least 0"),
    FILLED: (_are_counts, "whole numbers by column"),
    FEATURE_PADDING: (_is_padding, "a number, and whether it is anywhere"),
    WEIGHTS: (_are_weights, "a column and what its numbers are"),
    "archetypes": (lambda value: isinstance(value, dict), "an object"),
    **dict.fromkeys(("label_counts", NOTES), (lambda value: isinstance(value, list), "a list")),
}


def read_data_section(data: Any, path: Any) -> ExampleFormat:
    """What a data section says of the examples, if the commands can use it; what an earlier version did not write has
    its default.

    Args:
      data: what `config.json` holds under "data".
      path: the file, for errors.

    Raises:
      RunFolderError: it is no object, something that commands need is missing, or a value is of another kind.
    """
    if not isinstance(data, dict):
        raise RunFolderError(f"{path}: damaged, does not describe the data; restore it, or train again")
    missing = [name for name in NEEDED if name not in data]
    if missing:
        raise RunFolderError(f"{path}: damaged, its data lacks {', '.join(missing)}; restore it")
    for name, value in data.items():
        is_right, expected = _CHECKS.get(name, (_is_count, "a whole number") if name.startswith("num_") else (bool, ""))
        if expected and not is_right(value):
            raise RunFolderError(f"{path}: damaged, its data has {name}={value!r:.60}, expected {expected}; restore it")
    if len(data.get(FEATURE_MEANS, ())) != len(data.get(FEATURE_DEVIATIONS, ())):
        raise RunFolderError(
            f"{path}: damaged, its data has another number of {FEATURE_MEANS} than deviations; restore it"
        )
    try:
        found = read_example_format(data)
    except DatasetError as error:  # the values do not fit each other
        raise RunFolderError(f"{path}: damaged, its data has {error}; restore it") from None
    if len(data.get(CLASS_WEIGHTS, ())) not in (0, len(found.class_names)):
        raise RunFolderError(
            f"{path}: damaged, its data has another number of {CLASS_WEIGHTS} than classes; restore it"
        )
    return found


class Scaling(NamedTuple):
    """What a model takes from its features and divides them by, and the steps that stay as they are."""

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    padding: Padding | None


def read_scaling(data: Mapping[str, Any]) -> Scaling | None:
    """What a data section, as `read_data_section` found it right, says of that; None if nothing is scaled."""
    if not data.get(FEATURE_MEANS):
        return None
    stored = data.get(FEATURE_PADDING)
    padding = None if stored is None else Padding(**stored)
    return Scaling(tuple(data[FEATURE_MEANS]), tuple(data[FEATURE_DEVIATIONS]), padding)
