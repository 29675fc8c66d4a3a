"""Local training alone: each client's model is that of FedAvg with this client alone."""

import dataclasses

import numpy as np
import pytest

from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.local_only.config import LocalOnlyConfig
from tff_algos.local_only.process import build_local_only_process
from tff_algos.settings.local_training import LocalTrainingConfig

TRAINING = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.1)  # one batch: no order


@pytest.fixture
def data(tff_runtime, make_federation):
    return make_federation([9, 4, 14])


def run(process, rounds=3):
    state, rows = process.initialize(), []
    for _ in range(rounds):
        state, metrics = process.next(state)
        rows.append(metrics)
    return state, rows


def test_each_client_is_fed_avg_with_itself(data, linear_spec):
    process = build_local_only_process(linear_spec, data, LocalOnlyConfig(TRAINING), seed=2)
    state, _ = run(process)
    models, names = process.get_models(state), process.client_model(state)
    for index, client in enumerate(data.clients):
        alone = dataclasses.replace(data, clients=(client,))
        fed_avg = build_fed_avg_process(linear_spec, alone, FedAvgConfig(TRAINING), seed=2)
        expected = fed_avg.get_models(run(fed_avg)[0])["global"]
        for a, b in zip(models[names[index]], expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_nothing_is_sent(data, linear_spec):
    _, rows = run(build_local_only_process(linear_spec, data, LocalOnlyConfig(TRAINING), seed=2))
    assert all(row["bytes_up"] == row["bytes_down"] == 0 for row in rows)
    assert [row["virtual_time_s"] for row in rows] == pytest.approx([t * rows[0]["virtual_time_s"] for t in (1, 2, 3)])
    assert rows[-1]["train_loss"] < rows[0]["train_loss"]


def test_a_client_with_broken_data_keeps_its_model(data, linear_spec, break_client):
    break_client(data, 1)
    process = build_local_only_process(linear_spec, data, LocalOnlyConfig(TRAINING), seed=2)
    state, rows = run(process, 1)
    assert rows[0]["num_rejected"] == 1
    for a, b in zip(
        process.get_models(state)["client_1"], process.get_models(process.initialize())["client_1"], strict=True
    ):
        np.testing.assert_array_equal(a, b)
