"""The train examples of all clients as those of one, in files of its own beside theirs."""

import dataclasses
import functools
import hashlib
import json
import os

import numpy as np

from datasets.client_files import (
    SUFFIXES,
    WEIGHTS_SUFFIX,
    explain_write_errors,
    get_client_prefix,
    is_client_whole,
    write_client_in_parts,
)
from datasets.federated_data import ClientFiles, FederatedData

NAME = "pool"


def pool_clients(data: FederatedData) -> FederatedData:
    """The federation with one client in place of all, which has their train examples, one client after the other.

    Its files are written when they are asked for, and found again by later runs. New clients are none of it.
    """
    places = [os.path.split(client.prefix) for client in data.clients]
    # An entry's name tells its content, so that the names tell the pool's.
    names = [[os.path.basename(folder), name] for folder, name in places]
    digest = hashlib.sha256(json.dumps([NAME, names]).encode()).hexdigest()
    prefix = os.path.join(os.path.dirname(places[0][0]), digest, get_client_prefix(0))
    pool = ClientFiles(0, NAME, prefix, int(data.num_train.sum()), 0, 0, functools.partial(_write, data, prefix))
    counts = data.label_counts.sum(axis=0, keepdims=True)
    return dataclasses.replace(data, clients=(pool,), new_clients=(), label_counts=counts, archetypes=None, reader=None)


def _write(data: FederatedData, prefix: str) -> None:
    if is_client_whole(prefix):
        return
    has_weights = data.format.weights is not None
    suffixes = (*SUFFIXES, WEIGHTS_SUFFIX) if has_weights else SUFFIXES
    with (
        explain_write_errors(os.path.dirname(os.path.dirname(prefix))),
        write_client_in_parts(prefix, suffixes) as files,
    ):
        # One client in memory at a time: together they may be too large for it.
        for client in data.clients:
            x, y = data.read_split(client, "train")
            files[".train.x"].write(np.ascontiguousarray(x).data)
            files[".train.y"].write(np.ascontiguousarray(y).data)
            if has_weights:
                files[WEIGHTS_SUFFIX].write(np.fromfile(client.path + WEIGHTS_SUFFIX, np.float32).data)
