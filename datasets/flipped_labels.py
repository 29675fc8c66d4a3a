"""Clients whose train labels are flipped, for attacks: their files beside the others, in an entry of the cache."""

import dataclasses
import functools
import hashlib
import os
from collections.abc import Collection

import numpy as np

from datasets.client_files import write_open_entry, write_whole
from datasets.errors import DatasetError
from datasets.federated_data import SPLITS, ClientFiles, FederatedData


def flip_labels(data: FederatedData, clients: Collection[int]) -> FederatedData:
    """The federation in which these clients (indices) have the train labels classes - 1 - y.

    Their files are written when somebody asks for them. All else stays: the other splits, and `label_counts`.
    """
    flipped = {index: _flip(data.clients[index], data) for index in map(int, clients)}
    return dataclasses.replace(data, clients=tuple(flipped.get(client.index, client) for client in data.clients))


def _flip(client: ClientFiles, data: FederatedData) -> ClientFiles:
    folder, name = os.path.split(client.place)
    digest = hashlib.sha256(f"{os.path.basename(folder)} with flipped labels".encode()).hexdigest()
    entry = os.path.join(os.path.dirname(folder), digest)
    write = functools.partial(_write, client, entry, name, data.num_classes, data.labels.dtype)
    return dataclasses.replace(client, place=os.path.join(entry, name), write=write)


def _write(client: ClientFiles, entry: str, name: str, num_classes: int, label_dtype: str) -> None:
    last = os.path.join(entry, f"{name}.train.y")
    path = client.path
    try:
        if os.path.exists(last):
            return
        write_open_entry(entry)
        for suffix in [f".{split}.{kind}" for split in SPLITS for kind in "xy"]:
            if suffix != ".train.y":
                with open(path + suffix, "rb") as file:
                    write_whole(os.path.join(entry, name + suffix), file.read())
        labels = np.fromfile(f"{path}.train.y", label_dtype)
        write_whole(last, (num_classes - 1 - labels).astype(label_dtype).tobytes())
    except OSError as error:
        raise DatasetError(
            f"cannot write client files into {os.path.dirname(entry)}: {error.strerror or error}; choose another "
            "--client_dir"
        ) from None
