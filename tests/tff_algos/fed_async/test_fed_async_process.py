"""FedAsync against the same sequence of mixing on the host."""

import dataclasses

import numpy as np
import pytest
from small_runs import assert_close, assert_same

from tff_algos.fed_async.config import FedAsyncConfig
from tff_algos.fed_async.process import build_fed_async_process, find_wave
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.arrivals import Arrival, collect_arrivals
from tff_algos.simulation.training_times import SimulatedDevices

RATE = 0.3
STEP = LocalTrainingConfig(steps=1, batch_size=100, optimizer="sgd", learning_rate=RATE)  # one batch of all examples
CONFIG = FedAsyncConfig(training=STEP, mixing_weight=0.5, staleness_decay=1.0, updates_per_round=5)
SIZES = (6, 9, 12)


@pytest.fixture
def build(tff_runtime, make_federation, linear_spec):
    """A function (config) -> process; `build.data` are the clients."""

    def make(config):
        make.data = make_federation(list(SIZES))
        return build_fed_async_process(linear_spec, make.data, config, seed=4)

    return make


def test_updates_are_mixed_in_one_by_one(build, linear_spec, descend):
    """alpha_t = 0.5 / (1 + staleness), each device from the version that it got last."""
    process = build(CONFIG)
    state = process.initialize()
    models = [process.get_models(state)["global"]]
    devices = SimulatedDevices(CONFIG.times, 4, build.data.profiles, np.ones(3), 0, 0)
    arrivals = collect_arrivals(devices, state.starts, 0, 10, 1).arrivals
    for arrival in arrivals:
        client = build.data.clients[arrival.client]
        trained = descend(linear_spec, models[arrival.start_version], *build.data.read_split(client, "train"), RATE)
        weight = 0.5 / (1 + arrival.staleness)
        models.append([(1 - weight) * old + weight * new for old, new in zip(models[-1], trained, strict=True)])
    for _ in range(2):
        state, metrics = process.next(state)
    assert_close(process.get_models(state)["global"], models[10], atol=1e-6)
    assert metrics["mean_staleness"] == np.mean([arrival.staleness for arrival in arrivals[5:]])
    assert metrics["num_clients"] == 5 and state.versions.newest == 10
    assert len(state.versions.numbers) <= 4  # one a device, and the newest


def test_the_number_of_updates_a_round_does_not_change_the_model(build):
    one, many = build(dataclasses.replace(CONFIG, updates_per_round=1)), build(CONFIG)
    state = one.initialize()
    for _ in range(5):
        state = one.next(state).state
    other = many.next(many.initialize()).state
    assert_close(one.get_models(state)["global"], many.get_models(other)["global"], atol=1e-6)


def test_an_update_that_is_not_finite_leaves_the_model(build, break_client):
    process = build(CONFIG)
    for client in range(3):
        break_client(build.data, client)
    state = process.initialize()
    after, metrics = process.next(state)
    assert metrics["num_rejected"] == 5
    assert_same(process.get_models(state)["global"], process.get_models(after)["global"])


def test_a_wave_ends_before_a_model_that_is_not_there_yet():
    arrivals = [Arrival(0, 3, 3, 1), Arrival(1, 2, 4, 1), Arrival(0, 4, 5, 2)]
    assert find_wave(arrivals, newest_version=3) == 2
    assert find_wave(arrivals[:2], newest_version=3) == 2
