"""Weights of classes in the loss that trains: from a file of the user's, or balanced by how often each class occurs.

The loss of an example is multiplied by the weight of its class, as Keras's `fit(class_weight=...)` does it: the mean of
a batch is over its examples, not over their weights.

Weights of single examples are a column of the data; they are divided by their mean.
"""

import csv
import dataclasses
import hashlib
import io
import json
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, ExampleWeights
from datasets.names import name_some
from files.reading import describe, read_regular

COLUMNS = ("class", "weight")
MOST_BYTES = 2**24
# Beyond, the losses of float32 lose the other classes.
LARGEST = 1e6
_MOST_SHOWN = 10
_FORM = 'expected .json such as {"name": 2.5}, or .csv with the columns class,weight'


def load_class_weights(source: str, class_names: Sequence[str]) -> tuple[float, ...]:
    """The weight of each class, in the order of `class_names`, from a file.

    Args:
      source: path of a file: `.json`, an object of {class: weight}, or else CSV with the columns class and weight, a
        row a class. A class is spelled as in `class_names`.
      class_names: of the data.

    Raises:
      DatasetError: the file cannot be read; a class is unknown, missing or there twice; a weight is no number from 0 to
        `LARGEST`, or all are 0.
    """
    label = f"class_weights={source}"
    try:
        text = read_regular(os.path.expanduser(source), MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise DatasetError(f"{label}: {describe(error)}; expected balanced, none, or a file of class weights") from None
    except ValueError:
        # No UTF-8, or a NUL in the path.
        raise DatasetError(f"{label}: not a text in UTF-8; {_FORM}") from None
    pairs = _read_json(text, label) if source.lower().endswith(".json") else _read_csv(text, label)
    found: dict[str, float] = {}
    for name, value in pairs:
        if name not in class_names:
            raise DatasetError(f"{label}: unknown class {name!r:.60}, expected {name_some(class_names, _MOST_SHOWN)}")
        if name in found:
            raise DatasetError(f"{label}: class {name!r:.60} is there twice, expected one weight a class")
        # JSON's true would be the number 1.
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or not 0 <= value <= LARGEST:
            raise DatasetError(
                f"{label}: class {name!r:.60} has the weight {value!r:.30}, expected a number from 0 to {LARGEST:,.0f}"
            )
        found[name] = float(value)
    if missing := [name for name in class_names if name not in found]:
        named = name_some(missing, _MOST_SHOWN)
        raise DatasetError(f"{label}: no weight of {named}; expected one for each class, 1 for no change")
    if not any(found.values()):
        raise DatasetError(f"{label}: all weights are 0, so that nothing would be learned; expected one above 0")
    return tuple(found[name] for name in class_names)


def compute_balanced_weights(counts: np.ndarray) -> tuple[float, ...]:
    """n / (classes * n_k), as scikit-learn's "balanced": the weights of all n examples sum to n.

    Args:
      counts: examples of each class, integers, shape (classes,). Classes without any do not count as classes, and weigh
        1: there is nothing to multiply.
    """
    present = counts > 0
    weights = counts.sum() / (max(present.sum(), 1) * np.maximum(counts, 1))
    return tuple(np.where(present, weights, 1.0).tolist())


def digest_class_weights(weights: Sequence[float]) -> str:
    """A SHA-256, hexadecimal, that names the weights whatever file they stand in."""
    return hashlib.sha256(json.dumps([float(weight) for weight in weights]).encode()).hexdigest()


def describe_class_weights(class_names: Sequence[str], weights: Sequence[float]) -> str:
    """The classes and their weights in a line, such as "cat: 0.75, dog: 1.5"; of many the first."""
    pairs = zip(class_names, weights, strict=True)
    return name_some([f"{name}: {weight:.4g}" for name, weight in pairs], _MOST_SHOWN)


def _read_json(text: str, label: str) -> list[tuple[str, Any]]:
    try:
        # Pairs, since of a name that is there twice JSON would keep the last in silence.
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        raise DatasetError(f"{label}: not JSON; {_FORM}") from None
    if not text.lstrip().startswith("{"):
        raise DatasetError(f"{label}: no object; {_FORM}")
    return pairs


def _read_csv(text: str, label: str) -> Iterable[tuple[str, Any]]:
    try:
        header, *rows = [row for row in csv.reader(io.StringIO(text)) if row] or [[]]
    except csv.Error as error:
        raise DatasetError(f"{label}: {error}; {_FORM}") from None
    header = [name.strip() for name in header]
    if sorted(header) != sorted(COLUMNS):
        raise DatasetError(f"{label}: its first line is {','.join(header)!r:.60}; {_FORM}")
    for row in rows:
        if len(row) != len(COLUMNS):
            raise DatasetError(f"{label}: {','.join(row)!r:.60} has {len(row)} cells, expected {len(COLUMNS)}")
        cells = dict(zip(header, row, strict=True))
        try:
            yield cells["class"].strip(), float(cells["weight"])
        except ValueError:
            yield cells["class"].strip(), cells["weight"]


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
    # A mean of many float32 in float32 would lose digits.
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
