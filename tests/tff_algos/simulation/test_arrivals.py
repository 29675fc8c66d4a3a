"""Arrivals, the versions that the server keeps, and mixing weights, by hand."""

import numpy as np
import pytest

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.asynchronous import TrainingTimesConfig
from tff_algos.simulation import arrivals as module
from tff_algos.simulation.arrivals import (
    DeviceStarts,
    add_versions,
    choose_next,
    collect_arrivals,
    compute_mixing_weight,
    create_versions,
    find_used_versions,
    start_at,
)
from tff_algos.simulation.event_clock import BACK, count_training, create_clock
from tff_algos.simulation.training_times import SimulatedDevices, StartPlan


def make_devices(num_clients, **times):
    ones = np.ones(num_clients)
    return SimulatedDevices(TrainingTimesConfig(**times), 5, DeviceProfiles(ones, ones, ones, ones), ones, 0, 0)


def nowhere(num_clients=2):
    return DeviceStarts(create_clock(num_clients), *np.zeros((2, num_clients), np.int64))


@pytest.fixture
def starts(monkeypatch):
    """Two devices that train for 1 s and 2.5 s, started at 0 s from version 0."""
    # Times in which no two arrivals fall together.
    durations = np.array([1.0, 2.5])
    plan = lambda devices, clients, num_starts, time_s: StartPlan(durations[clients], np.zeros(len(clients)))
    monkeypatch.setattr(SimulatedDevices, "plan_starts", plan)
    return start_at(make_devices(2), nowhere(), np.arange(2), 0)


def test_each_arrival_makes_a_version(starts):
    """Ready: device 0 at 1 s and 2 s, device 1 at 2.5 s, device 0 at 3 s."""
    collected = collect_arrivals(make_devices(2), starts, 0, 4, arrivals_per_version=1)
    assert collected.arrivals == [(0, 0, 0, 1), (0, 1, 1, 2), (1, 0, 2, 1), (0, 2, 3, 3)]
    assert [arrival.staleness for arrival in collected.arrivals] == [0, 0, 2, 1]
    assert collected.starts.versions.tolist() == [4, 3] and collected.starts.num_starts.tolist() == [4, 2]
    assert (float(collected.starts.clock.time_s), collected.num_handed_out) == (3.0, 4)


def test_a_buffer_makes_a_version_when_it_is_full(starts):
    """The last of three arrivals, device 1, already starts from the new version; device 0 restarted from the old."""
    collected = collect_arrivals(make_devices(2), starts, 5, 3, arrivals_per_version=3)
    assert [arrival.newest_version for arrival in collected.arrivals] == [5, 5, 5]
    assert collected.starts.versions.tolist() == [5, 6]


def test_a_place_that_falls_free_is_drawn_for(starts, monkeypatch):
    """One place. Device 0 is ready at 1 s, then 1 is drawn, ready at 3.5 s, then 1 again, at 6 s, and 0, at 7 s."""
    drawn = iter([1, 1, 0, 0])

    class Draws:
        def choice(self, waiting, size, replace):
            assert waiting.tolist() == [0, 1] and size == 1 and not replace
            return np.array([next(drawn)])

    monkeypatch.setattr(module, "derive_generator", lambda seed, purpose, number: Draws())
    alone = start_at(make_devices(2), nowhere(), np.array([0]), 0)
    collected = collect_arrivals(make_devices(2), alone, 0, 4, arrivals_per_version=1, concurrency=1)
    assert collected.arrivals == [(0, 0, 0, 1), (1, 1, 1, 1), (1, 2, 2, 2), (0, 3, 3, 2)]
    assert float(collected.starts.clock.time_s) == 7.0 and collected.num_handed_out == 4
    assert [(row.client, row.what) for row in collected.log][:3] == [(0, "ready"), (0, "received"), (1, "start")]
    assert find_used_versions(collected.starts).tolist() == [4]  # device 1 waits, and its version is of no use


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("concurrency", [1, 3, 7])
def test_so_many_train_at_a_time_and_nobody_is_forgotten(dropout, concurrency):
    devices = make_devices(7, dropout=dropout, **({"max_away_s": 3.0} if dropout else {}))
    chosen = choose_next(devices, nowhere(7), concurrency)
    state, version, times_s = start_at(devices, nowhere(7), chosen, 0), 0, []
    for _ in range(80):
        away = np.isfinite(state.clock.event_times_s) & (state.clock.event_kinds == BACK)
        assert count_training(state.clock) == min(concurrency, 7 - away.sum())
        collected = collect_arrivals(devices, state, version, 1, 1, concurrency)
        state, version = collected.starts, version + 1
        times_s.append(float(state.clock.time_s))
    assert times_s == sorted(times_s) and state.num_starts.min() > 0


def test_as_many_places_as_devices_are_no_limit():
    devices = make_devices(4, dropout=0.3)
    state = start_at(devices, nowhere(4), np.arange(4), 0)
    found = [collect_arrivals(devices, state, 0, 20, 3, concurrency) for concurrency in (0, 4, 9)]
    assert found[0].log == found[1].log == found[2].log


def test_versions_in_use_are_kept():
    versions = create_versions((np.array([0.0]),))
    versions = add_versions(versions, [(np.array([1.0]),), (np.array([2.0]),)], used=np.array([0, 2]))
    assert versions.numbers.tolist() == [0, 2]
    versions = add_versions(versions, [(np.array([3.0]),), (np.array([4.0]),)], used=np.array([2, 3]))
    assert versions.numbers.tolist() == [2, 3, 4]  # the newest stays, though nobody uses it
    assert [versions.get(number)[0].item() for number in (2, 3, 4)] == [2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("constant", [0.6, 0.6, 0.6, 0.6]),
        ("polynomial", [0.6, 0.6 / 2, 0.6 / 5**0.5, 0.6 / 3]),  # (d + 1)^-0.5
        ("hinge", [0.6, 0.6, 0.6 / 1.5, 0.6 / 3.5]),  # 1 / (0.5 (d - 3) + 1) from 3 on
    ],
)
def test_weights_by_hand_and_staler_ones_never_weigh_more(function, expected):
    weights = compute_mixing_weight(0.6, np.array([0, 3, 4, 8]), function, decay=0.5, grace=3.0)
    np.testing.assert_allclose(weights, expected)
    weights = compute_mixing_weight(0.9, np.arange(50), function, decay=2.0, grace=4.0)
    assert weights[0] == 0.9 and (np.diff(weights) <= 0).all() and (weights > 0).all()
    assert (compute_mixing_weight(0.9, np.arange(50), function, decay=0.0, grace=4.0) == 0.9).all()
