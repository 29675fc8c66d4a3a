"""The features of an example, or the channels of a series: names, units, ranges, and what a model scales them by.

Pictures and tokens have none. Imports no TensorFlow.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datasets.example_format import CATEGORIES, ExampleFormat, Preprocessing, describe_group
from datasets.federated_data import FederatedData
from launch.console.shown_text import escape_hidden
from launch.runs.stored_data import FEATURE_DEVIATIONS, FEATURE_MEANS

TABLE, SERIES, NEITHER = "table", "series", ""
SAMPLE_SIZE = 100
MOST_DESCRIBED = 16  # features in words, those of one category as one


def choose_sample(labels: np.ndarray, size: int = SAMPLE_SIZE) -> np.ndarray:
    """Which test examples go into a page: evenly spaced over those ordered by class, so that none is left out.

    Args:
      labels: of the test set, (examples, ...); those of several values keep their order.
      size: how many at most.

    Returns:
      Their indices in ascending order, int64, (min(size, examples),).
    """
    spaced = np.linspace(0, len(labels) - 1, num=min(size, len(labels))).round().astype(int)
    # Stable, so that every machine chooses the same examples.
    order = np.argsort(labels, kind="stable") if labels.ndim == 1 else np.arange(len(labels))
    return np.sort(order[spaced])


def name_layout(example_format: ExampleFormat) -> str:
    """TABLE of examples that are features, SERIES of steps with channels, or NEITHER."""
    if example_format.takes_tokens or len(example_format.input_shape) > 2:
        return NEITHER
    return SERIES if example_format.is_series else TABLE


def describe_features(data: FederatedData, section: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The features, or channels, in their order, as JSON has them; numbers are as stored, before the preprocessing.

    A feature has "name" (as the data have it, or "feature 3", "channel 3"), "unit" ("" if it has none, or none is
    known), "lowest" and "highest" in the sample of the global test set, "is_whole" (whether that has whole numbers
    only). If the model standardises it, as if from the stored number, also "mean" and "deviation". The index of a
    category, or 1 for one category and 0 for others, has "is_category".

    Args:
      data: the examples.
      section: the data section of the run's `config.json`.
    """
    example_format, layout = data.format, name_layout(data.format)
    if layout == NEITHER:
        return []
    x = data.test_x[choose_sample(data.test_y)]
    columns = x.reshape(len(x), -1) if layout == TABLE else x.reshape(-1, example_format.input_shape[-1])
    number, noun = columns.shape[1], "feature" if layout == TABLE else "channel"
    names = example_format.feature_names or [f"{noun} {i + 1}" for i in range(number)]
    units = example_format.feature_units or [""] * number
    means, deviations = _read_scaling(section, number, example_format.preprocessing)
    features = []
    for i, (name, unit, column) in enumerate(zip(names, units, columns.T, strict=True)):
        span = {"lowest": float(column.min()), "highest": float(column.max())}
        fact = {"name": name, "unit": unit, **span, "is_whole": bool((column == np.rint(column)).all())}
        if means[i] is not None:
            fact |= {"mean": means[i], "deviation": deviations[i]}
        if i in example_format.categories:
            fact["is_category"] = True
        features.append(fact)
    return features


def _read_scaling(
    section: Mapping[str, Any], number: int, preprocessing: Preprocessing
) -> tuple[Sequence[float | None], Sequence[float | None]]:
    """Means and deviations of the stored numbers; None for each if the run has none, or has written something else.

    The run has those of the numbers after the preprocessing, x * scale + offset, which the model gets.
    """
    means, deviations = (section.get(name) for name in (FEATURE_MEANS, FEATURE_DEVIATIONS))
    # The file may be a stranger's, or one that somebody has edited.
    for values in (means, deviations):
        if not isinstance(values, list) or len(values) != number or not all(map(_is_number, values)):
            return [None] * number, [None] * number
    scale, offset = preprocessing.scale, preprocessing.offset
    # What stays as it is, in runs that leave anything so, has 0 and 1.
    is_left = [CATEGORIES in section and pair == (0, 1) for pair in zip(means, deviations, strict=True)]
    return (
        [None if left else (mean - offset) / scale for mean, left in zip(means, is_left, strict=True)],
        [None if left else deviation / scale for deviation, left in zip(deviations, is_left, strict=True)],
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def list_groups(example_format: ExampleFormat) -> list[dict[str, Any]]:
    """The categories among the features or channels for JSON, with their indices in `describe_features`."""
    return [] if name_layout(example_format) == NEITHER else [group.to_json() for group in example_format.groups]


def describe_in_words(features: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]] = ()) -> str:
    """The features of a JSON and its categories, of many the first, a category instead of the first of its features.

    Such as "temperature [°C] -3.5 to 31.25, mean 20, deviation 4; colour: one of red, green (features 1 to 2)".
    """
    group_of = {index: group for group in groups for index in group["features"]}
    texts = []
    for index, fact in enumerate(features):
        group = group_of.get(index)
        if group is None:
            unit = f" [{fact['unit']}]" if fact["unit"] else ""
            category = " (category)" if fact.get("is_category") else ""
            scaled = f", mean {fact['mean']:.6g}, deviation {fact['deviation']:.6g}" if "mean" in fact else ""
            span = f"{fact['lowest']:.6g} to {fact['highest']:.6g}"
            texts.append(f"{fact['name']}{unit}{category} {span}{scaled}")
        elif index == min(group["features"]):
            texts.append(describe_group(group))
    shown = [escape_hidden(text) for text in texts[:MOST_DESCRIBED]]
    more = [f"and {len(texts) - MOST_DESCRIBED:,} more"] if len(texts) > MOST_DESCRIBED else []
    counting = ["places of features are counted from 0"] if groups else []
    return "; ".join([*shown, *more, *counting])
