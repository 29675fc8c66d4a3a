"""Smooths a curve, behind which the raw one stays visible."""

from collections.abc import Sequence

import numpy as np


def smooth(values: Sequence[float] | np.ndarray, window: int) -> np.ndarray:
    """The mean over a window of so many values around each; near an end over fewer, as many on either side."""
    numbers = np.asarray(values, np.float64)
    half, last = window // 2, len(numbers) - 1
    reach = [min(half, i, last - i) for i in range(len(numbers))]
    return np.array([numbers[i - near : i + near + 1].mean() for i, near in enumerate(reach)])
