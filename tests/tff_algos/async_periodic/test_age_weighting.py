"""A schedule of three devices by hand, and what holds for all weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tff_algos.async_periodic.process import (
    compute_ages,
    compute_weights,
    create_start_indices,
    record_reception,
)
from tff_algos.simulation.event_clock import create_clock, find_waiting, start_devices, take_until
from tff_algos.simulation.scheduling import SchedulingContext, count_scheduled, schedule

NUM_EXAMPLES = np.array([1, 1, 2])
TRAINING_S = np.array([0.5, 1.5, 2.5])

# Devices that train 0.5, 1.5 and 2.5 s; aggregations at 1, 2, ... s; at most two scheduled by frequency; gamma 1/2.
# At 3 s, for example, devices 2 (since 0 s, from theta(1)) and 0 (since 2 s, from theta(3)) are ready, both at 2.5 s,
# device 2 first, since it started first: ages 2 and 0, weights in proportion 2/4 and 1, that is 1/3 and 2/3. At 6 s all
# are ready and device 0, scheduled five times, is left out.
# A row: ready in order of the events, start indices, ages, scheduled, weights over the scheduled, over all.
SCHEDULE = [
    ([0], [1, 1, 1], [0, 0, 0], [0], [1, 0, 0], [1 / 4, 1 / 4, 1 / 2]),
    ([1, 0], [2, 1, 1], [0, 1, 1], [0, 1], [2 / 3, 1 / 3, 0], [2 / 5, 1 / 5, 2 / 5]),
    ([2, 0], [3, 3, 1], [0, 0, 2], [0, 2], [2 / 3, 0, 1 / 3], [2 / 5, 2 / 5, 1 / 5]),
    ([1, 0], [4, 3, 4], [0, 1, 0], [0, 1], [2 / 3, 1 / 3, 0], [2 / 7, 1 / 7, 4 / 7]),
    ([0], [5, 5, 4], [0, 0, 1], [0], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]),
    ([2, 1, 0], [6, 5, 4], [0, 1, 2], [1, 2], [0, 1 / 2, 1 / 2], [1 / 2, 1 / 4, 1 / 4]),
]

AGES_AND_SIZES = st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 1000)), min_size=1, max_size=10)
GAMMAS = st.floats(1e-6, 1e6)


def test_three_devices_by_hand():
    clock = start_devices(create_clock(3), np.arange(3), TRAINING_S)
    start_indices, counts, ready_sets = create_start_indices(3), np.zeros(3, np.int64), []
    for index, (in_order, indices, ages, chosen, over_scheduled, over_all) in enumerate(SCHEDULE, start=1):
        clock, events = take_until(clock, index * 1.0)
        assert [event.client for event in events] == in_order
        ready = find_waiting(clock)
        assert start_indices.tolist() == indices == [start_by_equation_7(ready_sets, k, index) for k in range(3)]
        assert compute_ages(start_indices, index).tolist() == ages
        context = SchedulingContext(max_scheduled=2, counts=counts)
        scheduled = schedule("frequency", ready, context, np.random.default_rng(0))
        assert scheduled.tolist() == chosen
        for averaged, expected in (("scheduled", over_scheduled), ("all", over_all)):
            weights = compute_weights("age_aware", averaged, scheduled, NUM_EXAMPLES, np.array(ages), 0.5)
            np.testing.assert_allclose(weights, expected, rtol=1e-12)
        counts = count_scheduled(counts, scheduled)
        start_indices = record_reception(start_indices, ready, index + 1)
        clock = start_devices(clock, ready, TRAINING_S[ready])
        ready_sets.append(set(ready.tolist()))
    assert counts.tolist() == [5, 3, 2]


def start_by_equation_7(ready_sets, client, index):
    """max{t' < t: k in K(t')} + 1, or 1; ready_sets[0] is K(1)."""
    return max((t for t in range(1, index) if client in ready_sets[t - 1]), default=0) + 1


@pytest.mark.parametrize(
    ("weighting", "averaged", "scheduled", "num_examples", "ages", "gamma", "expected"),
    [
        ("equal", "scheduled", [1, 2], NUM_EXAMPLES, [0, 1, 2], 0.5, [0, 1 / 3, 2 / 3]),
        ("equal", "all", [1], NUM_EXAMPLES, [0, 1, 2], 0.5, [0.25, 0.25, 0.5]),
        ("age_aware", "scheduled", [1, 2], NUM_EXAMPLES, [0, 1, 2], 2.0, [0, 0.2, 0.8]),  # 1 * 2^1 and 2 * 2^2 of 10
        # One outlier of age takes all or nothing, without overflow.
        ("age_aware", "all", [0], [60_000, 1], [0, 100_000], 10.0, [0.0, 1.0]),
        ("age_aware", "all", [0], [60_000, 1], [0, 100_000], 0.1, [1.0, 0.0]),
    ],
)
def test_weights_by_hand(weighting, averaged, scheduled, num_examples, ages, gamma, expected):
    arrays = map(np.array, (scheduled, num_examples, ages))
    np.testing.assert_allclose(compute_weights(weighting, averaged, *arrays, gamma), expected, rtol=1e-12)


@settings(max_examples=80, deadline=None)
@given(
    AGES_AND_SIZES, GAMMAS, st.sampled_from(["equal", "age_aware"]), st.sampled_from(["scheduled", "all"]), st.data()
)
def test_weights_sum_to_1_and_belong_to_the_averaged(devices, gamma, weighting, averaged, data):
    ages, sizes = np.array(devices).T
    scheduled = np.array(sorted(data.draw(st.sets(st.integers(0, len(ages) - 1), min_size=1))))
    weights = compute_weights(weighting, averaged, scheduled, sizes, ages, gamma)
    assert np.isfinite(weights).all() and (weights >= 0).all() and abs(weights.sum() - 1) < 1e-12
    if averaged == "scheduled":
        assert not np.delete(weights, scheduled).any()
    order = np.array(data.draw(st.permutations(range(len(ages)))))
    permuted = compute_weights(weighting, averaged, np.argsort(order)[scheduled], sizes[order], ages[order], gamma)
    np.testing.assert_allclose(permuted, weights[order], rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5000), min_size=1, max_size=10).map(np.array), GAMMAS)
def test_among_devices_of_equal_size_weights_are_ordered_by_age(ages, gamma):
    weights = compute_weights("age_aware", "all", np.array([0]), np.full(len(ages), 7), ages, gamma)
    by_age = weights[np.argsort(ages)]
    assert (np.diff(by_age) * np.sign(gamma - 1) >= 0).all()
    neighbours = np.flatnonzero(ages == ages[0] + 1)
    if len(neighbours) and weights[0] > 1e-200 and weights[neighbours[0]] > 1e-200:
        assert weights[neighbours[0]] / weights[0] == pytest.approx(gamma, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(AGES_AND_SIZES, st.sampled_from(["scheduled", "all"]))
def test_gamma_1_is_equal_to_the_bit(devices, averaged):
    ages, sizes = np.array(devices).T
    arguments = (averaged, np.array([0]), sizes, ages)
    np.testing.assert_array_equal(
        compute_weights("age_aware", *arguments, 1.0), compute_weights("equal", *arguments, 3.0)
    )
