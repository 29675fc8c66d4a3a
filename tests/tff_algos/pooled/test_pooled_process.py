"""Pooled data: a round by hand, and what of other algorithms it is."""

import dataclasses

import numpy as np
import pytest
from small_runs import assert_close, assert_same, run

from tff_algos.settings.local_training import LocalTrainingConfig

# (x, y, number of such examples) of each client: 2, 4 and 6 examples.
CLIENTS = [(1, 1, 2), (1, 0, 4), (2, 1, 6)]
ONE_BATCH = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.5)
SMALL_BATCHES = LocalTrainingConfig(epochs=2, batch_size=4, optimizer="sgd", learning_rate=0.1)


def test_a_round_by_hand(build_algorithm, scalar_spec, make_scalar_federation):
    """One step from w = 0 down the mean loss of all 12 examples, whose gradients are (1/2 - y) x.

    An example has 4 bytes and its label 4: the clients send 16, 32 and 48, at 500, 1000 and 1500 bytes a second. The
    fastest device trains 300 examples a second.
    """
    data = make_scalar_federation(CLIENTS)
    process = build_algorithm("pooled", data, ONE_BATCH, scalar_spec)
    state, rows = run(process, 2)
    first, _ = run(process, 1)
    mean = (2 * -0.5 * 1 + 4 * 0.5 * 1 + 6 * -0.5 * 2) / 12
    assert process.get_models(first)["global"][0].item() == pytest.approx(-0.5 * mean)
    assert [(row["bytes_down"], row["bytes_up"]) for row in rows] == [(0, 96), (0, 0)]
    assert [row["virtual_time_s"] for row in rows] == pytest.approx([0.032 + 0.04, 0.032 + 0.04 + 0.04])
    assert [(row["num_clients"], row["num_rejected"]) for row in rows] == [(3, 0)] * 2
    [work] = process.list_work(process.initialize(), first)
    assert work.clients.tolist() == [0, 1, 2] and process.list_work(first, state) == []
    assert process.client_model(state) == ["global"] * 3 and not process.is_personal


def test_it_is_fedavg_of_a_client_that_has_all_examples(build_algorithm, make_federation, tmp_path):
    """Whose draw of orders it has, batch by batch."""
    data = make_federation([9, 4, 14])
    parts = [data.read_split(client, "train") for client in data.clients]
    for name, arrays in zip("xy", zip(*parts, strict=True), strict=True):
        np.concatenate(arrays).tofile(tmp_path / f"all.train.{name}")
    everything = dataclasses.replace(data.clients[0], prefix=str(tmp_path / "all"), num_train=27)
    fed_avg = build_algorithm("fedavg", dataclasses.replace(data, clients=(everything,)), SMALL_BATCHES)
    pooled = build_algorithm("pooled", data, SMALL_BATCHES)
    expected, found = (process.get_models(run(process, 3)[0])["global"] for process in (fed_avg, pooled))
    assert_close(found, expected, atol=1e-6)
    assert np.abs(found[0] - pooled.initial_weights[0]).max() > 0.1


def test_of_one_client_it_is_local_training(build_algorithm, make_federation):
    data = make_federation([9])
    pooled, alone = (build_algorithm(name, data, SMALL_BATCHES) for name in ("pooled", "local_only"))
    assert_same(run(pooled, 3)[0].models, run(alone, 3)[0].models)


def test_what_is_not_finite_leaves_the_model_as_it_is(build_algorithm, make_federation, break_client):
    data = make_federation([9, 4, 14])
    break_client(data, 1)
    process = build_algorithm("pooled", data, SMALL_BATCHES)
    state, [row] = run(process, 1)
    assert (row["num_clients"], row["num_rejected"]) == (3, 3)
    assert_same(state.models, process.initialize().models)


def test_new_clients_have_the_model_and_send_nothing(build_algorithm, make_federation):
    data = make_federation([9, 4, 14])
    fewer = dataclasses.replace(data, clients=data.clients[:2], new_clients=data.clients[2:])
    process = build_algorithm("pooled", fewer, SMALL_BATCHES)
    state, [row] = run(process, 1)
    assert row["bytes_up"] == 13 * (4 * 4 + 4) and process.takes_new_clients
    [(client, weights)] = process.personalize(state, fewer.new_clients)
    assert client.index == 2
    assert_same(weights, process.get_models(state)["global"])
