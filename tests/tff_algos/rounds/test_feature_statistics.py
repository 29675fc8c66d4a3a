"""Means and deviations as federated sums, against sums worked out by hand and NumPy in float64."""

import numpy as np
import pytest
from small_formats import change_format

from datasets.example_format import Padding, Preprocessing
from tff_algos.rounds import feature_statistics
from tff_algos.rounds.feature_statistics import (
    choose_clients,
    compute_feature_statistics,
    count_padded_steps,
    divide_moments,
)


def write_train_parts(data, parts):
    for client, x in zip(data.clients, parts, strict=True):
        x.astype(np.float32).tofile(f"{client.path}.train.x")


def test_moments_by_hand():
    # 1, 3 and 8 shifted by 2: -1, 1, 6; their sum is 6, their squares' 38; mean 4, variance 38 / 3 - 2 ** 2 = 26 / 3
    means, deviations = divide_moments(3, np.array([6.0]), np.array([38.0]), np.array([2.0]))
    assert means.tolist() == [4.0] and deviations[0] == pytest.approx((26 / 3) ** 0.5, rel=1e-15)


def test_a_constant_and_its_rounding_errors_have_deviation_1():
    origin = np.array([0.0, 1e6, 1e6])
    means, deviations = divide_moments(4, np.zeros(3), np.array([0.0, 1e-26, 4.0]), origin)
    assert means.tolist() == origin.tolist() and deviations.tolist() == [1.0, 1.0, 1.0]
    assert divide_moments(4, np.zeros(1), np.array([16e-12]), np.array([1e6]))[1] == pytest.approx([2e-6])


def test_clients_of_unlike_sizes_count_by_their_examples(tff_runtime, make_federation, linear_spec):
    """Two clients: the sums are over 1 + 3 examples, as if one had all."""
    data = make_federation([1, 3])
    write_train_parts(data, [np.array([[2, 0, 5, 1]]), np.array([[4, 0, 5, 1], [4, 0, 5, 1], [6, 0, 5, 3]])])
    found = compute_feature_statistics(linear_spec, data, seed=0)
    assert found.means.tolist() == [4.0, 0.0, 5.0, 1.5] and found.num_clients == 2
    np.testing.assert_allclose(found.deviations, [2**0.5, 1.0, 1.0, 0.75**0.5], rtol=1e-15)


def test_a_large_mean_beside_a_small_deviation(tff_runtime, make_federation, linear_spec):
    """At 1e6 with a deviation of 1, at 1e-6 with one of 1e-9, at -3e8 with 100, and plain."""
    rng, centres, sizes = np.random.default_rng(0), [1e6, 1e-6, -3e8, 0.0], [1.0, 1e-9, 100.0, 1.0]
    parts = [(rng.normal(size=(n, 4)) * sizes + centres).astype(np.float32) for n in (40, 1, 200)]
    data = make_federation([40, 1, 200])
    write_train_parts(data, parts)
    pooled = np.concatenate(parts).astype(np.float64)
    found = compute_feature_statistics(linear_spec, data, seed=0)
    np.testing.assert_allclose(found.means, pooled.mean(0), rtol=1e-14)
    np.testing.assert_allclose(found.deviations, pooled.std(0), rtol=1e-9)


def test_they_are_of_what_the_preprocessing_gives(tff_runtime, make_federation, linear_spec):
    data = make_federation([2])
    write_train_parts(data, [np.array([[1, 2, 3, 4], [3, 2, 3, 4]])])
    spec = change_format(linear_spec, preprocessing=Preprocessing(0.5, 1.0))
    found = compute_feature_statistics(spec, data, seed=0)
    assert found.means.tolist() == [2.0, 2.0, 2.5, 3.0] and found.deviations.tolist() == [0.5, 1.0, 1.0, 1.0]


def test_of_many_clients_some_are_drawn_by_the_seed(make_federation, monkeypatch):
    monkeypatch.setattr(feature_statistics, "MOST_CLIENTS", 3)
    data = make_federation([2] * 9)
    drawn = [tuple(client.index for client in choose_clients(data, seed)) for seed in range(4)]
    assert all(len(set(each)) == 3 and list(each) == sorted(each) for each in drawn) and len(set(drawn)) > 1
    assert [client.index for client in choose_clients(make_federation([2] * 3), 0)] == [0, 1, 2]


def test_padding_does_not_count(tff_runtime, make_federation, linear_spec):
    """Without one step of zeros: 2, 6 and 0 in channel 0, which 0, 1 and 1 are beside in channel 1."""
    data = make_federation([1, 1])
    write_train_parts(data, [np.array([[2, 1, 0, 1]]), np.array([[6, 0, 0, 0]])])
    spec = change_format(linear_spec, input_shape=(2, 2))
    found = compute_feature_statistics(spec, data, 0, Padding(0.0, True))
    np.testing.assert_allclose(found.means, [8 / 3, 2 / 3], rtol=1e-15)
    np.testing.assert_allclose(found.deviations, [(56 / 9) ** 0.5, (2 / 9) ** 0.5], rtol=1e-15)
    assert found.no_switches.tolist() == [2, 0]
    found = compute_feature_statistics(spec, data, 0)
    assert found.means.tolist() == [2.0, 0.5] and found.no_switches.tolist() == [2, 0]


def test_steps_of_padding_are_counted_at_the_ends_and_within(tff_runtime, make_federation, linear_spec):
    data = make_federation([2, 1])
    write_train_parts(data, [np.array([[0, 3, 0, 4], [0, 0, 0, 0]]), np.array([[5, 0, 0, 0]])])
    spec = change_format(linear_spec, input_shape=(4, 1))
    assert count_padded_steps(spec, data, 0, (0.0, -1.0)).tolist() == [[1 + 4 + 3, 1, 12], [0, 0, 12]]
    found = compute_feature_statistics(spec, data, 0, Padding(0.0, False))
    # Of each step those that are between others: 5; 3; 0; 4.
    assert found.means.tolist() == [5.0, 3.0, 0.0, 4.0] and found.deviations.tolist() == [1.0] * 4
