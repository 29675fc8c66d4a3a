"""A federation whose clients keep their examples on machines of their own: what a run knows of them are numbers."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from datasets.data_notes import STANDARDIZE
from datasets.device_table import MEDIAN_DOWNLINK_BYTES_PER_S, MEDIAN_EXAMPLES_PER_S, MEDIAN_UPLINK_BYTES_PER_S
from datasets.example_format import ExampleFormat
from datasets.federated_data import ClientFiles, DeviceProfiles, FederatedData
from launch.live.description import digest, find_scaling, make_format

Seats = Sequence[tuple[str, int, int]]  # name, train and test examples of each client, in order


def build_own_federation(
    organiser: FederatedData | Mapping[str, Any], seats: Seats, description: Mapping[str, Any] | None = None
) -> FederatedData:
    """The federation of these clients, with the means and deviations of the description, which a model scales by.

    Args:
      organiser: a data set like the clients', whose test set is the global one; or a description, and there is none.
      seats: the clients. Of equal names the later ones get a number.
      description: of the examples; None: `organiser` if that is one, else features are not scaled.
    """
    if isinstance(organiser, FederatedData):
        test = organiser.test_x, organiser.test_y
        data = make_own_federation(organiser.dataset, organiser.format, seats, organiser.digest, test)
        words = {"reading": organiser.reading, "notes": organiser.notes, "source_digests": organiser.source_digests}
        data = dataclasses.replace(data, **words)
    else:
        description = organiser if description is None else description
        data = make_own_federation(organiser["name"], make_format(organiser), seats, digest(organiser))
    scaling = find_scaling(description) if description else None
    if scaling is None:
        return data
    return dataclasses.replace(
        data,
        feature_means=scaling.means,
        feature_deviations=scaling.deviations,
        reading=f"{data.reading}; the model scales numbers by the means and deviations of the "
        f"{'schema' if description is organiser else 'data set on this machine'}",
        notes=tuple(note for note in data.notes if STANDARDIZE not in note),
    )


def make_own_federation(
    dataset: str,
    example_format: ExampleFormat,
    seats: Seats,
    digest: str,
    test: tuple[np.ndarray, np.ndarray] | None = None,
) -> FederatedData:
    """The same of a data set's name, format and digest, and of a test set, (x, y) as stored, if there is one."""
    x = np.zeros((0, *example_format.input_shape), example_format.input_dtype)
    y = np.zeros((0, *example_format.labels.shape), example_format.labels.dtype)
    test_x, test_y = (x, y) if test is None else test
    number = len(seats)
    names = _name_apart([name for name, _, _ in seats])
    clients = tuple(
        # Nobody finds anything at such a place, whoever asks for it.
        ClientFiles(index, name, f"seat_{index}", num_train, 0, num_test)
        for index, (name, (_, num_train, num_test)) in enumerate(zip(names, seats, strict=True))
    )
    return FederatedData(
        dataset=dataset,
        format=example_format,
        clients=clients,
        label_counts=np.zeros((number, 0), np.int64),
        test_x=test_x,
        test_y=test_y,
        # What they can do shows when they do it.
        profiles=DeviceProfiles(
            examples_per_s=np.full(number, MEDIAN_EXAMPLES_PER_S),
            downlink_bytes_per_s=np.full(number, MEDIAN_DOWNLINK_BYTES_PER_S),
            uplink_bytes_per_s=np.full(number, MEDIAN_UPLINK_BYTES_PER_S),
            availability=np.ones(number),
        ),
        digest=digest,
        reading="as clients read their own files" if test is None else "",
        reader=lambda client, split: (x, y),
        is_remote=True,
    )


def _name_apart(names: Sequence[str]) -> list[str]:
    """The names, of equal ones the later with a number behind: tables have a row a name."""
    taken: dict[str, None] = {}
    for place, name in enumerate(names):
        found, count = name or f"client_{place}", 1
        while found in taken:
            count += 1
            found = f"{name or f'client_{place}'} ({count})"
        taken[found] = None
    return list(taken)


def average_measured(sums: Iterable[tuple[int, int, float]]) -> tuple[float, float]:
    """The share of correct examples and the mean loss over all clients' test parts; NaN without any example.

    Args:
      sums: of each client: how many examples it has, how many are correct, and the sum of their losses in nats.
    """
    numbers, correct, losses = zip(*sums, strict=True) if (sums := list(sums)) else ((), (), ())
    total = sum(numbers)
    return (sum(correct) / total, math.fsum(losses) / total) if total else (math.nan, math.nan)
