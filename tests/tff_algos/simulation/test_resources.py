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
    compute_fine_tuning_rates,
    compute_fine_tuning_steps,
    draw_device_state,
    draw_devices,
    draw_resources,
    plan_fine_tuning,
)

LEVELS = np.array([0.1, 0.505, 0.8])


def test_steps_and_rates_by_hand():
    """N_max = 100: 100 * 0.1 / 0.8 = 12.5, rounded 13; 63.125; 100. alpha_max = 0.4: 0.05, 0.2525, 0.4."""
    assert compute_fine_tuning_steps(LEVELS, 100).tolist() == [13, 63, 100]
    np.testing.assert_allclose(compute_fine_tuning_rates(LEVELS, 0.4), [0.05, 0.2525, 0.4])


@pytest.mark.parametrize(
    ("rule", "steps", "rates"),
    [
        ("same", [100, 100, 100], [0.4, 0.4, 0.4]),
        ("steps", [13, 63, 100], [0.4, 0.4, 0.4]),
        ("resources", [13, 63, 100], [0.05, 0.2525, 0.4]),
    ],
)
def test_rules_by_hand(rule, steps, rates):
    plan = plan_fine_tuning(rule, LEVELS, 100, 0.4)
    assert plan.num_steps.tolist() == steps and plan.num_steps.dtype == np.int32
    np.testing.assert_allclose(plan.learning_rates, rates)


def test_devices_are_a_function_of_the_seed_and_more_of_them_change_no_resources():
    levels, state = draw_devices(5, seed=3)
    again, same = draw_devices(5, seed=3)
    np.testing.assert_array_equal(levels, again)
    np.testing.assert_array_equal(state.charge, same.charge)
    np.testing.assert_array_equal(draw_devices(7, seed=3)[0][:5], levels)
    assert np.any(draw_devices(5, seed=4)[0] != levels)


def test_everyone_takes_a_step_unless_nobody_should():
    assert compute_fine_tuning_steps(LEVELS, 2).tolist() == [1, 1, 2]
    assert compute_fine_tuning_steps(LEVELS, 0).tolist() == [0, 0, 0]


@given(st.lists(st.floats(0.1, 1.0), min_size=1, max_size=20), st.integers(1, 500))
def test_the_strongest_takes_all_steps_and_nobody_more(levels, max_steps):
    steps = compute_fine_tuning_steps(np.array(levels), max_steps)
    assert steps.max() == max_steps and steps.min() >= 1
    assert all(a <= b for a, b in zip(steps[np.argsort(levels)], steps[np.argsort(levels)][1:], strict=False))


def test_the_mean_share_of_the_steps_is_that_of_the_resources():
    """U(0.1, 1) has the mean 0.55, so that 100 steps at most are 55 on average, not the printed 65."""
    levels = draw_resources(100_000, 0.1, 1.0, np.random.default_rng(0))
    assert compute_fine_tuning_steps(levels, 100).mean() == pytest.approx(55, abs=0.3)
    assert levels.min() >= 0.1 and levels.max() <= 1.0


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


@given(st.integers(0, 2**32 - 1))
def test_batteries_and_loads_stay_in_their_range(seed):
    generator = np.random.default_rng(seed)
    levels = draw_resources(6, 0.1, 1.0, generator)
    state = draw_device_state(6, generator)
    for _ in range(30):
        current = compute_dynamic_resources(levels, state)
        assert np.all((current >= resources.LEAST_RESOURCE) & (current <= 1))
        state = advance_devices(state, current, current > 0.2, generator)
        assert all(np.all((part >= 0) & (part <= 1)) for part in state)


def test_known_resources_stay_and_the_rest_is_drawn_alike():
    known = np.array([0.3, 1.0, 0.5])
    levels, state = draw_devices(3, seed=3, known=known)
    assert levels is known
    np.testing.assert_array_equal(state.charge, draw_devices(3, seed=3)[1].charge)
