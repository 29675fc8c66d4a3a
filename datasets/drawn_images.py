"""How a drawing becomes an example of a data set of pictures: the pages in which people draw are told this."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from datasets.federated_data import FederatedData

PLAIN = "plain"
FRAMINGS = ("digits", "mnist", PLAIN)  # as launch/tflite/web/strokes.js scales and places strokes


def find_range(data: FederatedData) -> tuple[float, float]:
    """The lowest and the highest stored value, by the data set's word or else by its examples."""
    preprocessing = data.format.preprocessing
    if preprocessing.feature_range is None:
        return float(data.test_x.min()), float(data.test_x.max())
    lowest, highest = ((value - preprocessing.offset) / preprocessing.scale for value in preprocessing.feature_range)
    return lowest, highest


def is_picture(shape: Sequence[int]) -> bool:
    """Whether examples of this shape are grey or coloured pictures."""
    return len(shape) == 3 and shape[2] in (1, 3)


def describe_image(data: FederatedData) -> dict[str, Any] | None:
    """How a drawing becomes an example; None for data that are no pictures, or without a test example to look at.

    The paper of grey pictures is the end of their range that is nearer to the mean of their edges, and the ink is the
    other end. On colour pictures the ink is chosen in the page.
    """
    shape = data.format.input_shape
    if not is_picture(shape) or not len(data.test_x):
        return None
    low, high = find_range(data)
    edge = np.concatenate([data.test_x[:, 0].ravel(), data.test_x[:, -1].ravel()]).mean()
    is_white = shape[2] == 1 and edge > (low + high) / 2
    framing = data.dataset if data.dataset in FRAMINGS else PLAIN
    return make_image(shape, low, high, framing, is_white, data.format.input_dtype == "uint8")


def make_image(
    shape: Sequence[int], low: float, high: float, framing: str, is_white: bool, is_whole: bool
) -> dict[str, Any]:
    """The same of pictures of shape (height, width, channels) between two stored values, JSON for the pages.

    Args:
      shape: (height, width, channels).
      low: the lowest stored value.
      high: the highest.
      framing: one of FRAMINGS.
      is_white: whether the paper is the highest value, and not the lowest.
      is_whole: whether stored values are whole numbers.
    """
    height, width, channels = shape
    return {
        "height": height,
        "width": width,
        "channels": channels,
        "low": low,
        "high": high,
        "framing": framing,
        "paper": high if is_white else low,
        "ink": [low if is_white else high] * channels,
        "isWhole": is_whole,
    }
