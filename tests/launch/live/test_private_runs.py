"""What is said of the noise of a private live run before anybody is waited for."""

import types

import pytest
from small_formats import make_spec

from launch.live.private_runs import describe_noise

SPEC = make_spec("logistic_regression", (4,))  # 3 classes: 15 weights


@pytest.mark.parametrize(("size", "deviation", "norm", "times"), [(2, "0.5", "1.9", "3.9"), (20, "0.05", "0.19", None)])
def test_the_noise_of_a_mean_is_held_against_the_longest_update(size, deviation, norm, times):
    aggregator = types.SimpleNamespace(
        noise_multiplier=2.0, denominator=size, config=types.SimpleNamespace(clip_norm=0.5)
    )
    first, *warnings = describe_noise(aggregator, SPEC)
    assert first == (
        f"privacy  a round's mean of {size} updates, each of norm 0.5 at most, gets noise of {deviation} in each of 15 "
        f"weights, a norm of {norm} in all"
    )
    told = f"warning  the noise is {times} times as long as any update"
    assert [line[: len(told)] for line in warnings] == [told] * bool(times)
