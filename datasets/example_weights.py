"""What the weights of train examples are divided by, and what is said of them."""

import dataclasses
from collections.abc import Iterable

import numpy as np

from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, ExampleWeights


def measure_weights(
    name: str, example_format: ExampleFormat, column: str, weights: Iterable[np.ndarray]
) -> ExampleFormat:
    """The format of data whose train examples have these weights.

    Only the ratios of weights count: divided by the mean over all train examples of all clients, those that are all
    the same become 1, and learning rates mean what they do without weights.

    Args:
      name: of the data, for the error.
      example_format: of them, without weights.
      column: that says them.
      weights: of each client's train examples, float32 (examples,), finite, at least 0.

    Raises:
      DatasetError: all are 0.
    """
    values = np.concatenate([np.zeros(0, np.float32), *weights])
    if not values.any():
        raise DatasetError(
            f"{name}: weight column {column!r} is 0 for each of {len(values):,} train examples, expected numbers above "
            f"0 for some; correct it, or leave --weight_column out"
        )
    found = ExampleWeights(
        column,
        float(values.mean(dtype=np.float64)),
        float(values.min()),
        float(values.max()),
        int(np.count_nonzero(values == 0)),
        len(values),
    )
    return dataclasses.replace(example_format, weights=found)


def describe_weights(weights: ExampleWeights) -> str:
    """What the weights of train examples are, in words."""
    return (
        f"column {weights.column}: {weights.lowest:g} to {weights.highest:g}, {weights.num_zero:,} of "
        f"{weights.num_examples:,} train examples weigh 0; divided by their mean, {weights.mean:g}"
    )
