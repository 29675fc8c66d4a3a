"""Windows of the day and cohorts among the devices that can be reached, by hand and against a plain search."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.federated_data import DAY_S, DeviceProfiles, Windows
from tff_algos.amfl_p.config import AMFLPConfig
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.update_privacy import UpdatePrivacyConfig
from tff_algos.simulation.virtual_clock import (
    check_cohort_size,
    compute_window_wait_s,
    count_most_at_once,
    find_available,
)

HOUR_S = 3600.0
# Device 0: 22 to 7; 1: 9 to 17; 2: 6 to 8 and 16 to 18; 3: always.
HOURS = [[(22, 9), (0, 0)], [(9, 8), (0, 0)], [(6, 2), (16, 2)], [(0, 24), (0, 0)]]


def make_profiles(hours=HOURS, availability=None):
    windows = np.array(hours, np.float64) * HOUR_S
    ones = np.ones(len(hours))
    chances = ones if availability is None else np.asarray(availability, np.float64)
    return DeviceProfiles(ones, ones, ones, chances, windows=Windows(windows[..., 0], windows[..., 1]))


def ask(profiles, num_asked, hour, candidates=None, round_num=1):
    candidates = np.arange(len(profiles.availability)) if candidates is None else np.array(candidates, np.int64)
    wait_s, available = find_available(profiles, candidates, num_asked, hour * HOUR_S, seed=5, round_num=round_num)
    return wait_s / HOUR_S, available.tolist()


@pytest.mark.parametrize(
    ("hour", "waits"),
    [
        (0, [0, 9, 6, 0]),
        (6.5, [0, 2.5, 0, 0]),
        (7, [15, 2, 0, 0]),  # the end of a window is not in it
        (9, [13, 0, 7, 0]),
        (23, [0, 10, 7, 0]),
        (24 * 365 + 8, [14, 1, 8, 0]),
    ],
)
def test_waits_by_hand(hour, waits):
    found = compute_window_wait_s(make_profiles().windows, np.arange(4), hour * HOUR_S)
    assert (found / HOUR_S).tolist() == waits


def test_each_device_can_have_a_time_of_its_own():
    found = compute_window_wait_s(make_profiles().windows, np.array([0, 0, 2]), np.array([6.0, 21.0, 5.0]) * HOUR_S)
    assert (found / HOUR_S).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("num_asked", "hour", "expected"),
    [
        (2, 0, (0, [0, 3])),
        (3, 0, (6, [0, 2, 3])),  # at 6 device 2 opens, and device 0 is still there
        (3, 7, (9, [1, 2, 3])),  # device 0 has gone; at 16 device 2 comes to device 1
        (0, 7.5, (0, [2, 3])),  # all that can be reached, as long as there is one
        (4, 17, (0, [2, 3])),  # all that can be reached
    ],
)
def test_a_server_waits_until_as_many_are_there_as_it_asks(num_asked, hour, expected):
    assert ask(make_profiles(), num_asked, hour) == expected


def test_a_server_that_asks_for_all_waits_until_one_is_there():
    assert ask(make_profiles(), 0, 19, candidates=[1, 2]) == (11, [2])
    assert ask(make_profiles(), 5, 19, candidates=[]) == (0, [])


def test_the_most_at_once():
    assert count_most_at_once(make_profiles(), 4) == 3 and count_most_at_once(make_profiles(), 2) == 1
    for fine in (0, 3, 4, 10):
        check_cohort_size(fine, make_profiles(), 4)
    apart = make_profiles([[(0, 6)], [(5, 7)], [(12, 6)], [(18, 2)]])
    assert count_most_at_once(apart, 4) == 2
    with pytest.raises(ConfigError, match="cohort_size=3: expected at most 2, since no more devices are ever"):
        check_cohort_size(3, apart, 4)
    assert ask(apart, 3, 6) == (23, [0, 1])  # the most of the coming day


def test_without_windows_nobody_waits():
    ones = np.ones(3)
    profiles = DeviceProfiles(ones, ones, ones, ones)
    assert ask(profiles, 2, 5) == (0, [0, 1, 2]) and count_most_at_once(profiles, 3) == 3
    check_cohort_size(7, profiles, 3)


def test_the_chance_of_being_reached_is_kept_and_drawn_anew_in_each_round():
    chances = [0.25, 1.0, 0.75]
    profiles = make_profiles([[(0, 24)]] * 3, chances)
    rounds = [ask(profiles, 2, 0, round_num=number)[1] for number in range(1, 2001)]
    shares = [np.mean([client in available for available in rounds]) for client in range(3)]
    assert shares == pytest.approx(chances, abs=0.04)  # four deviations
    assert rounds[0] == ask(profiles, 2, 0, round_num=1)[1]
    # Whether a device can be reached does not depend on who else is asked.
    assert [2 in ask(profiles, 2, 0, [1, 2], number)[1] for number in range(1, 50)] == [2 in r for r in rounds[:49]]


def test_where_nobody_is_reached_one_is_asked_all_the_same():
    profiles = make_profiles([[(0, 24)]] * 3, [1e-9] * 3)
    asked = [ask(profiles, 2, 0, round_num=number)[1] for number in range(1, 40)]
    assert all(len(each) == 1 for each in asked) and {each[0] for each in asked} == {0, 1, 2}


@st.composite
def draw_hours(draw):
    """Devices with up to two disjoint windows each, at whole hours."""
    devices = []
    for _ in range(draw(st.integers(1, 6))):
        ends = sorted(draw(st.lists(st.integers(0, 23), min_size=2, max_size=4, unique=True)))
        pairs = [(ends[0], ends[1]), (ends[2], ends[3])] if len(ends) == 4 else [(ends[0], ends[1])]
        # The complement: a window over midnight.
        pairs = [(end, start + 24) for start, end in pairs] if len(pairs) == 1 and draw(st.booleans()) else pairs
        hours = [(start, end - start) for start, end in pairs]
        devices.append(hours + [(0, 0)] * (2 - len(hours)))
    return devices


@given(draw_hours(), st.integers(0, 72), st.integers(1, 6))
def test_waiting_is_as_a_plain_search_hour_by_hour_finds_it(hours, hour, num_asked):
    def find_open(at):
        return [i for i, each in enumerate(hours) if any((at - start) % 24 < length for start, length in each)]

    counts = [len(find_open(hour + wait)) for wait in range(25)]
    wait = next((wait for wait, count in enumerate(counts) if count >= num_asked), int(np.argmax(counts)))
    profiles = make_profiles(hours)
    # Who asks for all takes those that are there, and waits for one.
    if num_asked >= len(hours):
        wait = next(wait for wait, count in enumerate(counts) if count)
    assert ask(profiles, num_asked, hour) == (wait, find_open(hour + wait))
    assert count_most_at_once(profiles, len(hours)) == max(counts)
    # Who is asked can be reached at that moment, by the same windows.
    waits = compute_window_wait_s(profiles.windows, np.array(find_open(hour + wait)), (hour + wait) * HOUR_S)
    assert not waits.any()


@given(draw_hours(), st.floats(0, 400 * DAY_S))
def test_a_wait_ends_in_a_window(hours, time_s):
    windows, devices = make_profiles(hours).windows, np.arange(len(hours))
    waits_s = compute_window_wait_s(windows, devices, time_s)
    assert ((waits_s >= 0) & (waits_s <= DAY_S)).all()
    assert not compute_window_wait_s(windows, devices, time_s + waits_s).any()


PRIVATE = {"privacy": UpdatePrivacyConfig(epsilon=1.0)}


@pytest.mark.parametrize(
    "config",
    [
        FedAvgConfig(client_weighting="equal", **PRIVATE),
        FedCDConfig(weighting="equal", **PRIVATE),
        AMFLPConfig(weighting="equal", **PRIVATE),
    ],
    ids=lambda config: type(config).__name__,
)
def test_private_cohorts_are_not_drawn_among_devices_that_are_away_at_times(config):
    always = dataclasses.replace(make_profiles(), windows=None)
    config.check_devices(always, 4)
    for away in (make_profiles(), dataclasses.replace(always, availability=np.array([1.0, 0.9, 1.0, 1.0]))):
        with pytest.raises(ConfigError, match="dp_epsilon"):
            config.check_devices(away, 4)
