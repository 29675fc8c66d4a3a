"""Some of a data set's own clients: those with enough examples, or a number of them drawn by the seed."""

import dataclasses
import hashlib

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.client_source import TRAIN, ClientSource
from datasets.errors import DatasetError
from datasets.partition_settings import PartitionSettings


def keep_some_clients(data: ArrayDataset | ClientSource, settings: PartitionSettings) -> ArrayDataset | ClientSource:
    """The data of clients with `fewest_examples` to train on, `most_clients` of them drawn; in their order.

    The global test set is that of the clients that are kept, where the data say whose its examples are.

    Raises:
      DatasetError: no client has as many examples.
    """
    if isinstance(data, ClientSource):
        counts = data.num_examples[TRAIN]
    elif data.train_clients is None:
        return data  # the partition says that there are no clients
    else:
        counts = np.bincount(data.train_clients, minlength=len(data.client_names))
    kept = np.flatnonzero(counts >= max(settings.fewest_examples, 1))
    if not len(kept):
        raise DatasetError(
            f"fewest_examples={settings.fewest_examples}: expected at most {counts.max()}, which the largest client has"
        )
    if 0 < settings.most_clients < len(kept):
        kept = np.sort(np.random.default_rng([settings.seed, 6]).permutation(kept)[: settings.most_clients])
    if len(kept) == np.count_nonzero(counts):
        return data
    names = tuple(data.client_names[client] for client in kept)
    digest = data.digest if isinstance(data, ClientSource) else data.source_digest
    digest = hashlib.sha256(f"{digest} {kept.tolist()}".encode()).hexdigest()
    if isinstance(data, ClientSource):
        return dataclasses.replace(
            data,
            client_names=names,
            num_examples={split: numbers[kept] for split, numbers in data.num_examples.items()},
            read=lambda client, split: data.read(int(kept[client]), split),
            weights=data.weights
            and data.weights._replace(read=lambda client, split: data.weights.read(int(kept[client]), split)),
            count_labels=data.count_labels and (lambda: data.count_labels()[kept]),
            digest=digest,
        )
    position = np.full(len(data.client_names), -1)
    position[kept] = np.arange(len(kept))
    train = position[data.train_clients]
    changes = {
        "train_x": data.train_x[train >= 0],
        "train_y": data.train_y[train >= 0],
        "train_clients": train[train >= 0],
    }
    if data.weights is not None:
        changes["weights"] = data.weights._replace(values=data.weights.values[train >= 0])
    if data.test_clients is not None:
        test = position[data.test_clients]
        changes |= {"test_x": data.test_x[test >= 0], "test_y": data.test_y[test >= 0]}
        changes["test_clients"] = test[test >= 0]
    return dataclasses.replace(data, client_names=names, source_digest=digest, **changes)
