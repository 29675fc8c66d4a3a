"""Devices that validate."""

import dataclasses
import shutil

import pytest


@pytest.fixture
def build(build_algorithm, make_federation):
    """A function (examples of each device, training, fields of the config) -> process.

    The devices validate on their train examples. At most three train in a round, nothing is cloned, and scores have no
    noise, if not said otherwise.
    """

    def build(sizes, training, **fields):
        data = make_federation(list(sizes))
        for client in data.clients:
            for array in ("x", "y"):
                shutil.copy(f"{client.path}.train.{array}", f"{client.path}.validation.{array}")
        clients = tuple(dataclasses.replace(client, num_validation=client.num_train) for client in data.clients)
        data = dataclasses.replace(data, clients=clients)
        fields = {"cohort_size": min(3, len(sizes)), "milestones": (), "score_noise": 0.0, **fields}
        return build_algorithm("fedcd", data, training, **fields)

    return build
