"""The features of an example, or the channels of a series: names, units, ranges, and what a model scales them by.

Pictures and tokens have none. Imports no TensorFlow.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.example_format import CATEGORIES, ExampleFormat, Preprocessing, describe_group
from datasets.federated_data import FederatedData
from launch.console.shown_text import escape_hidden
from launch.runs.stored_data import FEATURE_DEVIATIONS, FEATURE_MEANS

TABLE, SERIES, NEITHER = "table", "series", ""
SAMPLE_SIZE = 100
MOST_DESCRIBED = 16  # features in words, those of one category as one


class Feature(NamedTuple):
    """A feature, or a channel of a series. Numbers are as stored, before the preprocessing.

    Attributes:
      name: as the data have it, or "feature 3", "channel 3".
      unit: such as "°C"; "" if it has none, or none is known.
      lowest: of the sample.
      highest: of the sample.
      is_whole: whether the sample has whole numbers only.
      mean: what the model subtracts, as if from the stored number; None if it does not standardise the feature.
      deviation: what it then divides by, likewise.
      is_category: True of the index of a category, or of 1 for one category and 0 for others; else None.
    """

    name: str
    unit: str
    lowest: float
    highest: float
    is_whole: bool
    mean: float | None = None
    deviation: float | None = None
    is_category: bool | None = None


def choose_sample(labels: np.ndarray, size: int = SAMPLE_SIZE) -> np.ndarray:
    """Which test examples go into a page: evenly spaced over those ordered by class, so that none is left out.

    Args:
      labels: of the test set, (examples, ...); those of several values keep their order.
      size: how many at most.

    Returns:
      Their indices in ascending order, int64, (min(size, examples),).
    """
    places = np.linspace(0, len(labels) - 1, num=min(size, len(labels))).round().astype(int)
    order = np.argsort(labels, kind="stable") if labels.ndim == 1 else np.arange(len(labels))
    return np.sort(order[places])


def name_form(example_format: ExampleFormat) -> str:
    """TABLE of examples that are features, SERIES of steps with channels, or NEITHER."""
    if example_format.takes_tokens or len(example_format.input_shape) > 2:
        return NEITHER
    return SERIES if example_format.is_series else TABLE


def describe_features(data: FederatedData, section: Mapping[str, Any]) -> list[Feature]:
    """The features, or channels, in their order; their ranges are those of the sample of the global test set.

    Args:
      data: the examples.
      section: the data section of the run's `config.json`.
    """
    example_format, form = data.format, name_form(data.format)
    if form == NEITHER:
        return []
    x = data.test_x[choose_sample(data.test_y)]
    columns = x.reshape(len(x), -1) if form == TABLE else x.reshape(-1, example_format.input_shape[-1])
    number, kind = columns.shape[1], "feature" if form == TABLE else "channel"
    names = example_format.feature_names or [f"{kind} {i + 1}" for i in range(number)]
    units = example_format.feature_units or [""] * number
    ranges = zip(columns.min(axis=0), columns.max(axis=0), strict=True)
    are_whole = (columns == np.rint(columns)).all(axis=0)
    scaling = zip(*_read_scaling(section, number, example_format.preprocessing), strict=True)
    are_categories = [place in example_format.categories or None for place in range(number)]
    rows = zip(names, units, ranges, are_whole, scaling, are_categories, strict=True)
    return [
        Feature(name, unit, float(low), float(high), bool(is_whole), *scaled, is_category)
        for name, unit, (low, high), is_whole, scaled, is_category in rows
    ]


def _read_scaling(
    section: Mapping[str, Any], number: int, preprocessing: Preprocessing
) -> tuple[Sequence[float | None], Sequence[float | None]]:
    """Means and deviations of the stored numbers; None for each if the run has none, or has written something else.

    The run has those of the numbers after the preprocessing, x * scale + offset, which the model gets.
    """
    means, deviations = (section.get(name) for name in (FEATURE_MEANS, FEATURE_DEVIATIONS))
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


def list_facts(features: Sequence[Feature]) -> list[dict[str, Any]]:
    """The features for JSON; mean and deviation only where there are any."""
    return [{name: value for name, value in each._asdict().items() if value is not None} for each in features]


def list_groups(example_format: ExampleFormat) -> list[dict[str, Any]]:
    """The categories among the features or channels for JSON, with their places in `describe_features`."""
    return [] if name_form(example_format) == NEITHER else [group.to_json() for group in example_format.groups]


def describe_in_words(facts: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]] = ()) -> str:
    """The features of a JSON and its categories, of many the first, a category in place of the first of its features.

    Such as "temperature [°C] -3.5 to 31.25, mean 20, deviation 4; colour: one of red, green (features 1 to 2)".
    """
    by_place = {place: group for group in groups for place in group["features"]}
    texts = []
    for place, fact in enumerate(facts):
        group = by_place.get(place)
        if group is None:
            unit = f" [{fact['unit']}]" if fact["unit"] else ""
            category = " (category)" if fact.get("is_category") else ""
            scaled = f", mean {fact['mean']:.6g}, deviation {fact['deviation']:.6g}" if "mean" in fact else ""
            span = f"{fact['lowest']:.6g} to {fact['highest']:.6g}"
            texts.append(f"{fact['name']}{unit}{category} {span}{scaled}")
        elif place == min(group["features"]):
            texts.append(describe_group(group))
    shown = [escape_hidden(text) for text in texts[:MOST_DESCRIBED]]
    more = [f"and {len(texts) - MOST_DESCRIBED:,} more"] if len(texts) > MOST_DESCRIBED else []
    counting = ["places of features are counted from 0"] if groups else []
    return "; ".join([*shown, *more, *counting])
