"""Uniform quantization by hand, its bounds, and the bytes that it saves."""

import types

import hypothesis
import hypothesis.extra.numpy
import numpy as np
import pytest
import tensorflow as tf

from tff_algos.rounds.transport import Transport, build_transport, find_compressed, quantize_uniform
from tff_algos.seeds import derive_seed
from tff_algos.settings.aggregation import CompressionConfig
from tff_algos.settings.config_fields import ConfigError

SEED = derive_seed(3, "test")
TENSORS = hypothesis.extra.numpy.arrays(
    np.float32,
    hypothesis.extra.numpy.array_shapes(max_dims=2, max_side=6),
    elements=hypothesis.strategies.floats(-1e3, 1e3, width=32, allow_subnormal=False),
)


def test_two_bits_by_hand():
    """From -1 to 2 in steps of 1: -1, 0, 1, 2; ties go to the even level, 0.5 to level 2 (the value 1)."""
    values = tf.constant([-1.0, -0.6, -0.4, 0.5, 1.4, 2.0])
    np.testing.assert_allclose(quantize_uniform(values, 2), [-1, -1, 0, 1, 1, 2], atol=1e-6)


def test_stacked_models_have_ranges_of_their_own():
    """The first model's levels are 0, 1, 2, 3; the second's 0, 10, 20, 30."""
    stacked = tf.constant([[0.0, 1.4, 3.0], [0.0, 14.0, 30.0]])
    np.testing.assert_allclose(quantize_uniform(stacked, 2, num_batch_axes=1), [[0, 1, 3], [0, 10, 30]], atol=1e-5)


@hypothesis.given(values=TENSORS, bits=hypothesis.strategies.integers(2, 16))
@hypothesis.settings(deadline=None, max_examples=60)
def test_no_value_moves_by_more_than_half_a_step_and_levels_stay(values, bits):
    spread = float(values.max() - values.min())
    slack = 1e-5 * max(1.0, np.abs(values).max())
    once = quantize_uniform(tf.constant(values), bits).numpy()
    assert np.abs(once - values).max() <= spread / (2**bits - 1) / 2 + slack
    assert len(np.unique(once)) <= 2**bits
    np.testing.assert_allclose(quantize_uniform(tf.constant(once), bits), once, atol=slack)
    stochastic = quantize_uniform(tf.constant(values), bits, SEED).numpy()
    assert np.abs(stochastic - values).max() <= spread / (2**bits - 1) + slack
    assert max(abs(once.min() - values.min()), abs(once.max() - values.max())) <= slack


def test_equal_values_and_scalars_stay():
    for values in (np.full((2, 3), 0.3, np.float32), np.float32(-7.5)):
        np.testing.assert_array_equal(quantize_uniform(tf.constant(values), 4), values)
        np.testing.assert_array_equal(quantize_uniform(tf.constant(values), 4, SEED), values)


def test_stochastic_rounding_is_right_on_average_and_repeats():
    """0.3 between the levels 0 and 1 of [0, 3]: the mean of 4,000 draws lies within 4 deviations (0.46 / 63)."""
    values = tf.concat([[0.0, 3.0], tf.fill([4000], 0.3)], 0)
    drawn = quantize_uniform(values, 2, SEED).numpy()
    assert set(np.round(drawn[2:], 5)) == {0.0, 1.0}
    assert abs(drawn[2:].mean() - 0.3) < 0.03
    np.testing.assert_array_equal(drawn, quantize_uniform(values, 2, SEED))
    assert (drawn != quantize_uniform(values, 2, derive_seed(4, "test")).numpy()).any()


def test_tensors_of_a_model_are_drawn_apart():
    transport = Transport(CompressionConfig(bits=2, rounding="stochastic"), (True,) * 2, 0, 0, (True,) * 2)
    first, second = transport.receive([tf.linspace(0.0, 1.0, 50)] * 2, SEED)
    assert (first.numpy() != second.numpy()).any()


def build_normalized():
    layers = [tf.keras.layers.Dense(3, use_bias=False), tf.keras.layers.BatchNormalization()]
    return tf.keras.Sequential([tf.keras.Input((4,)), *layers])


SPEC = types.SimpleNamespace(build=build_normalized)  # kernel, gamma, beta, mean and variance


def test_only_trained_weights_are_rounded():
    assert find_compressed(SPEC) == (True, True, True, False, False)
    weights = tuple(np.linspace(0, 1, 14).astype(np.float32)[np.newaxis] for _ in range(5))
    received = build_transport(SPEC, weights, 3, CompressionConfig(bits=3)).send(weights, 1)
    assert [np.array_equal(a, b) for a, b in zip(received, weights, strict=True)] == [False] * 3 + [True] * 2
    assert build_transport(SPEC, weights, 3).send(weights, 1) is weights


@pytest.mark.parametrize(("bits", "num_bytes"), [(4, 5 + 3 * 8 + 2 * 12), (32, 40 + 2 * 12)])
def test_bytes_at_the_bits_with_the_ranges(bits, num_bytes):
    """10 weights at 4 bits are 5 bytes, and 8 for the range of each tensor; statistics stay 12 bytes."""
    sizes = 10, 0, 0, 3, 3
    transport = build_transport(SPEC, tuple(np.zeros(size, np.float32) for size in sizes), 0, CompressionConfig(bits))
    assert transport.model_bytes == num_bytes and transport.config.is_active == (bits < 32)


@pytest.mark.parametrize("bits", [17, 31, 1, 33])
def test_bits_out_of_range_are_refused(bits):
    with pytest.raises(ConfigError, match=f"bits={bits}: expected"):
        CompressionConfig(bits=bits)
