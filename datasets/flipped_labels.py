"""Clients whose train labels are flipped, for attacks: their files beside the others, in an entry of the cache."""

import dataclasses
import functools
import hashlib
import os
from collections.abc import Collection

import numpy as np

from datasets.client_file_copies import read_files
from datasets.client_files import explain_write_errors, is_client_whole, write_client
from datasets.federated_data import ClientFiles, FederatedData

_LABELS = ".train.y"


def flip_labels(data: FederatedData, clients: Collection[int]) -> FederatedData:
    """The federation in which these clients (indices) have the train labels classes - 1 - y.

    Their files are written when somebody asks for them. All else stays: the other splits, and `label_counts`.
    """
    flipped = {}
    for index in map(int, clients):
        client = data.clients[index]
        folder, name = os.path.split(client.place)
        digest = hashlib.sha256(f"{os.path.basename(folder)} with flipped labels".encode()).hexdigest()
        entry = os.path.join(os.path.dirname(folder), digest)
        write = functools.partial(_write, client, entry, name, data.format.num_classes, data.format.labels.dtype)
        flipped[index] = dataclasses.replace(client, place=os.path.join(entry, name), write=write)
    return dataclasses.replace(data, clients=tuple(flipped.get(client.index, client) for client in data.clients))


def _write(client: ClientFiles, entry: str, name: str, num_classes: int, label_dtype: str) -> None:
    path, place = client.path, os.path.join(entry, name)
    if is_client_whole(place):
        return
    with explain_write_errors(os.path.dirname(entry)):
        contents = read_files(path)
        labels = np.frombuffer(contents[_LABELS], label_dtype)
        write_client(place, {**contents, _LABELS: (num_classes - 1 - labels).astype(label_dtype).tobytes()})
