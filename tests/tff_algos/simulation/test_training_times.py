"""Times are functions of (seed, device, number of starts), in their ranges; profiles and windows by hand."""

import dataclasses

import numpy as np
import pytest

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.asynchronous import TrainingTimesConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.training_times import (
    SimulatedDevices,
    compute_longest_training_s,
    compute_training_s,
    compute_wait_s,
    plan_starts,
    rank_by_label,
)

CLIENTS = np.arange(200)
NO_STARTS = np.zeros(200, np.int64)


def make_devices(seed=3, availability=1.0, num_clients=200, **settings):
    # Each device has a speed of its own, so that mixed-up indices show.
    rates = np.arange(1.0, num_clients + 1)
    profiles = DeviceProfiles(10 * rates, 100 * rates, 50 * rates, np.full(num_clients, availability))
    return SimulatedDevices(TrainingTimesConfig(**settings), seed, profiles, np.full(num_clients, 40), 300.0, 150.0)


@pytest.mark.parametrize("speed", ["redrawn", "persistent"])
def test_drawn_times_are_uniform_up_to_the_longest(speed):
    devices = make_devices(speed=speed, max_training_s=8.0)
    times_s = compute_training_s(devices, CLIENTS, NO_STARTS)
    assert ((times_s > 0) & (times_s <= 8)).all() and len(set(times_s)) == 200
    # four standard deviations of the mean of 200 draws
    assert abs(times_s.mean() - 4) < 4 * 8 / np.sqrt(12 * 200)
    assert compute_longest_training_s(devices) == 8.0


def test_redrawn_times_change_with_the_start_and_persistent_ones_do_not():
    for speed, is_same in (("redrawn", False), ("persistent", True)):
        devices = make_devices(speed=speed)
        first, second = (compute_training_s(devices, CLIENTS, NO_STARTS + starts) for starts in (0, 1))
        assert (first == second).all() == is_same and (is_same or not (first == second).any())


def test_windows_are_as_long_as_the_setting_and_the_profile_say_together():
    times_s = np.linspace(0, 4, 200, endpoint=False)
    halves = {"availability_cycle_s": 4.0, "availability": 0.5, "availability_share": 0.5}
    quarter = make_devices(availability_cycle_s=4.0, availability=0.25)
    np.testing.assert_array_equal(
        compute_wait_s(make_devices(**halves), CLIENTS, times_s), compute_wait_s(quarter, CLIENTS, times_s)
    )


def test_without_classes_there_are_no_times_by_label():
    devices = make_devices(num_clients=4)
    with pytest.raises(ConfigError, match="by_label: expected one of redrawn, persistent, profiles for a task whose"):
        dataclasses.replace(devices, config=TrainingTimesConfig(speed="by_label"), label_counts=np.zeros((4, 0), int))


def test_by_label_the_times_are_the_persistent_ones_and_go_up_with_the_highest_label():
    devices = make_devices(speed="by_label", num_clients=4)
    counts = np.array([[0, 3, 0, 1], [5, 0, 0, 0], [1, 0, 0, 9], [0, 2, 4, 0]])
    devices = dataclasses.replace(devices, label_counts=counts)
    assert rank_by_label(counts).tolist() == [2, 0, 3, 1]  # highest 3, 0, 3, 2; client 2 has the higher mean label
    times_s = compute_training_s(devices, CLIENTS[:4], NO_STARTS[:4])
    persistent_s = compute_training_s(make_devices(speed="persistent", num_clients=4), CLIENTS[:4], NO_STARTS[:4])
    assert times_s[[1, 3, 0, 2]].tolist() == sorted(persistent_s)
    assert compute_training_s(devices, np.array([2, 1]), np.array([3, 8])).tolist() == times_s[[2, 1]].tolist()


def test_plans_depend_on_seed_device_and_start_but_on_no_order():
    settings = {"dropout": 0.4, "max_away_s": 5.0, "availability_cycle_s": 2.0, "availability": 0.5}
    num_starts = np.arange(200) % 7
    whole = plan_starts(make_devices(**settings), CLIENTS, num_starts, 1.5)
    order = np.random.default_rng(0).permutation(200)
    shuffled = plan_starts(make_devices(**settings), order, num_starts[order], 1.5)
    alone = plan_starts(make_devices(**settings), CLIENTS[9:10], num_starts[9:10], 1.5)
    other = plan_starts(make_devices(seed=4, **settings), CLIENTS, num_starts, 1.5)
    for field in range(2):
        np.testing.assert_array_equal(shuffled[field], whole[field][order])
        assert alone[field][0] == whole[field][9]
        assert not np.array_equal(other[field], whole[field])


def test_profiles_give_transfers_and_training():
    """Client 0: 300/100 + 40/10 + 150/50 = 3 + 4 + 3; client 1 is twice as fast everywhere."""
    devices = make_devices(speed="profiles")
    assert compute_training_s(devices, np.array([1, 0]), np.array([5, 0])).tolist() == [5.0, 10.0]
    assert compute_longest_training_s(devices) == 10.0


def test_the_chance_of_drop_outs_is_kept_and_they_drop_within_their_training():
    devices = make_devices(dropout=0.3, max_away_s=7.0)
    plan = plan_starts(devices, CLIENTS, NO_STARTS, 0.0)
    training_s, drops = compute_training_s(devices, CLIENTS, NO_STARTS), plan.away_s > 0
    assert abs(drops.mean() - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 200)
    np.testing.assert_array_equal(plan.durations_s[~drops], training_s[~drops])
    assert ((plan.durations_s > 0) & (plan.durations_s <= training_s)).all()
    assert (plan.durations_s[drops] < training_s[drops]).any() and plan.away_s.max() <= 7


def test_windows_are_open_for_their_share_of_each_cycle_and_the_wait_ends_at_an_opening():
    devices = make_devices(availability=0.25, availability_cycle_s=4.0)
    moments_s = np.arange(0, 4, 1 / 64)
    waits_s = np.array([compute_wait_s(devices, CLIENTS[:20], moment_s) for moment_s in moments_s])
    # in 256 moments a cycle, an open quarter is 64 moments, give or take the ends
    assert (np.abs((waits_s == 0).sum(axis=0) - 64) <= 1).all() and waits_s.max() <= 3.0
    openings_s = np.mod(moments_s[:, None] + waits_s, 4.0)
    for client in range(20):
        waited = openings_s[waits_s[:, client] > 0, client]
        np.testing.assert_allclose(waited, waited[0], atol=1e-9)
    np.testing.assert_allclose(
        compute_wait_s(devices, CLIENTS, 1.0), compute_wait_s(devices, CLIENTS, 401.0), atol=1e-9
    )


def test_without_chance_nobody_drops_out_and_who_is_always_available_never_waits():
    assert not plan_starts(make_devices(), CLIENTS, NO_STARTS, 0.0).away_s.any()
    assert not compute_wait_s(make_devices(availability_cycle_s=4.0), CLIENTS, 1.0).any()


def test_a_plan_starts_and_ends_in_a_window():
    devices = make_devices(availability=0.25, availability_cycle_s=4.0, max_training_s=3.0)
    plan = plan_starts(devices, CLIENTS, NO_STARTS, 10.0)
    wait_s, training_s = compute_wait_s(devices, CLIENTS, 10.0), compute_training_s(devices, CLIENTS, NO_STARTS)
    rest_s = compute_wait_s(devices, CLIENTS, 10.0 + wait_s + training_s)
    np.testing.assert_allclose(plan.durations_s, wait_s + training_s + rest_s)
    assert (wait_s > 0).any() and (rest_s > 0).any()
