"""Clipping, noise, the adaptive clip norm and what all costs: by hand, by measurement, against published numbers."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from small_formats import make_format

from models.model_spec import ModelSpec
from tff_algos.client.local_training import LocalResult
from tff_algos.rounds.aggregation import ClientUpdate, sum_on_host
from tff_algos.rounds.noise_sources import SeededNoise, SystemNoise
from tff_algos.rounds.privacy_accounting import Accounting, split_noise
from tff_algos.rounds.private_aggregation import (
    AskedPrivateAggregator,
    ClipCounts,
    PrivateAggregator,
    check_private_model,
    clip_client,
    clip_update,
    move_clip_norm,
)
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

ADAPTIVE = UpdatePrivacyConfig(epsilon=8.0, clipping="adaptive")
POISSON = Accounting(1e-5, num_clients=1000, cohort_size=100, participation="bernoulli")


def make_update(*deltas, share=1.0, is_finite=True):
    arrays = tuple(tf.constant(delta, tf.float32) for delta in deltas)
    squared = tf.add_n([tf.reduce_sum(tf.square(array)) for array in arrays])
    result = LocalResult(arrays, squared, tf.constant(1.0), tf.constant(2.0), tf.constant(is_finite))
    return ClientUpdate(result, tf.constant(0), tf.constant(share))


def measure_norm(deltas):
    return float(np.sqrt(sum(np.square(np.asarray(delta, np.float64)).sum() for delta in deltas)))


def make_aggregator(multiplier=1.0, clip_norm=2.0, **settings):
    config = UpdatePrivacyConfig(epsilon=8.0, clip_norm=clip_norm, **settings)
    return PrivateAggregator(config, POISSON, SeededNoise(3), multiplier)


def settle(config, accounting=POISSON):
    """(the aggregator of a new run, its first state)."""
    aggregator = PrivateAggregator(config, accounting, SeededNoise(0), accounting.settle_noise(config))
    return aggregator, aggregator.initialize(1)


def count(counted, whole):
    return ClipCounts(np.float32(counted), np.float32(whole), np.float32(counted - whole))


def test_an_update_is_shrunk_to_the_norm_as_a_whole_or_stays_to_the_last_bit():
    """(3, 4, 12) has the norm 13, over both tensors: at S = 6.5 it is halved."""
    (first, second), squared_norm, is_whole = clip_update((tf.constant([3.0, 4.0]), tf.constant([[12.0]])), 6.5)
    np.testing.assert_allclose(first, [1.5, 2.0], rtol=2e-6)
    np.testing.assert_allclose(second, [[6.0]], rtol=2e-6)
    assert float(squared_norm) == pytest.approx(6.5**2) and not is_whole
    for update, squared in (((tf.constant([0.1, 0.7]), tf.zeros(0)), 0.5), ((tf.zeros(3),), 0)):
        clipped, squared_norm, is_whole = clip_update(update, 1.0)
        np.testing.assert_array_equal(clipped[0], update[0])
        assert is_whole and float(squared_norm) == pytest.approx(squared)


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
    clipped, _, _ = clip_update((tf.constant((10.0**scale * entries).astype(np.float32)),), clip_norm)
    assert measure_norm(clipped) <= np.float32(clip_norm)


def test_updates_of_one_client_are_together_within_the_norm():
    """Four updates at a share of 1/2 each: the sum of four squared norms is at most S^2."""
    clipped = [clip_client(make_update([100.0 * n, 1.0], share=0.5), 2.0) for n in range(1, 5)]
    total = sum(measure_norm(update.result.weights_delta) ** 2 for update, _ in clipped)
    assert total <= 2.0**2 and total == pytest.approx(4.0, rel=1e-4)
    assert np.sum([counts for _, counts in clipped], axis=0).tolist() == [1, 0, 4]


@pytest.mark.parametrize(
    ("update", "clip_norm", "weight", "counts", "norm"),
    [
        (make_update([3.0, 4.0]), 5.0, 1, (1, 1, 0), 5),
        (make_update([3.0, 4.0]), 4.0, 1, (1, 0, 1), 4),
        (make_update([0.0], is_finite=False), 1.0, 0, (0, 0, 0), 0),
        (make_update([0.0], share=0.0), 1.0, 0, (0, 0, 0), 0),  # an empty slot
    ],
)
def test_a_client_weighs_one_and_counts_one_if_its_update_is_there(update, clip_norm, weight, counts, norm):
    clipped, found = clip_client(update, clip_norm)
    assert float(clipped.weight) == weight and tuple(map(float, found)) == counts
    assert measure_norm(clipped.result.weights_delta) == pytest.approx(norm, rel=1e-5)


def test_the_noise_has_the_deviation_z_times_s():
    """100,000 entries: the sample variance lies within 2 % of 9, 4.5 standard errors, the mean within 4.7."""
    aggregator = make_aggregator(multiplier=1.5, clip_norm=2.0)
    sums = (np.full((100, 600), 7.0, np.float32), np.full(40_000, 7.0, np.float32))
    noisy, _ = aggregator.add_noise(sums, count(1, 1), aggregator.initialize(1), 1)
    noise = np.concatenate([array.ravel() for array in noisy]).astype(np.float64) - 7.0
    assert noise.var() == pytest.approx(9.0, rel=0.02) and abs(noise.mean()) < 0.045
    assert all(array.dtype == np.float32 for array in noisy)
    # Normal: 68.27 % within a deviation, 0.27 % beyond three.
    assert np.mean(np.abs(noise) < 3.0) == pytest.approx(0.6827, abs=0.007)
    assert np.mean(np.abs(noise) > 9.0) == pytest.approx(0.0027, abs=0.0008)


def test_noise_is_drawn_anew_for_each_round_release_and_seed_and_repeats():
    aggregator = make_aggregator()
    # Two norms, since a second release has one of its own.
    state = aggregator.initialize(1)._replace(clip_norms=np.full(2, 2.0, np.float32))

    def draw(round_num=1, **changes):
        mechanism = dataclasses.replace(aggregator, **changes)
        return mechanism.add_noise((np.zeros(50, np.float32),), count(1, 1), state, round_num)[0][0]

    draws = [draw(), draw(2), draw(release=1), draw(noise=SeededNoise(4))]
    assert np.abs(np.corrcoef(draws) - np.eye(4)).max() < 0.5
    np.testing.assert_array_equal(draws[0], draw())


def test_without_noise_the_sum_stays_to_the_last_bit():
    aggregator = make_aggregator(multiplier=0.0)
    sums = (np.array([0.1, 1e-9], np.float32),)
    noisy, _ = aggregator.add_noise(sums, count(1, 1), aggregator.initialize(1), 1)
    np.testing.assert_array_equal(noisy[0], sums[0])


def test_the_clip_norm_moves_as_in_andrew():
    """S exp(-0.2 (b - 0.5)): at b = 1 it falls by exp(-0.1), at 0 it rises by exp(0.1), at the quantile it stays."""
    for share, factor in ((1.0, np.exp(-0.1)), (0.0, np.exp(0.1)), (0.5, 1.0)):
        assert move_clip_norm(2.0, share, ADAPTIVE) == pytest.approx(2.0 * factor)
    assert move_clip_norm(2.0, -1e9, ADAPTIVE) == np.finfo(np.float32).max
    assert 0 < move_clip_norm(2.0, 1e9, ADAPTIVE) < 1e-37


def test_the_noisy_count_is_over_the_expected_cohort():
    """60 of 80 left whole, of 100 expected: b = 1/2 + (60 - 40) / 100 = 0.7; without noise, S falls by exp(-0.04)."""
    aggregator = make_aggregator(multiplier=0.0, clipping="adaptive")
    _, state = aggregator.add_noise((np.zeros(1),), count(80, 60), aggregator.initialize(1), 1)
    assert state.clip_norms[0] == pytest.approx(2.0 * np.exp(-0.2 * 0.2))


def test_with_adaptive_clipping_the_updates_get_more_noise_and_the_count_its_own():
    """sigma_b = 0.01 * 100 = 1: the updates' multiplier is 2 / sqrt(3) at z = 1. b has the deviation 1 / 100."""
    aggregator = make_aggregator(multiplier=1.0, clipping="adaptive", clip_count_noise=0.01)
    state, moves = aggregator.initialize(1), []
    for round_num in range(1, 401):
        (noisy,), moved = aggregator.add_noise((np.zeros(100),), count(100, 50), state, round_num)
        moves.append((np.log(moved.clip_norms[0] / 2.0) / -0.2, noisy))
    shares, noises = zip(*moves, strict=True)
    # 400 draws: a standard error of the deviation is 3.5 %; 40,000 draws: 0.35 %.
    assert np.std(shares) == pytest.approx(0.01, rel=0.15)
    assert np.std(np.stack(noises)) == pytest.approx(2.0 * split_noise(1.0, 1.0), rel=0.02)


def test_the_budget_is_spent_when_a_further_round_would_exceed_it():
    limit = POISSON.compute_epsilon(1.0, 5)
    aggregator, state = settle(UpdatePrivacyConfig(epsilon=limit, noise_multiplier=1.0))
    assert [aggregator.is_spent(state, rounds) for rounds in (0, 4, 5, 6)] == [False, False, True, True]


def test_a_calibrated_run_lasts_for_its_rounds_and_no_longer():
    aggregator, state = settle(UpdatePrivacyConfig(epsilon=2.0, rounds=30))
    assert not aggregator.is_spent(state, 29) and aggregator.is_spent(state, 30)
    # More rounds on resume find the noise of the state, not one of their own.
    resumed, _ = settle(UpdatePrivacyConfig(epsilon=2.0, rounds=60))
    assert resumed.noise_multiplier > aggregator.noise_multiplier and resumed.is_spent(state, 30)


def test_a_model_with_weights_that_are_not_trained_is_refused(linear_spec):
    def build():
        layers = [tf.keras.Input((4,)), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(3)]
        return tf.keras.Sequential(layers)

    check_private_model(linear_spec)
    with pytest.raises(ConfigError, match="quantize=qat: expected none with private updates"):
        check_private_model(dataclasses.replace(linear_spec, quantization=object()))
    with pytest.raises(ConfigError, match="model=normalised: expected a model whose weights are all trained"):
        check_private_model(ModelSpec("normalised", build, make_format((4,))))


SEEN = dataclasses.replace(POISSON, is_seen=True)


class Fixed:
    """A source whose numbers are all the same."""

    is_seeded, description = False, "given"

    def __init__(self, number):
        self.number = number

    def open(self, release, round_num):
        return self

    def standard_normal(self, size=()):
        return np.full(size, self.number)

    add = SystemNoise.add


def aggregate_asked(updates, number, multiplier=1.5, clip_norm=2.0, accounting=SEEN, **settings):
    """What `AskedPrivateAggregator` makes of updates as clients send them, with noise of this number of deviations."""
    config = UpdatePrivacyConfig(epsilon=8.0, clip_norm=clip_norm, is_asked=True, **settings)
    aggregator = AskedPrivateAggregator(config, accounting, Fixed(number), multiplier)
    state = aggregator.initialize(1)
    encoded = [aggregator.encode(update, (tf.constant(clip_norm),)) for update in updates]
    arrays = [tf.nest.map_structure(np.asarray, update) for update, _ in encoded]
    counts = ClipCounts(*np.sum([counts for _, counts in encoded], axis=0, dtype=np.float32))
    totals = sum_on_host(arrays, [(2,)], 1)
    return aggregator.aggregate(arrays, totals, counts, np.array([len(updates)]), state, 1)


def test_a_sum_of_what_was_sent_is_clipped_here_and_gets_the_noise():
    """(3, 4) is clipped from 5 to 2: (1.2, 1.6); (1, 0) stays; noise 0.5 z S = 1.5 on each entry of the sum."""
    found = aggregate_asked([make_update([3.0, 4.0]), make_update([1.0, 0.0])], 0.5)
    np.testing.assert_allclose(found.update[0], [[3.7, 3.1]], rtol=3e-6)
    assert found.update[0].dtype == np.float32 and found.divisor == 100 and found.has_update.tolist() == [True]
    assert found.metrics["epsilon_spent"] == SEEN.compute_epsilon(1.5, 1) and found.metrics["num_clipped"] == 1


def test_without_noise_it_is_the_mean_of_clipped_updates_over_the_expected_cohort():
    updates = [make_update([3.0, 4.0]), make_update([0.0, 0.5]), make_update([-9.0, 0.0])]
    found = aggregate_asked(updates, 0.0, accounting=dataclasses.replace(SEEN, cohort_size=4))
    np.testing.assert_allclose(found.update[0] / found.divisor, [[(1.2 - 2) / 4, (1.6 + 0.5) / 4]], rtol=3e-6)


def test_what_was_rejected_adds_zeros_and_counts_for_nothing():
    bad = make_update([np.nan, np.inf], is_finite=False)
    with_it, without = (
        aggregate_asked([make_update([1.0, 0.5]), *more], 0.25, clipping="adaptive", clip_count_noise=0.1)
        for more in ([bad], [])
    )
    np.testing.assert_array_equal(with_it.update[0], without.update[0])
    np.testing.assert_array_equal(with_it.state.clip_norms, without.state.clip_norms)


def test_a_round_of_nobody_is_noise_alone():
    config = UpdatePrivacyConfig(epsilon=8.0, clip_norm=2.0, is_asked=True)
    aggregator = AskedPrivateAggregator(config, SEEN, Fixed(-1.0), 1.5)
    zeros, no = (np.zeros((1, 2), np.float32),), np.zeros(1, np.float32)
    found = aggregator.finish(zeros, no, count(0, 0), np.zeros(1, int), aggregator.initialize(1), 1)
    assert found.update[0].tolist() == [[-3.0, -3.0]] and found.has_update.tolist() == [True]


def test_the_clip_norm_moves_by_the_systems_noise():
    """3 counted, 1 whole: b = 1/2 + (1 - 1.5 + 0.5 sigma_b) / 10, with sigma_b = 0.2 * 10 = 2: 0.55."""
    updates = [make_update([3.0, 4.0]), make_update([0.5, 0.0]), make_update([9.0, 0.0])]
    accounting = dataclasses.replace(SEEN, cohort_size=10)
    found = aggregate_asked(updates, 0.5, accounting=accounting, clipping="adaptive", clip_count_noise=0.2)
    assert found.state.clip_norms[0] == pytest.approx(2.0 * np.exp(-0.2 * 0.05))
    left = split_noise(1.5, 2.0)
    np.testing.assert_allclose(found.update[0], [[1.2 + 0.5 + 2 + left, 1.6 + left]], rtol=3e-6)


@settings(max_examples=30)
@given(scale=st.floats(-3, 12), clip_norm=st.floats(2.0**-20, 2.0**20, width=32), seed=st.integers(0, 2**20))
def test_no_sum_changes_by_more_than_the_clip_norm(scale, clip_norm, seed):
    """To the last digit: sums are whole numbers, and cutting makes no norm larger."""
    deltas = (10.0**scale * np.random.default_rng(seed).standard_normal(2)).astype(np.float32)
    one, none = (aggregate_asked([make_update(each)], 0.0, clip_norm=clip_norm) for each in (deltas, np.zeros(2)))
    assert measure_norm([one.update[0].astype(np.float64) - none.update[0]]) <= np.float32(clip_norm) * (1 + 1e-7)
