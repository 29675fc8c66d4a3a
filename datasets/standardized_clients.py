"""Each client's features, scaled by the means and deviations of its own train examples, before anything is trained.

For data whose clients name their own test examples, so that these are scaled by the numbers of the same client. The
numbers stay with the client: no model has them, and a phone must scale its examples by its own. What stays as it is
(see `datasets.unscaled`) is the same for all clients: counts that are added up over them decide it.
"""

import dataclasses
import hashlib
from collections.abc import Iterable

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.client_source import TRAIN, ClientSource
from datasets.errors import DatasetError
from datasets.example_format import ASIDE, Padding, Preprocessing, is_flat
from datasets.layouts import AUTO
from datasets.unscaled import (
    Unscaled,
    describe_padding,
    describe_places,
    find_other_fill,
    find_padding,
    find_unscaled,
)

READING = "each client's features scaled by its own means and deviations"
# To count more clients would mean to read them all; of more, evenly spaced ones are counted.
MOST_CLIENTS = 2000


def standardize_clients(data: ArrayDataset | ClientSource, unscaled: str = AUTO) -> ArrayDataset | ClientSource:
    """The same data with scaled features, float32; the preprocessing by scale and offset is done with that.

    A client without a train example keeps its numbers. Where a feature is constant, it becomes 0.

    Args:
      data: of clients that have test examples of their own.
      unscaled: what `--unscaled` says.

    Raises:
      DatasetError: examples are tokens, the data name no clients, or not whose the test examples are.
    """
    is_source = isinstance(data, ClientSource)
    if data.format.takes_tokens:
        raise DatasetError(f"standardize=client: {data.name} has tokens, which a model looks up; leave it out")
    if not (data.has_clients if is_source else data.train_clients is not None):
        raise DatasetError(f"standardize=client: {data.name} names no clients; give --standardize=federated")
    if not (data.has_tests if is_source else data.test_clients is not None):
        raise DatasetError(
            f"standardize=client: {data.name} does not say which test examples are whose; give --standardize=federated"
        )
    exempt, words = _choose_unscaled(data, unscaled)
    digest = data.digest if is_source else data.source_digest
    # Where all is scaled, the name of the data is that of earlier versions.
    named = f" but {exempt.places} {exempt.padding}" if exempt != Unscaled() else ""
    digest = hashlib.sha256(f"standardize=client {digest}{named}".encode()).hexdigest()
    # What was scaled is no 0 and 1 any more, and other numbers for each client.
    groups = tuple(group for group in data.format.groups if set(group.places) <= set(exempt.places))
    changes = {
        "format": dataclasses.replace(data.format, input_dtype="float32", preprocessing=Preprocessing(), groups=groups),
        "reading": "; ".join(filter(None, (data.reading, READING, *words))),
    }
    if is_source:

        def read(client: int, split: str) -> tuple[np.ndarray, np.ndarray]:
            x, y = data.read(client, split)
            # A test example must not say what it is scaled by.
            train_x = x if split == TRAIN else data.read(client, TRAIN)[0]
            return (_scale(x, _measure(train_x, exempt), exempt) if len(train_x) else x.astype(np.float32)), y

        return dataclasses.replace(data, read=read, digest=digest, **changes)
    train, test = (np.empty(x.shape, np.float32) for x in (data.train_x, data.test_x))
    for client in range(len(data.client_names)):
        own, tests = data.train_clients == client, data.test_clients == client
        numbers = _measure(data.train_x[own], exempt)
        train[own], test[tests] = (_scale(x, numbers, exempt) for x in (data.train_x[own], data.test_x[tests]))
    return dataclasses.replace(data, train_x=train, test_x=test, source_digest=digest, **changes)


def _choose_unscaled(data: ArrayDataset | ClientSource, unscaled: str) -> tuple[Unscaled, list[str]]:
    """What stays as it is, and that in words."""
    example_format = data.format
    exempt, counts = find_unscaled(unscaled, example_format, lambda: _iterate_clients(data))
    words = [f"but not {describe_places(example_format, exempt.places)}"] if exempt.places else []
    if exempt.padding and any(counts[:2]):
        words.append(describe_padding(exempt.padding, counts))
    elif unscaled == AUTO:
        words += filter(None, [find_other_fill(example_format, _iterate_clients(data), "give --unscaled={:g}")])
    return exempt, words


def _iterate_clients(data: ArrayDataset | ClientSource) -> Iterable[np.ndarray]:
    """The train examples of each client that has any."""
    if isinstance(data, ArrayDataset):
        return (x for client in range(len(data.client_names)) if len(x := data.train_x[data.train_clients == client]))
    members = np.flatnonzero(data.num_examples[TRAIN])
    places = np.linspace(0, len(members) - 1, num=min(len(members), MOST_CLIENTS)).round().astype(int)
    return (data.read(int(client), TRAIN)[0] for client in members[places])


def measure_features(x: np.ndarray, padding: Padding | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(means, deviations) of each feature or channel, float64, of the right shape to meet `x`; no deviation is 0.

    Args:
      x: shape (examples, features), (examples, features, 1), or with channels last.
      padding: the steps that are not measured.
    """
    axes = 0 if is_flat(x.shape[1:]) else tuple(range(x.ndim - 1))
    if padding is None:
        means = x.mean(axes, np.float64)
        deviations = np.sqrt(np.mean(np.square(x.astype(np.float64) - means), axes))
    else:
        is_measured = np.broadcast_to(~find_padding(x, padding)[..., np.newaxis], x.shape)
        number = np.maximum(is_measured.sum(axes), 1)
        means = np.where(is_measured, x, 0.0).sum(axes) / number
        deviations = np.sqrt(np.where(is_measured, np.square(x.astype(np.float64) - means), 0.0).sum(axes) / number)
    # A deviation within the rounding of the mean is that of a constant.
    return means, np.where(deviations > np.abs(means) * 2.0**-50, deviations, 1.0)


def _measure(train_x: np.ndarray, exempt: Unscaled) -> tuple[np.ndarray, np.ndarray]:
    """As `measure_features`, with 0 and 1 for what stays as it is."""
    means, deviations = measure_features(train_x, exempt.padding)
    means[list(exempt.places)], deviations[list(exempt.places)] = 0, 1
    return means, deviations


def _scale(x: np.ndarray, numbers: tuple[np.ndarray, np.ndarray], exempt: Unscaled) -> np.ndarray:
    scaled = ((x.astype(np.float64) - numbers[0]) / numbers[1]).astype(np.float32)
    if exempt.padding is None:
        return scaled
    # No model must mask a step only since scaling has made it equal to the padding.
    scaled[find_padding(scaled, exempt.padding._replace(is_anywhere=True))] = exempt.padding.value + ASIDE
    return np.where(find_padding(x, exempt.padding)[..., np.newaxis], x, scaled).astype(np.float32)
