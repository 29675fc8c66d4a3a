"""The Gaussian mechanism on the moment vectors: bound, calibration, noise, and units."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import norm

from launch.settings.experiments import get_experiment
from tff_algos.fed_sikd.privacy import (
    add_noise,
    calibrate_noise_multiplier,
    compute_sensitivity,
    normalize_features,
    restore_units,
    spent_epsilon,
)
from tff_algos.fed_sikd.statistics import compute_moment_sums
from tff_algos.settings.update_privacy import PLD, RDP

ANY_FLOAT32 = st.floats(width=32, allow_nan=True, allow_infinity=True)


def compute_exact_delta(noise_multiplier, epsilon):
    """The Gaussian mechanism's delta (Balle and Wang 2018, Theorem 5), with sensitivity 1 and deviation s.

    delta = Phi(1 / (2 s) - epsilon s) - e^epsilon Phi(-1 / (2 s) - epsilon s).
    """
    half, shift = 1 / (2 * noise_multiplier), epsilon * noise_multiplier
    return norm.cdf(half - shift) - math.exp(epsilon + norm.logcdf(-half - shift))


def test_values_are_clipped_and_mapped_and_return_to_their_units():
    """Range (0, 4): center 2, for NaN as well, half width 2. Mean 2 + 2 * 0.5, deviation 2 * 0.25."""
    normalized = normalize_features(tf.constant([-1, 0, 3, 4, 9, math.nan, math.inf]), (0.0, 4.0))
    np.testing.assert_array_equal(normalized, [-1, -1, 0.5, 1, 1, 0, 1])
    np.testing.assert_array_equal(restore_units(np.array([0.5, 0.25, -1.5]), (0.0, 4.0)), [3, 0.5, -1.5])
    with pytest.raises(ValueError, match="lowest value below the highest"):
        normalize_features(tf.zeros(1), (1.0, 1.0))


@settings(deadline=None, max_examples=60)
@given(
    arrays(np.float32, array_shapes(min_dims=2, max_dims=3, max_side=6), elements=ANY_FLOAT32),
    st.sampled_from(["scalar", "per_feature"]),
)
def test_one_example_moves_the_sums_by_at_most_the_sensitivity(x, kind):
    """The last example is added; whatever it holds, the vectors differ by no more."""
    normalized = normalize_features(tf.constant(x), (-3.0, 1.0))
    difference = compute_moment_sums(normalized, kind) - compute_moment_sums(normalized[:-1], kind)
    columns = 1 if kind == "scalar" else math.prod(x.shape[1:])
    assert np.linalg.norm(difference) <= compute_sensitivity(columns) + 1e-9


@pytest.mark.parametrize(("kind", "columns", "expected"), [("scalar", 1, 2.0), ("per_feature", 5, 4.0)])
def test_an_example_of_ones_reaches_the_sensitivity(kind, columns, expected):
    """sqrt(1 + 3) = 2, and with 5 features sqrt(1 + 15) = 4."""
    assert compute_sensitivity(columns) == expected
    np.testing.assert_allclose(np.linalg.norm(compute_moment_sums(tf.ones((1, 5)), kind)), expected)


@pytest.mark.parametrize("accountant", [PLD, RDP])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0, 100.0])
def test_spent_epsilon_is_what_was_asked_and_the_mechanism_is_private(epsilon, delta, accountant):
    noise_multiplier = calibrate_noise_multiplier(epsilon, delta, accountant)
    assert 0.99 * epsilon <= spent_epsilon(noise_multiplier, delta, accountant) <= epsilon
    assert compute_exact_delta(noise_multiplier, epsilon) <= delta * (1 + 1e-9)
    if (epsilon, delta) == (1.0, 1e-5):  # whose exact multiplier is 3.7306: by divergences at most a tenth more
        most = 1.1 if accountant == RDP else 1.00002
        assert 3.7306 <= noise_multiplier <= most * 3.7306


def test_noise_has_the_given_deviation_and_follows_the_seed():
    """With 200,000 draws, the sample's deviation lies within 1 % (six standard errors) of 2.5."""
    zeros = tf.zeros(200_000, tf.float64)
    noise = add_noise(zeros, 2.5, tf.constant([3, 4])).numpy()
    assert abs(noise.std() - 2.5) < 0.025 and abs(noise.mean()) < 0.04
    np.testing.assert_array_equal(noise, add_noise(zeros, 2.5, tf.constant([3, 4])))
    assert not np.any(noise == add_noise(zeros, 2.5, tf.constant([3, 5])).numpy())


@pytest.mark.parametrize(("kind", "num_columns"), [("scalar", 1), ("per_feature", 28 * 28)])
@pytest.mark.parametrize("epsilon", [1, 2, 4, 8])
def test_the_experiments_say_how_noisy_the_sizes_are(kind, num_columns, epsilon):
    """The count is an entry of the moment vector, so its noise is that of every entry."""
    experiment = get_experiment(f"fedsikd/fedsikd_mnist_alpha0.1_{kind}_epsilon{epsilon}")
    said = re.search(r"deviation of ([\d.]+)\s", " ".join(setting.note for setting in experiment.settings))
    assert experiment.flags["privacy_accountant"] == RDP
    deviation = calibrate_noise_multiplier(epsilon, 1e-5, RDP) * compute_sensitivity(num_columns)
    assert said[1] == (f"{deviation:.1f}" if deviation < 10 else f"{deviation:.0f}")
