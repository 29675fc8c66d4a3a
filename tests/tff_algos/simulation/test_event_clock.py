"""Nothing is lost, nothing goes backwards, nobody is in two places; drop-outs come back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tff_algos.simulation.event_clock import (
    BACK,
    DROPPED,
    READY,
    Event,
    create_clock,
    find_next_time,
    find_waiting,
    log_clients,
    log_events,
    pack_log,
    start_devices,
    take_all,
    take_next,
    take_until,
    unpack_log,
)

# Quarters are exact in float64, so that events at equal times are common.
DURATIONS_S = st.integers(1, 12).map(lambda quarters: quarters / 4)
AWAY_S = st.one_of(st.just(0.0), DURATIONS_S)
DEVICES = st.lists(st.tuples(DURATIONS_S, AWAY_S), min_size=1, max_size=8)
STEPS_S = st.lists(st.integers(0, 8).map(lambda quarters: quarters / 4), max_size=10)


def start_all(plans):
    durations_s, away_s = np.array(plans).T
    return start_devices(create_clock(len(plans)), np.arange(len(plans)), durations_s, away_s)


def assert_same(first, second):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype


def test_events_come_by_time_then_in_the_order_of_the_starts():
    state = start_devices(create_clock(4), np.array([2, 0, 1]), np.array([3.0, 2.0, 3.0]))
    assert find_waiting(state).tolist() == [3] and find_next_time(state) == 2.0
    state, events = take_until(state, 3.0)
    assert events == [Event(2.0, 1, 0, READY), Event(3.0, 0, 2, READY), Event(3.0, 2, 1, READY)]
    assert state.time_s == 3.0 and find_next_time(state) == np.inf and find_waiting(state).tolist() == [0, 1, 2, 3]


def test_a_device_that_drops_out_comes_back_later_and_can_start_again():
    """Drops at 2, is away for 1.5, is back at 3.5; busy until then."""
    state = start_devices(create_clock(1), np.array([0]), np.array([2.0]), np.array([1.5]))
    state, events = take_until(state, 3.0)
    assert events == [Event(2.0, 0, 0, DROPPED)] and len(find_waiting(state)) == 0
    with pytest.raises(ValueError, match="device 0 starts, but has a pending event"):
        start_devices(state, np.array([0]), np.array([1.0]))
    state, events = take_until(state, 4.0)
    assert events == [Event(3.5, 1, 0, BACK)]
    state, events = take_until(start_devices(state, np.array([0]), np.array([1.0])), 5.0)
    assert events == [Event(5.0, 2, 0, READY)]


def test_functions_leave_their_argument_as_it_was_and_nothing_pending_means_no_event():
    state = start_all([(1.0, 0.5), (2.0, 0.0)])
    before = [np.copy(array) for array in state]
    later, events = take_until(state, 0.5)
    assert events == [] and later.time_s == 0.5
    assert_same(later[1:], state[1:])
    take_next(state)
    assert_same(state, before)
    assert take_next(idle := create_clock(2)) == (idle, None)


@pytest.mark.parametrize(("duration_s", "away_s"), [(0.0, 0.0), (np.nan, 0.0), (np.inf, 0.0), (1.0, -1.0)])
def test_an_impossible_start_is_an_error(duration_s, away_s):
    with pytest.raises(ValueError, match="not above 0 s"):
        start_devices(create_clock(2), np.array([0]), np.array([duration_s]), np.array([away_s]))


@pytest.mark.parametrize("until_s", [1.0, np.nan, np.inf])
def test_time_does_not_run_backwards_nor_to_the_end_of_days(until_s):
    state, _ = take_until(create_clock(1), 2.0)
    with pytest.raises(ValueError, match=r"from 2.0 s on"):
        take_until(state, until_s)


def test_log_rows_name_what_happened_and_the_model():
    versions = np.array([4, 7])
    rows = log_events([Event(1.0, 0, 1, DROPPED), Event(2.0, 1, 0, READY)], versions)
    rows += log_clients(3, np.array([1]), "start", versions)
    assert rows == [(1.0, 1, "dropped", 7), (2.0, 0, "ready", 4), (3.0, 1, "start", 7)]
    assert unpack_log(pack_log(rows)) == rows and unpack_log(pack_log([])) == []


@settings(max_examples=60, deadline=None)
@given(DEVICES)
def test_no_event_is_lost_and_all_come_in_order(plans):
    # Later than any device trains and is away.
    _, events = take_until(start_all(plans), 100.0)
    expected = [(duration_s, client, DROPPED if away_s else READY) for client, (duration_s, away_s) in enumerate(plans)]
    expected += [(sum(plan), client, BACK) for client, plan in enumerate(plans) if plan[1]]
    assert sorted((event.time_s, event.client, event.kind) for event in events) == sorted(expected)
    assert [(event.time_s, event.sequence) for event in events] == sorted((e.time_s, e.sequence) for e in events)
    assert len({event.sequence for event in events}) == len(events)


@settings(max_examples=60, deadline=None)
@given(DEVICES, STEPS_S)
def test_any_interleaving_of_takes_gives_the_same_events(plans, steps_s):
    whole_state, whole = take_until(start_all(plans), 100.0)
    state, parts = start_all(plans), []
    for step_s in steps_s:
        state, taken = take_until(state, float(state.time_s) + step_s)
        assert all(event.time_s <= state.time_s for event in taken)
        parts += taken
    state, taken = take_until(state, 100.0)
    assert parts + taken == whole
    assert_same(state, whole_state)

    state, singles = start_all(plans), []
    while (taken := take_next(state))[1] is not None:
        assert state.time_s <= taken[0].time_s == taken[1].time_s
        state, singles = taken[0], [*singles, taken[1]]
    assert singles == whole
    last_state, everything = take_all(start_all(plans))
    assert everything == whole
    assert_same(last_state, state)


@settings(max_examples=40, deadline=None)
@given(DEVICES, st.randoms(use_true_random=False))
def test_devices_that_always_start_again_are_in_one_place_at_a_time(plans, random):
    """A start is answered by READY, or by DROPPED and then BACK, before the device starts again."""
    state, histories = start_all(plans), [["start"] for _ in plans]
    for _ in range(12):
        state, events = take_until(state, float(state.time_s) + random.choice([0.5, 1.0, 2.0]))
        for event in events:
            histories[event.client].append(event.kind)
        waiting = find_waiting(state)
        durations_s, away_s = np.array([plans[client] for client in waiting]).reshape(-1, 2).T
        state = start_devices(state, waiting, durations_s, away_s)
        for client in waiting:
            histories[client].append("start")
        assert (state.event_times_s > state.time_s).all() and np.isfinite(state.event_times_s).all()
    for (_, away_s), history in zip(plans, histories, strict=True):
        cycle = ["start", DROPPED, BACK] if away_s else ["start", READY]
        assert history == (cycle * len(history))[: len(history)]
