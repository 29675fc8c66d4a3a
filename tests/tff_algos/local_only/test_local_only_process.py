"""Local training alone: each client's model is that of FedAvg with this client alone."""

import dataclasses

import pytest
from small_runs import assert_close, assert_same, run

from tff_algos.settings.local_training import LocalTrainingConfig

TRAINING = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.1)  # one batch: no order


@pytest.fixture(scope="module")
def data(build_federation, tmp_path_factory):
    return build_federation(tmp_path_factory.mktemp("local_only"), [9, 4, 14])


@pytest.fixture(scope="module")
def process(build_algorithm, data):
    return build_algorithm("local_only", data, TRAINING)


def test_each_client_is_fed_avg_with_itself(build_algorithm, process, data):
    state, _ = run(process, 3)
    models, names = process.get_models(state), process.client_model(state)
    for index, client in enumerate(data.clients):
        fed_avg = build_algorithm("fedavg", dataclasses.replace(data, clients=(client,)), TRAINING)
        expected = fed_avg.get_models(run(fed_avg, 3)[0])["global"]
        assert_close(models[names[index]], expected, atol=1e-6)


def test_nothing_is_sent(process):
    _, rows = run(process, 3)
    assert all(row["bytes_up"] == row["bytes_down"] == 0 for row in rows)
    assert [row["virtual_time_s"] for row in rows] == pytest.approx([t * rows[0]["virtual_time_s"] for t in (1, 2, 3)])
    assert rows[-1]["train_loss"] < rows[0]["train_loss"]


def test_a_client_with_broken_data_keeps_its_model(process, make_federation, break_client):
    data = make_federation([9, 4, 14])
    break_client(data, 1)
    process = dataclasses.replace(process, clients=data)
    state, rows = run(process, 1)
    assert rows[0]["num_rejected"] == 1
    assert_same(process.get_models(state)["client_1"], process.get_models(process.initialize())["client_1"])
