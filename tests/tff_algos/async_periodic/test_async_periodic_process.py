"""Asynchronous FL as a process: a schedule by hand with mixed model versions, limits, edges."""

import numpy as np
import pytest
from small_runs import assert_close, assert_same, run

from tff_algos.async_periodic.process import mix_models
from tff_algos.settings.asynchronous import TrainingTimesConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.training_times import SimulatedDevices, StartPlan

RATE = 0.3
STEP = LocalTrainingConfig(steps=1, batch_size=100, optimizer="sgd", learning_rate=RATE)  # one batch of all examples
MODEL_BYTES = 4 * 15


@pytest.fixture
def build(build_algorithm, make_federation):
    """A function (sizes, fields of the config) -> process."""

    def build(sizes=(6, 9, 12), **fields):
        fields = {"period_fraction": 1.0, "max_scheduled": 10, **fields}
        return build_algorithm("async_periodic", make_federation(list(sizes)), STEP, **fields)

    return build


@pytest.fixture
def fix_times():
    """A function (seconds of each device) that fixes how long every start takes; traces stay shared."""
    with pytest.MonkeyPatch.context() as patch:

        def fix(seconds):
            durations = np.array(seconds)
            plan = lambda devices, clients, num_starts, time_s: StartPlan(durations[clients], np.zeros(len(clients)))
            patch.setattr(SimulatedDevices, "plan_starts", plan)

        yield fix


def get_model(process, state):
    return process.get_models(state)["global"]


def test_a_schedule_by_hand(build, fix_times, linear_spec, descend):
    """T = 1 s; devices 0, 1, 2 train for 0.5, 1.5 and 2.5 s, so that they are ready as the table says.

    Ready in aggregation 1: 0; 2: 0, 1; 3: 0, 2; 4: 0, 1. Device 1 starts at 0 and 2 s, device 2 at 0 and 3 s. Ages
    are 0 for device 0, and 1 and 2 for devices 1 and 2, which were busy for one and two aggregations.
    """
    fix_times([0.5, 1.5, 2.5])
    process = build(weighting="age_aware", gamma=0.5)
    table = {1: {0: 1}, 2: {0: 2, 1: 1}, 3: {0: 3, 2: 1}, 4: {0: 4, 1: 3}}  # aggregation: {device: s_k}
    models = {1: get_model(process, process.initialize())}
    state = process.initialize()
    for index, starts in table.items():
        state, metrics = process.next(state)
        weights = {k: process.clients.num_train[k] * 0.5 ** (index - start) for k, start in starts.items()}
        trained = {
            k: descend(
                linear_spec, models[start], *process.clients.read_split(process.clients.clients[k], "train"), RATE
            )
            for k, start in starts.items()
        }
        total = sum(weights.values())
        models[index + 1] = [sum(weights[k] / total * trained[k][i] for k in starts) for i in range(len(models[1]))]
        assert_close(get_model(process, state), models[index + 1])
        events = [(event.what, event.client, event.model_version) for event in process.get_events(state)]
        happened = [(what, k, start) for what in ("ready", "scheduled", "received") for k, start in starts.items()]
        assert sorted(event for event in events if event[0] != "start") == sorted(happened)
        assert [event[1:] for event in events if event[0] == "start"][-len(starts) :] == [
            (k, index + 1) for k in starts
        ]
        ages = [index - start for start in starts.values()]
        assert (metrics["num_ready"], metrics["num_scheduled"]) == (len(starts), len(starts))
        assert (metrics["mean_age"], metrics["max_age"]) == (np.mean(ages), max(ages))
        assert metrics["bytes_up"] == metrics["bytes_down"] == len(starts) * MODEL_BYTES
        assert metrics["virtual_time_s"] == index
    assert state.start_indices.tolist() == [5, 5, 4]
    assert len(state.models[0]) == 2  # versions 4 and 5: as long as the oldest in use
    assert state.num_starts.tolist() == [5, 3, 2]


def test_waiting_for_all_gives_the_models_of_a_period_that_is_long_enough(build):
    periodic, synchronous = build(max_scheduled=2), build(max_scheduled=2, waiting="synchronous")
    state, other = run(periodic, 3)[0], run(synchronous, 3)[0]
    assert_same(get_model(periodic, state), get_model(synchronous, other))
    assert state.counts.sum() == 6 and float(state.clock.time_s) == 3
    assert float(other.clock.time_s) < 3  # only until the slowest is ready


def test_enough_places_make_all_policies_alike(build):
    models = []
    for scheduling in ("random", "significance", "frequency"):
        process = build(period_fraction=0.3, scheduling=scheduling)
        models.append(get_model(process, run(process, 4)[0]))
    for other in models[1:]:
        assert_same(models[0], other)


def test_significance_schedules_the_largest_update(build, linear_spec, descend):
    process = build(scheduling="significance", max_scheduled=1)
    start = get_model(process, process.initialize())
    norms = []
    for client in process.clients.clients:
        trained = descend(linear_spec, start, *process.clients.read_split(client, "train"), RATE)
        norms.append(sum(np.sum((a - b) ** 2) for a, b in zip(trained, start, strict=True)))
    state, [metrics] = run(process, 1)
    assert state.counts.tolist() == [int(k == np.argmax(norms)) for k in range(3)]
    assert metrics["bytes_up"] == MODEL_BYTES + 3 * 4


def test_devices_that_are_not_scheduled_can_count_with_their_start_model(build, fix_times, linear_spec, descend):
    """Only device 0 is ready; of 27 examples, 21 vote for the start model."""
    fix_times([0.5, 1.5, 2.5])
    process = build(averaged_devices="all")
    start = get_model(process, process.initialize())
    trained = descend(linear_spec, start, *process.clients.read_split(process.clients.clients[0], "train"), RATE)
    expected = [(6 * a + 21 * b) / 27 for a, b in zip(trained, start, strict=True)]
    assert_close(get_model(process, run(process, 1)[0]), expected)


def test_an_update_that_is_not_finite_is_left_out(build, break_client, linear_spec, descend):
    process = build()
    break_client(process.clients, 1)
    start = get_model(process, process.initialize())
    state, [metrics] = run(process, 1)
    trained = {
        k: descend(linear_spec, start, *process.clients.read_split(process.clients.clients[k], "train"), RATE)
        for k in (0, 2)
    }
    expected = [(6 * a + 12 * b) / 18 for a, b in zip(trained[0], trained[2], strict=True)]
    assert_close(get_model(process, state), expected)
    assert metrics["num_rejected"] == 1


def test_if_all_updates_are_rejected_the_model_stays(build, break_client):
    process = build((6,))
    break_client(process.clients, 0)
    state, [metrics] = run(process, 1)
    assert_same(get_model(process, state), get_model(process, process.initialize()))
    assert (metrics["num_rejected"], metrics["update_norm"]) == (1, 0)


def test_a_period_with_nobody_ready_changes_nothing_but_the_time(build, fix_times):
    fix_times([9.0, 9.0, 9.0])
    process = build()
    state, rows = run(process, 2)
    assert_same(get_model(process, state), get_model(process, process.initialize()))
    assert [row["virtual_time_s"] for row in rows] == [1, 2]
    assert all(row["num_scheduled"] == row["bytes_up"] == row["bytes_down"] == 0 for row in rows)
    assert np.isnan(rows[0]["train_loss"])


def test_devices_drop_out_and_come_back(build):
    times = TrainingTimesConfig(dropout=0.5, max_away_s=0.5)
    process = build((6, 9, 12, 5), period_fraction=0.3, times=times)
    state, rows = run(process, 20)
    assert sum(row["num_ready"] for row in rows) < state.num_starts.sum() - 4  # some starts came to nothing
    assert np.all(state.num_starts > 5)  # and still everybody goes on


def test_mixing_by_hand():
    """Versions 0 and 10 with weights 1 and 3, and an update of 2 with the weight 3: (0 + 30 + 6) / 4 = 9."""
    models = (np.array([[0.0], [10.0]], np.float32), np.array([[1], [2]]))
    mixed = mix_models(models, np.array([1.0, 3.0]), (np.array([2.0], np.float32),), 3.0)
    assert [array.tolist() for array in mixed] == [[9.0], [2]]
    assert mixed[0].dtype == np.float32
