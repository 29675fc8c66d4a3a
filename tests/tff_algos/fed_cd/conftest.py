"""Devices that validate."""

import dataclasses

import pytest


@pytest.fixture
def make_validated(make_federation):
    """A function (sizes) -> federation whose clients validate on their train examples."""

    def make(sizes):
        data = make_federation(sizes)
        for client in data.clients:
            for array in ("x", "y"):
                with open(f"{client.path}.train.{array}", "rb") as source:
                    content = source.read()
                with open(f"{client.path}.validation.{array}", "wb") as target:
                    target.write(content)
        clients = tuple(dataclasses.replace(client, num_validation=client.num_train) for client in data.clients)
        return dataclasses.replace(data, clients=clients)

    return make
