"""Clipping, noise and the adaptive clip norm, by hand and by measurement."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from small_formats import make_format

from tff_algos.client.local_training import LocalResult
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.private_aggregation import (
    Accounting,
    ClipCounts,
    PrivateSum,
    build_private_sum,
    check_private_model,
    clip_client,
    clip_update,
    move_clip_norm,
    split_noise,
)
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

ADAPTIVE = UpdatePrivacyConfig(epsilon=8.0, clipping="adaptive")


def make_update(*deltas, share=1.0, is_finite=True):
    arrays = tuple(tf.constant(delta, tf.float32) for delta in deltas)
    squared = tf.add_n([tf.reduce_sum(tf.square(array)) for array in arrays])
    result = LocalResult(arrays, squared, tf.constant(1.0), tf.constant(2.0), tf.constant(is_finite))
    return ClientUpdate(result, tf.constant(0), tf.constant(share))


def measure_norm(deltas):
    return float(np.sqrt(sum(np.square(np.asarray(delta, np.float64)).sum() for delta in deltas)))


def make_sum(multiplier=1.0, clip_norm=2.0, clipping="fixed", cohort_size=100, **settings):
    config = UpdatePrivacyConfig(epsilon=8.0, clip_norm=clip_norm, clipping=clipping, **settings)
    return PrivateSum(config, Accounting(1e-5, 1000, cohort_size, "bernoulli"), 3, multiplier)


def count(counted, whole):
    return ClipCounts(np.float32(counted), np.float32(whole), np.float32(counted - whole))


def test_an_update_is_shrunk_to_the_norm_as_a_whole():
    """(3, 4, 12) has the norm 13, over both tensors: at S = 6.5 it is halved."""
    (first, second), squared_norm, is_whole = clip_update((tf.constant([3.0, 4.0]), tf.constant([[12.0]])), 6.5)
    np.testing.assert_allclose(first, [1.5, 2.0], rtol=2e-6)
    np.testing.assert_allclose(second, [[6.0]], rtol=2e-6)
    assert float(squared_norm) == pytest.approx(6.5**2) and not is_whole


def test_an_update_within_the_norm_stays_to_the_last_bit():
    given_update = (tf.constant([0.1, 0.7]), tf.zeros(0))
    kept, squared_norm, is_whole = clip_update(given_update, 1.0)
    np.testing.assert_array_equal(kept[0], given_update[0])
    assert is_whole and float(squared_norm) == pytest.approx(0.5)
    zeros, _, is_whole = clip_update((tf.zeros(3),), 1.0)
    assert is_whole and not zeros[0].numpy().any()


@settings(max_examples=60)
@given(
    scale=st.floats(-30, 18),
    clip_norm=st.floats(2.0**-20, 2.0**20, width=32),
    size=st.integers(1, 20000),
    seed=st.integers(0, 2**20),
)
def test_no_update_passes_the_norm_however_large_or_many(scale, clip_norm, size, seed):
    """In float64, of entries that are equal (where float32 sums err in one direction) or not."""
    generator = np.random.default_rng(seed)
    entries = np.full(size, 1.1) if seed % 2 else generator.standard_normal(size)
    kept, _, _ = clip_update((tf.constant((10.0**scale * entries).astype(np.float32)),), clip_norm)
    assert measure_norm(kept) <= np.float32(clip_norm)


def test_updates_of_one_client_are_together_within_the_norm():
    """Four updates at a share of 1/2 each: the sum of four squared norms is at most S^2."""
    clipped = [clip_client(make_update([100.0 * n, 1.0], share=0.5), 2.0) for n in range(1, 5)]
    total = sum(measure_norm(update.result.weights_delta) ** 2 for update, _ in clipped)
    assert total <= 2.0**2 and total == pytest.approx(4.0, rel=1e-4)
    assert sum(float(counts.num_counted) for _, counts in clipped) == 1
    assert sum(float(counts.num_clipped) for _, counts in clipped) == 4


def test_a_client_weighs_one_and_counts_one_whether_it_was_clipped():
    update, counts = clip_client(make_update([3.0, 4.0]), 5.0)
    assert float(update.weight) == 1 and tuple(map(float, counts)) == (1, 1, 0)
    update, counts = clip_client(make_update([3.0, 4.0]), 4.0)
    assert float(update.weight) == 1 and tuple(map(float, counts)) == (1, 0, 1)


@pytest.mark.parametrize("update", [make_update([0.0], is_finite=False), make_update([0.0], share=0.0)])
def test_a_rejected_update_and_an_empty_place_count_nothing(update):
    clipped, counts = clip_client(update, 1.0)
    assert float(clipped.weight) == 0 and tuple(map(float, counts)) == (0, 0, 0)
    assert measure_norm(clipped.result.weights_delta) == 0


def test_the_noise_has_the_deviation_z_times_s():
    """100,000 entries: the sample variance lies within 2 % of 9, 4.5 standard errors, the mean within 4.7."""
    private_sum = make_sum(multiplier=1.5, clip_norm=2.0)
    sums = (np.full((100, 600), 7.0, np.float32), np.full(40_000, 7.0, np.float32))
    noisy, _ = private_sum.add_noise(sums, count(1, 1), private_sum.initialize(), 1)
    noise = np.concatenate([array.ravel() for array in noisy]).astype(np.float64) - 7.0
    assert noise.var() == pytest.approx(9.0, rel=0.02) and abs(noise.mean()) < 0.045
    assert all(array.dtype == np.float32 for array in noisy)
    # Normal: 68.27 % within a deviation, 0.27 % beyond three.
    assert np.mean(np.abs(noise) < 3.0) == pytest.approx(0.6827, abs=0.007)
    assert np.mean(np.abs(noise) > 9.0) == pytest.approx(0.0027, abs=0.0008)


def test_noise_is_drawn_anew_for_each_round_release_and_seed_and_repeats():
    private_sum = make_sum()
    other_seed = PrivateSum(private_sum.config, private_sum.accounting, 4, 1.0)
    state = private_sum.initialize()._replace(clip_norms=np.full(2, 2.0, np.float32))

    def draw(mechanism, round_num, release):
        (array,), _ = mechanism.add_noise((np.zeros(50, np.float32),), count(1, 1), state, round_num, release)
        return array

    draws = [draw(private_sum, 1, 0), draw(private_sum, 2, 0), draw(private_sum, 1, 1), draw(other_seed, 1, 0)]
    for i, first in enumerate(draws):
        for second in draws[:i]:
            assert abs(np.corrcoef(first, second)[0, 1]) < 0.5
    np.testing.assert_array_equal(draws[0], draw(private_sum, 1, 0))


def test_without_noise_the_sum_stays_to_the_last_bit():
    private_sum = make_sum(multiplier=0.0)
    sums = (np.array([0.1, 1e-9], np.float32),)
    noisy, _ = private_sum.add_noise(sums, count(1, 1), private_sum.initialize(), 1)
    np.testing.assert_array_equal(noisy[0], sums[0])


def test_the_clip_norm_moves_as_in_andrew():
    """S exp(-0.2 (b - 0.5)): at b = 1 it falls by exp(-0.1), at 0 it rises by exp(0.1), at the quantile it stays."""
    for share, factor in ((1.0, np.exp(-0.1)), (0.0, np.exp(0.1)), (0.5, 1.0)):
        assert move_clip_norm(2.0, share, ADAPTIVE) == pytest.approx(2.0 * factor)
    assert move_clip_norm(2.0, -1e9, ADAPTIVE) == np.finfo(np.float32).max
    assert 0 < move_clip_norm(2.0, 1e9, ADAPTIVE) < 1e-37


def test_the_noisy_count_is_over_the_expected_cohort():
    """60 of 80 left whole, of 100 expected: b = 1/2 + (60 - 40) / 100 = 0.7; without noise, S falls by exp(-0.04)."""
    private_sum = make_sum(multiplier=0.0, clipping="adaptive", cohort_size=100)
    _, state = private_sum.add_noise((np.zeros(1),), count(80, 60), private_sum.initialize(), 1)
    assert state.clip_norms[0] == pytest.approx(2.0 * np.exp(-0.2 * 0.2))


def test_with_adaptive_clipping_the_updates_get_more_noise_and_the_count_its_own():
    """sigma_b = 0.01 * 100 = 1: the updates' multiplier is 2 / sqrt(3) at z = 1. b has the deviation 1 / 100."""
    private_sum = make_sum(multiplier=1.0, clipping="adaptive", clip_count_noise=0.01)
    state, moves = private_sum.initialize(), []
    for round_num in range(1, 401):
        (noisy,), moved = private_sum.add_noise((np.zeros(100),), count(100, 50), state, round_num)
        moves.append((np.log(moved.clip_norms[0] / 2.0) / -0.2, noisy))
    shares, noises = zip(*moves, strict=True)
    # 400 draws: a standard error of the deviation is 3.5 %; 40,000 draws: 0.35 %.
    assert np.std(shares) == pytest.approx(0.01, rel=0.15)
    assert np.std(np.stack(noises)) == pytest.approx(2.0 * split_noise(1.0, 1.0), rel=0.02)


def test_the_budget_is_spent_when_a_further_round_would_exceed_it():
    accounting = Accounting(1e-5, 1000, 100, "bernoulli")
    limit = accounting.compute_epsilon(1.0, 5)
    private_sum = build_private_sum(UpdatePrivacyConfig(epsilon=limit, noise_multiplier=1.0), accounting, 0)
    state = private_sum.initialize()
    assert [private_sum.is_spent(state, rounds) for rounds in (0, 4, 5, 6)] == [False, False, True, True]


def test_a_calibrated_run_lasts_for_its_rounds_and_no_longer():
    accounting = Accounting(1e-5, 1000, 100, "bernoulli")
    private_sum = build_private_sum(UpdatePrivacyConfig(epsilon=2.0, rounds=30), accounting, 0)
    state = private_sum.initialize()
    assert not private_sum.is_spent(state, 29) and private_sum.is_spent(state, 30)
    # More rounds on resume find the noise of the state, not one of their own.
    resumed = build_private_sum(UpdatePrivacyConfig(epsilon=2.0, rounds=60), accounting, 0)
    assert resumed.noise_multiplier > private_sum.noise_multiplier and resumed.is_spent(state, 30)


def test_a_small_cohort_needs_more_noise_on_its_count():
    with pytest.raises(ConfigError, match="dp_clip_count_noise"):
        build_private_sum(ADAPTIVE, Accounting(1e-5, 20, 20, "fixed"), 0)


def test_a_model_with_weights_that_are_not_trained_is_refused(linear_spec):
    from models.model_spec import ModelSpec

    def build():
        layers = [tf.keras.Input((4,)), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(3)]
        return tf.keras.Sequential(layers)

    check_private_model(linear_spec)
    with pytest.raises(ConfigError, match="quantize=qat: expected none with private updates"):
        check_private_model(dataclasses.replace(linear_spec, quantization=object()))
    with pytest.raises(ConfigError, match="model=normalised: expected a model whose weights are all trained"):
        check_private_model(ModelSpec("normalised", build, make_format((4,))))
