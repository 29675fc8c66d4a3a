"""Past global models that devices still train from, by version number. NumPy only."""

from typing import NamedTuple

import numpy as np

from tff_algos.protocol import Weights


class ModelVersions(NamedTuple):
    """Some versions of one model: their numbers, int64, ascending, shape (versions,), and the models, stacked alike."""

    numbers: np.ndarray
    models: Weights

    @property
    def newest(self) -> int:
        """The largest number."""
        return int(self.numbers[-1])

    def get(self, number: int) -> Weights:
        """The model of a version that is kept."""
        row = int(np.searchsorted(self.numbers, number))
        return tuple(stacked[row] for stacked in self.models)


def create_versions(model: Weights) -> ModelVersions:
    """The first model, as version 0."""
    return ModelVersions(np.zeros(1, np.int64), tuple(array[np.newaxis] for array in model))


def add_versions(versions: ModelVersions, models: list[Weights], used: np.ndarray) -> ModelVersions:
    """The versions with newer models added, numbered on from the newest, and without those that no device uses.

    The newest always stays.

    Args:
      versions: the versions so far.
      models: the newer ones, oldest first.
      used: the version that each device uses, of the old ones or the new ones, in any order.
    """
    numbers = np.concatenate([versions.numbers, versions.newest + 1 + np.arange(len(models))])
    # A version is kept only while a device trains from it, so the memory does not grow with the rounds.
    kept = np.isin(numbers, used)
    kept[-1] = True
    stacked = tuple(
        np.concatenate([old, *(model[i][np.newaxis] for model in models)])[kept]
        for i, old in enumerate(versions.models)
    )
    return ModelVersions(numbers[kept], stacked)
