"""Each client's features, scaled by the means and deviations of its own train examples, before anything is trained.

For data whose clients name their own test examples, so that these are scaled by the numbers of the same client. The
numbers stay with the client: no model has them, and a phone must scale its examples by its own.
"""

import dataclasses
import hashlib

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.client_source import TRAIN, ClientSource
from datasets.errors import DatasetError
from datasets.example_format import Preprocessing

READING = "each client's features scaled by its own means and deviations"


def standardize_clients(data: ArrayDataset | ClientSource) -> ArrayDataset | ClientSource:
    """The same data with scaled features, float32; the preprocessing by scale and offset is done with that.

    A client without a train example keeps its numbers. Where a feature is constant, it becomes 0.

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
    digest = data.digest if is_source else data.source_digest
    digest = hashlib.sha256(f"standardize=client {digest}".encode()).hexdigest()
    changes = {
        "format": dataclasses.replace(data.format, input_dtype="float32", preprocessing=Preprocessing()),
        "reading": f"{data.reading}; {READING}" if data.reading else READING,
    }
    if is_source:

        def read(client: int, split: str) -> tuple[np.ndarray, np.ndarray]:
            x, y = data.read(client, split)
            train_x = x if split == TRAIN else data.read(client, TRAIN)[0]
            return (_scale(x, measure_features(train_x)) if len(train_x) else x.astype(np.float32)), y

        return dataclasses.replace(data, read=read, digest=digest, **changes)
    train, test = (np.empty(x.shape, np.float32) for x in (data.train_x, data.test_x))
    for client in range(len(data.client_names)):
        own, tests = data.train_clients == client, data.test_clients == client
        numbers = measure_features(data.train_x[own])
        train[own], test[tests] = _scale(data.train_x[own], numbers), _scale(data.test_x[tests], numbers)
    return dataclasses.replace(data, train_x=train, test_x=test, source_digest=digest, **changes)


def measure_features(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(means, deviations) of each feature or channel, float64, of the right shape to meet `x`; no deviation is 0.

    Args:
      x: shape (examples, features), (examples, features, 1), or with channels last.
    """
    is_flat = x.ndim == 2 or (x.ndim == 3 and x.shape[2] == 1)
    axes = 0 if is_flat else tuple(range(x.ndim - 1))
    means = x.mean(axes, np.float64)
    deviations = np.sqrt(np.mean(np.square(x.astype(np.float64) - means), axes))
    return means, np.where(deviations > np.abs(means) * 2.0**-50, deviations, 1.0)


def _scale(x: np.ndarray, numbers: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return ((x.astype(np.float64) - numbers[0]) / numbers[1]).astype(np.float32)
