"""What `config.json` says of a run's data, checked when it is read: the file may be damaged, or somebody else's."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from datasets.errors import DatasetError
from datasets.example_format import (
    CATEGORIES,
    GROUPS,
    KIND,
    TASK,
    TEXT,
    WEIGHTS,
    ExampleFormat,
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
    IS_REMOTE,
    NOTES,
    NUM_TEST,
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


# What a value may be, of any that JSON can hold.
_is_count = lambda value: type(value) is int and 0 <= value < 2**53
_is_number = lambda value: type(value) in (int, float) and abs(value) <= 1e300 and math.isfinite(value)
_is_text = lambda value: isinstance(value, str)
_is_switch = lambda value: isinstance(value, bool)
_is_whole = lambda value: type(value) is int and abs(value) < 2**31


def _list_of(is_right: Callable[[Any], bool], most: int = MAX_VALUES) -> Callable[[Any], bool]:
    """What tells whether a value is a list of such values, and not of more."""
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(is_right, value))


def _object_of(checks: Mapping[str, Callable[[Any], bool]]) -> Callable[[Any], bool]:
    """What tells whether a value is an object with these entries and no other."""
    return lambda value: (
        isinstance(value, dict)
        and set(value) == set(checks)
        and all(is_right(value[name]) for name, is_right in checks.items())
    )


_are_texts, _are_places = _list_of(_is_text), _list_of(_is_count)
_are_numbers = _list_of(_is_number, MAX_OUTPUTS)
_are_sizes = _list_of(lambda size: type(size) is int and size >= 1, 8)
_is_shape = lambda value: _are_sizes(value) and len(value) > 0 and math.prod(value) < MAX_VALUES
_GROUP_CHECKS = {"name": _is_text, "features": _are_places, "values": _are_texts}
_GROUP_CHECKS |= {"is_index": _is_switch, "has_none": _is_switch}
_PADDING_CHECKS = {"value": _is_number, "is_anywhere": _is_switch}
_WEIGHTS_CHECKS = {"column": _is_text, "num_examples": _is_count, "num_zero": _is_count}
_WEIGHTS_CHECKS |= dict.fromkeys(("mean", "lowest", "highest"), _is_number)
# What is said of labels beside the kind of task: the fields of `LabelFormat`.
_LABEL_CHECKS: dict[str, Callable[[Any], bool]] = {
    KIND: _is_text,
    "shape": lambda value: value == [] or _is_shape(value),
    "num_outputs": lambda value: _is_count(value) and value <= MAX_OUTPUTS,
    "offset": _are_numbers,
    "scale": _are_numbers,
    "padding": _is_whole,
    "oov": lambda value: value is None or _is_whole(value),
}


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(
        ("dataset", DIGEST, SOURCE_DIGEST, ARRAYS_DIGEST, DEVICES, CLASS_WEIGHTS_DIGEST, READING), (_is_text, "text")
    ),
    **dict.fromkeys(("scale", "offset"), (_is_number, "a finite number")),
    "input_shape": (_is_shape, "a list of sizes of at least 1"),
    "input_dtype": (lambda value: value in ("uint8", "int32", "float32"), "uint8, int32 or float32"),
    "class_names": (lambda value: _are_texts(value) and len(set(value)) == len(value), "a list of different names"),
    TASK: (_object_of(_LABEL_CHECKS), "a task and what its labels are"),
    "feature_range": (
        lambda value: value is None or (_are_numbers(value) and len(value) == 2),
        "two finite numbers, or null",
    ),
    **dict.fromkeys(("takes_tokens", "are_features", "has_whole_steps", IS_REMOTE), (_is_switch, "true or false")),
    CATEGORIES: (_are_places, "a list of places from 0"),
    GROUPS: (_list_of(_object_of(_GROUP_CHECKS)), "a list of categories with the places of their features"),
    **dict.fromkeys(("feature_names", "feature_units"), (_are_texts, "a list of texts")),
    FEATURE_MEANS: (_are_numbers, "a list of finite numbers"),
    FEATURE_DEVIATIONS: (
        lambda value: _are_numbers(value) and all(number > 0 for number in value),
        "a list of numbers above 0",
    ),
    CLASS_WEIGHTS: (
        lambda value: _are_numbers(value) and all(number >= 0 for number in value),
        "a list of numbers of at least 0",
    ),
    FILLED: (lambda value: isinstance(value, dict) and all(map(_is_count, value.values())), "whole numbers by column"),
    FEATURE_PADDING: (
        _object_of(_PADDING_CHECKS),
        "a number, and whether it is anywhere",
    ),
    WEIGHTS: (_object_of(_WEIGHTS_CHECKS), "a column and what its numbers are"),
    TEXT: (_object_of({"column": _is_text, "vocabulary": _are_texts}), "a column and the texts of its tokens"),
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


def has_test_set(section: Mapping[str, Any]) -> bool:
    """Whether a run has test examples on this machine, by the data section of its `config.json`.

    Not where clients brought their own examples, and nothing but a schema told of these.
    """
    return not section.get(IS_REMOTE) or bool(section.get(NUM_TEST))
