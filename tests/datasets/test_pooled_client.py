"""All clients' train examples in files of one: what is in them, and when they are written."""

import dataclasses
import os
import pathlib

import numpy as np
import pytest

from datasets import client_files
from datasets.example_format import ExampleFormat, ExampleWeights
from datasets.federated_data import ClientFiles, DeviceProfiles, FederatedData
from datasets.pooled_client import pool_clients
from files import cache

FORMAT = ExampleFormat((2,), "float32", ("a", "b", "c"))
SIZES = (2, 3, 1)


@pytest.fixture
def data(tmp_path):
    """Three clients in an entry of the cache, with the weights 0, 1, 2, ... of their examples in files, too."""
    folder, clients, done = tmp_path / ("ab" * 32), [], 0
    folder.mkdir()
    for index, size in enumerate(SIZES):
        rows = np.arange(done, done + size)
        np.float32([rows, -rows]).T.copy().tofile(folder / f"client_{index}.train.x")
        (rows % 3).astype(np.int32).tofile(folder / f"client_{index}.train.y")
        rows.astype(np.float32).tofile(folder / f"client_{index}.train.w")
        clients.append(ClientFiles(index, f"name {index}", str(folder / f"client_{index}"), size, 0, 0))
        done += size
    profiles = DeviceProfiles(*[np.ones(3)] * 4)
    return FederatedData("small", FORMAT, tuple(clients), np.eye(3, dtype=int), np.zeros((0, 2)), np.zeros(0), profiles)


def read(pool, suffix, dtype):
    return np.fromfile(pool.path + suffix, dtype).tolist()


def test_the_pool_has_the_examples_one_client_after_the_other(data):
    pooled = pool_clients(data)
    [pool] = pooled.clients
    assert (pool.index, pool.num_train, pool.num_validation, pool.num_test) == (0, 6, 0, 0)
    # Nothing is written before somebody asks.
    assert not os.path.exists(os.path.dirname(pool.prefix))
    x, y = pooled.read_split(pool, "train")
    assert x.tolist() == [[row, -row] for row in range(6)] and y.tolist() == [0, 1, 2, 0, 1, 2]
    assert not pathlib.Path(f"{pool.path}.train.w").exists()
    assert pooled.label_counts.tolist() == [[1, 1, 1]]
    assert [os.path.getsize(f"{pool.path}.{split}.{kind}") for split in ("validation", "test") for kind in "xy"] == [
        0
    ] * 4
    assert client_files.is_client_path(pool.path)  # so that other machines take it as any client's


def test_weights_are_pooled_as_well(data):
    weighed = dataclasses.replace(FORMAT, weights=ExampleWeights("w", 2.5, 0.0, 5.0, 0, 6))
    [pool] = pool_clients(dataclasses.replace(data, format=weighed)).clients
    assert read(pool, ".train.w", np.float32) == [0, 1, 2, 3, 4, 5]


def test_clients_that_are_read_one_by_one(data):
    def give(client, split):
        assert split == "train"
        return np.full((client.num_train, 2), client.index, np.float32), np.full(client.num_train, 1, np.int32)

    clients = tuple(dataclasses.replace(client, write=pytest.fail) for client in data.clients)
    [pool] = pool_clients(dataclasses.replace(data, clients=clients, reader=give)).clients
    assert read(pool, ".train.x", np.float32) == [0] * 4 + [1] * 6 + [2] * 2


def test_it_is_written_once_and_again_when_it_is_damaged(data, monkeypatch):
    [pool] = pool_clients(data).clients
    content = pathlib.Path(f"{pool.path}.train.x").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(FederatedData, "read_split", pytest.fail)
        [again] = pool_clients(data).clients
        assert again.path == pool.path
    pathlib.Path(f"{pool.prefix}.train.x").write_bytes(content[:-4] + b"\0\0\0\1")
    client_files._checked.clear()
    cache._checked.clear()
    assert pathlib.Path(f"{pool.path}.train.x").read_bytes() == content


def test_other_clients_have_another_pool(data):
    fewer = dataclasses.replace(data, clients=data.clients[:2], new_clients=data.clients[2:])
    [pool], [whole] = pool_clients(fewer).clients, pool_clients(data).clients
    assert pool.prefix != whole.prefix and pool.num_train == 5
    assert read(pool, ".train.y", np.int32) == [0, 1, 2, 0, 1]


def test_the_cache_can_be_cleaned_of_it(data, tmp_path):
    [pool] = pool_clients(data).clients
    assert os.path.exists(pool.path + ".train.x")
    assert client_files.clean_client_dir(str(tmp_path)) > 0 and not os.path.exists(os.path.dirname(pool.prefix))
