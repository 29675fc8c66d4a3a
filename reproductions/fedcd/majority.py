"""What always saying a device's most frequent class gets, which a model must beat to be of use. Imports no TensorFlow.

The settings of a run and its seed say how many images of each label a device has in each split, whichever these are. So
no data are read, and runs that were made before anybody asked have it as well.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from datasets.archetypes import count_labels, describe_archetypes
from datasets.partition_settings import ArchetypeSettings

LABELS = tuple(map(str, range(10)))  # of CIFAR-10


def compute_majority(flags: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The accuracy on each device's own test split of the most frequent label of its train split.

    Args:
      flags: of a run; those that earlier versions did not have are as they were then.

    Returns:
      In per cent, float64, shape (devices,), of equally frequent labels the lowest; and the devices' archetypes.
    """
    names = [field.name for field in dataclasses.fields(ArchetypeSettings)]
    settings = ArchetypeSettings(**{name: flags[name] for name in names if name in flags})
    archetypes = describe_archetypes(flags["partition"], LABELS, settings)
    counts = count_labels(flags["partition"], archetypes, len(LABELS), settings, flags["seed"])
    usual = counts["train"].argmax(axis=1)
    right = counts["test"][np.arange(len(usual)), usual]
    return 100 * right / counts["test"].sum(axis=1), np.array(archetypes.of_clients)


def measure_majority(flags: Mapping[str, Any]) -> dict[str, float]:
    """Its mean over the devices, and over those of each archetype."""
    accuracy, archetypes = compute_majority(flags)
    of_each = {f"majority_{i}": accuracy[archetypes == i].mean() for i in range(archetypes.max() + 1)}
    return {"majority": float(accuracy.mean()), **{name: float(value) for name, value in of_each.items()}}
