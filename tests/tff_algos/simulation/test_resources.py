"""Resources, and the fine-tuning that follows from them, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tff_algos.simulation import resources
from tff_algos.simulation.resources import (
    DeviceState,
    advance_devices,
    compute_dynamic_resources,
    draw_devices,
    plan_fine_tuning,
)

LEVELS = np.array([0.1, 0.505, 0.8])


@pytest.mark.parametrize(
    ("rule", "max_steps", "steps", "rates"),
    [
        ("same", 100, [100, 100, 100], [0.4, 0.4, 0.4]),
        ("steps", 100, [13, 63, 100], [0.4, 0.4, 0.4]),
        ("resources", 100, [13, 63, 100], [0.05, 0.2525, 0.4]),
        ("steps", 2, [1, 1, 2], [0.4, 0.4, 0.4]),  # everyone takes a step
        ("steps", 0, [0, 0, 0], [0.4, 0.4, 0.4]),  # unless nobody should
    ],
)
def test_rules_by_hand(rule, max_steps, steps, rates):
    """N_max = 100: 100 * 0.1 / 0.8 = 12.5, rounded 13; 63.125; 100. alpha_max = 0.4: 0.05, 0.2525, 0.4."""
    plan = plan_fine_tuning(rule, LEVELS, max_steps, 0.4)
    assert plan.num_steps.tolist() == steps and plan.num_steps.dtype == np.int32
    np.testing.assert_allclose(plan.learning_rates, rates)


@given(st.lists(st.floats(0.1, 1.0), min_size=1, max_size=20), st.integers(1, 500))
def test_the_strongest_takes_all_steps_and_nobody_more(levels, max_steps):
    steps = plan_fine_tuning("steps", np.array(levels), max_steps, 0.4).num_steps
    assert steps.max() == max_steps and steps.min() >= 1
    assert (np.diff(steps[np.argsort(levels)]) >= 0).all()


def test_devices_are_a_function_of_the_seed_and_more_of_them_change_no_resources():
    """U(0.1, 1) has the mean 0.55, so that 100 steps at most are 55 on average, not the printed 65."""
    levels, state = draw_devices(100_000, seed=3)
    assert plan_fine_tuning("steps", levels, 100, 0.4).num_steps.mean() == pytest.approx(55, abs=0.3)
    assert levels.min() >= 0.1 and levels.max() <= 1.0
    np.testing.assert_array_equal(draw_devices(7, seed=3)[0], levels[:7])
    np.testing.assert_array_equal(draw_devices(100_000, seed=3)[1], state)
    assert np.any(draw_devices(7, seed=4)[0] != levels[:7])


def test_known_resources_stay_and_the_rest_is_drawn_alike():
    known = np.array([0.3, 1.0, 0.5])
    levels, state = draw_devices(3, seed=3, known=known)
    assert levels is known
    np.testing.assert_array_equal(state, draw_devices(3, seed=3)[1])


def test_dynamic_resources_by_hand():
    """0.8 * 0.5 * (1 - 0.25) = 0.3; an empty battery leaves the least."""
    state = DeviceState(np.array([0.5, 0.0]), np.array([0.25, 0.0]))
    np.testing.assert_allclose(compute_dynamic_resources(np.array([0.8, 1.0]), state), [0.3, 1e-3])


class FixedNumbers:
    """Stands for a generator whose numbers are known."""

    def __init__(self, *numbers):
        self.numbers = iter(numbers)

    def random(self, size):
        return np.asarray(next(self.numbers))


def test_batteries_and_loads_a_round_later_by_hand():
    """Device 0 works at 0.5 and is plugged in; device 1 idles at 0.4; device 2 is full and plugged in."""
    state = DeviceState(np.array([0.5, 0.5, 1.0]), np.array([0.2, 0.0, 1.0]))
    took_part = np.array([True, False, False])
    generator = FixedNumbers([0.1, 0.9, 0.2], [0.6, 0.0, 1.0])
    charge, load = advance_devices(state, np.array([0.5, 0.4, 0.0]), took_part, generator)
    np.testing.assert_allclose(charge, [0.5 + 0.2 - 0.1 * 0.5, 0.5 - 0.1 * 0.4 * 0.1, 1.0])
    np.testing.assert_allclose(load, [0.7 * 0.2 + 0.3 * 0.6, 0.0, 1.0])


@given(st.integers(0, 2**31))
def test_batteries_and_loads_stay_in_their_range(seed):
    (levels, state), generator = draw_devices(6, seed), np.random.default_rng(seed)
    for _ in range(30):
        current = compute_dynamic_resources(levels, state)
        assert np.all((current >= resources.LEAST_RESOURCE) & (current <= 1))
        state = advance_devices(state, current, current > 0.2, generator)
        assert np.all((np.array(state) >= 0) & (np.array(state) <= 1))
