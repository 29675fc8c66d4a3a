"""FedBuff against the same aggregation on the host."""

import dataclasses

import numpy as np
import pytest
from small_runs import assert_close, assert_same

from tff_algos.buffered.config import BufferedConfig
from tff_algos.buffered.process import build_buffered_process
from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.arrivals import collect_arrivals
from tff_algos.simulation.training_times import SimulatedDevices

RATE = 0.3
STEP = LocalTrainingConfig(steps=1, batch_size=100, optimizer="sgd", learning_rate=RATE)  # one batch of all examples
CONFIG = BufferedConfig(training=STEP, buffer_size=2, server=ServerStepConfig(learning_rate=0.5))


@pytest.fixture
def build(tff_runtime, make_federation, linear_spec):
    """A function (config, sizes) -> process; `build.data` are the clients."""

    def make(config, sizes=(6, 9, 12)):
        make.data = make_federation(list(sizes))
        return build_buffered_process(linear_spec, make.data, config, seed=4)

    return make


def test_a_buffer_is_averaged_with_weights_by_staleness(build, linear_spec, descend):
    """theta + 0.5 / 2 * sum_i delta_i / sqrt(1 + staleness_i)."""
    process = build(CONFIG)
    state = process.initialize()
    models = [process.get_models(state)["global"]]
    devices = SimulatedDevices(CONFIG.times, 4, build.data.profiles, np.ones(3), 0, 0)
    starts = state.starts
    for version in range(4):
        collected = collect_arrivals(devices, starts, version, 2, 2)
        starts, step = collected.starts, [np.zeros_like(array) for array in models[0]]
        for arrival in collected.arrivals:
            start = models[arrival.start_version]
            client = build.data.clients[arrival.client]
            trained = descend(linear_spec, start, *build.data.read_split(client, "train"), RATE)
            for i, (new, old) in enumerate(zip(trained, start, strict=True)):
                step[i] += (new - old) / np.sqrt(1 + arrival.staleness)
        models.append([old + 0.25 * change for old, change in zip(models[-1], step, strict=True)])
        state, metrics = process.next(state)
        assert_close(process.get_models(state)["global"], models[-1], atol=1e-6)
        assert metrics["mean_staleness"] == np.mean([arrival.staleness for arrival in collected.arrivals])
    assert metrics["bytes_up"] == 2 * 4 * 15


def test_an_optimizer_of_the_server_that_does_not_adapt_is_plain(build):
    """Adam with rate 5e7, tau = 1e8 and no memory: theta + 0.5 times the mean update."""
    adam = ServerStepConfig("adam", learning_rate=5e7, beta_1=0.0, beta_2=0.0, epsilon=1e8)
    models = []
    for server in (CONFIG.server, adam):
        process = build(dataclasses.replace(CONFIG, server=server))
        state = process.initialize()
        for _ in range(3):
            state = process.next(state).state
        models.append(process.get_models(state)["global"])
    assert_close(*models, atol=1e-6)
    assert int(state.server[0].size) and len(state.server) > 4


def test_updates_that_are_not_finite_are_left_out(build, break_client):
    process = build(dataclasses.replace(CONFIG, buffer_size=3), sizes=(6, 9))
    break_client(build.data, 0)
    state, metrics = process.next(process.initialize())
    assert 0 < metrics["num_rejected"] < 3
    assert all(np.isfinite(array).all() for array in process.get_models(state)["global"])
    break_client(build.data, 1)
    after, metrics = process.next(state)
    assert metrics["num_rejected"] == 3
    assert_same(process.get_models(state)["global"], process.get_models(after)["global"])


def test_one_device_at_a_time_is_never_stale(build):
    """Each update starts from what the buffer before it made or, within a buffer, from the same version."""
    process = build(dataclasses.replace(CONFIG, concurrency=1))
    state = process.initialize()
    assert state.starts.num_starts.sum() == 1
    for round_num in range(1, 4):
        before, (state, metrics) = state, process.next(state)
        expected = ["start"] * (round_num == 1) + ["ready", "received", "start"] * 2
        assert [row.what for row in process.get_events(state)] == expected
        assert metrics["max_staleness"] == 0 and metrics["bytes_down"] == metrics["bytes_up"]
        starts, ready, _, received = process.list_work(before, state)
        assert len(starts.clients) == len(ready.clients) == len(received.clients) == 2
