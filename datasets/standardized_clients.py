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
from datasets.example_format import ExampleFormat, Preprocessing

READING = "each client's features scaled by its own means and deviations"


def standardize_clients(data: ArrayDataset | ClientSource) -> ArrayDataset | ClientSource:
    """The same data with scaled features, float32; the preprocessing by scale and offset is done with that.

    A client without a train example keeps its numbers. Where a feature is constant, it becomes 0.

    Raises:
      DatasetError: examples are tokens, the data name no clients, or not whose the test examples are.
    """
    if isinstance(data, ClientSource):
        _check(data, data.has_clients, data.has_tests)
        return _standardize_source(data)
    _check(data, data.train_clients is not None, data.test_clients is not None)
    return _standardize_arrays(data)


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


def _check(data: ArrayDataset | ClientSource, has_clients: bool, has_tests: bool) -> None:
    if data.format.takes_tokens:
        raise DatasetError(f"standardize=client: {data.name} has tokens, which a model looks up; leave it out")
    if not has_clients:
        raise DatasetError(f"standardize=client: {data.name} names no clients; give --standardize=federated")
    if not has_tests:
        raise DatasetError(
            f"standardize=client: {data.name} does not say which test examples are whose; give --standardize=federated"
        )


def _scale(x: np.ndarray, numbers: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return ((x.astype(np.float64) - numbers[0]) / numbers[1]).astype(np.float32)


def _standardize_arrays(data: ArrayDataset) -> ArrayDataset:
    train, test = (np.empty(x.shape, np.float32) for x in (data.train_x, data.test_x))
    for client in range(len(data.client_names)):
        own, tests = data.train_clients == client, data.test_clients == client
        numbers = measure_features(data.train_x[own])
        train[own], test[tests] = _scale(data.train_x[own], numbers), _scale(data.test_x[tests], numbers)
    return dataclasses.replace(
        data,
        train_x=train,
        test_x=test,
        format=_scale_format(data.format),
        source_digest=_identify(data.source_digest),
        reading=_describe(data.reading),
    )


def _scale_format(example_format: ExampleFormat) -> ExampleFormat:
    return dataclasses.replace(example_format, input_dtype="float32", preprocessing=Preprocessing())


def _identify(digest: str) -> str:
    return hashlib.sha256(f"standardize=client {digest}".encode()).hexdigest()


def _describe(reading: str) -> str:
    return f"{reading}; {READING}" if reading else READING


def _standardize_source(source: ClientSource) -> ClientSource:
    def read(client: int, split: str) -> tuple[np.ndarray, np.ndarray]:
        x, y = source.read(client, split)
        train_x = x if split == TRAIN else source.read(client, TRAIN)[0]
        return (_scale(x, measure_features(train_x)) if len(train_x) else x.astype(np.float32)), y

    return dataclasses.replace(
        source,
        format=_scale_format(source.format),
        read=read,
        digest=_identify(source.digest),
        reading=_describe(source.reading),
    )
