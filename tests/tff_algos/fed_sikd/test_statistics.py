"""Eq. (1): statistics directly, and from sums of moments."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tff_algos.fed_sikd.statistics import (
    compute_moment_sums,
    compute_statistics,
    count_examples,
    project_to_plane,
    standardize,
    statistics_from_moments,
)

# Multiples of 1/64, so that different values differ by more than rounding errors.
NORMALIZED = st.integers(-64, 64).map(lambda step: step / 64)
KIND = st.sampled_from(["scalar", "per_feature"])


class TestComputeStatistics:
    def test_scalar_takes_all_values_as_one_sample(self):
        """Values 0, 0, 0, 4: mean 1, variance (1+1+1+9)/4 = 3, third moment (-1-1-1+27)/4 = 6, skewness 6/3^1.5."""
        x = tf.constant([[[0.0], [0.0]], [[0.0], [4.0]]])
        statistics = compute_statistics(x, "scalar").numpy()
        assert statistics.shape == (3,) and statistics.dtype == np.float64
        np.testing.assert_allclose(statistics, [1, math.sqrt(3), 6 / 3**1.5], rtol=1e-12)

    def test_per_feature_has_a_column_a_feature_and_constant_features_have_skewness_0(self):
        """The second feature is 0.1, whose mean over seven examples is not exactly 0.1 in floating point."""
        x = np.full((7, 1, 2), 0.1, np.float32)
        x[:, 0, 0] = [-1, -1, -1, 0, 1, 1, 1]
        statistics = compute_statistics(tf.constant(x), "per_feature").numpy()
        assert statistics.shape == (3, 2)
        np.testing.assert_allclose(statistics[:, 0], [0, math.sqrt(6 / 7), 0], atol=1e-15)
        np.testing.assert_array_equal(statistics[:, 1], [np.float32(0.1), 0, 0])

    @pytest.mark.parametrize("kind", ["scalar", "per_feature"])
    def test_one_example_with_one_feature_has_only_a_mean(self, kind):
        statistics = compute_statistics(tf.constant([[0.3]]), kind).numpy()
        np.testing.assert_array_equal(statistics.ravel(), [np.float32(0.3), 0, 0])

    def test_a_large_offset_costs_no_accuracy(self):
        """The float32 mean of these squares would have an error of about 6e5, the variance is 3."""
        values = np.tile(np.float32([0, 0, 0, 4]) + np.float32(2**20), 100)
        statistics = compute_statistics(tf.constant(values[:, np.newaxis]), "scalar").numpy()
        np.testing.assert_allclose(statistics, [2**20 + 1, math.sqrt(3), 6 / 3**1.5], rtol=1e-12)


class TestMomentSums:
    def test_scalar_sums_the_means_over_features(self):
        """Examples (1, -1) and (0.5, 0): mean u 0 + 0.25, mean u^2 1 + 0.125, mean u^3 0 + 0.0625."""
        moments = compute_moment_sums(tf.constant([[1.0, -1.0], [0.5, 0.0]]), "scalar").numpy()
        np.testing.assert_array_equal(moments, [2, 0.25, 1.125, 0.0625])

    def test_per_feature_shares_the_count(self):
        """Features (1, 0.5) and (-1, 0): sums 1.5, -1; of squares 1.25, 1; of cubes 1.125, -1."""
        moments = compute_moment_sums(tf.constant([[1.0, -1.0], [0.5, 0.0]]), "per_feature").numpy()
        np.testing.assert_array_equal(moments, [2, 1.5, -1, 1.25, 1, 1.125, -1])

    @pytest.mark.parametrize(
        ("moments", "expected"),
        [
            # u = -1, -1, -1, 1: sums -2, 4, -2; mean -1/2, variance 1 - 1/4, third -1/2 + 3/2 - 1/4 = 3/4.
            ([4, -2, 4, -2], [-0.5, math.sqrt(0.75), 0.75 / 0.75**1.5]),
            # Mean 0, variance 1/4, third moment 1: at most 2 * 1/4 is possible, and 0.5 / 0.5^3 = 4.
            ([1, 0, 0.25, 1], [0, 0.5, 4]),
            # Count -3 counts as 1: mean 0.5, raw second moment 0.1 < 0.5^2, so no variance and no skewness.
            ([-3, 0.5, 0.1, 0.9], [0.5, 0, 0]),
        ],
    )
    def test_statistics_of_hand_worked_moments(self, moments, expected):
        np.testing.assert_allclose(statistics_from_moments(np.array(moments), "scalar"), expected, rtol=1e-15)

    @settings(deadline=None, max_examples=60)
    @given(arrays(np.float32, array_shapes(min_dims=2, max_dims=3, max_side=6), elements=NORMALIZED), KIND)
    def test_both_ways_agree_without_noise(self, x, kind):
        from_moments = statistics_from_moments(compute_moment_sums(tf.constant(x), kind).numpy(), kind)
        np.testing.assert_allclose(from_moments, compute_statistics(tf.constant(x), kind).numpy(), atol=1e-6)

    @given(
        st.integers(1, 3).flatmap(
            lambda columns: arrays(
                np.float64, 1 + 3 * columns, elements=st.floats(allow_nan=False, allow_infinity=False)
            )
        )
    )
    def test_any_noise_gives_possible_statistics(self, moments):
        mean, deviation, skewness = statistics_from_moments(moments, "per_feature")
        assert np.all(np.abs(mean) <= 1) and np.all((deviation >= 0) & (deviation <= 1))
        assert np.all(np.abs(skewness) * deviation <= 2 + 1e-9)

    def test_noisy_counts_are_at_least_1(self):
        """Of -3, 0.5 and 1 each is 1; 7.25 stays."""
        counts = count_examples(np.array([[-3, 9, 9, 9], [0.5, 9, 9, 9], [1, 9, 9, 9], [7.25, 9, 9, 9]]))
        np.testing.assert_array_equal(counts, [1, 1, 1, 7.25])


class TestStandardize:
    def test_hand_worked(self):
        """Column (1, 3): mean 2, population deviation 1; 0.1 is constant, though its computed mean is not 0.1."""
        standardized = standardize(np.array([[1, 0.1], [3, 0.1], [2, 0.1]]))
        np.testing.assert_allclose(standardized[:, 0], [-math.sqrt(1.5), math.sqrt(1.5), 0], atol=1e-15)
        np.testing.assert_array_equal(standardized[:, 1], 0)

    @given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(-1e6, 1e6)))
    def test_columns_have_mean_0_and_variance_1_or_are_constant(self, statistics):
        standardized = standardize(statistics)
        np.testing.assert_allclose(standardized.mean(axis=0), 0, atol=1e-3)
        is_constant = np.all(standardized == 0, axis=0)
        np.testing.assert_allclose(standardized.var(axis=0), np.where(is_constant, 0, 1), atol=1e-9)


class TestProjectToPlane:
    def test_points_on_a_diagonal(self):
        """The first component is (1, 1)/sqrt(2), the second has no spread."""
        plane = project_to_plane(np.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]]))
        np.testing.assert_allclose(plane, [[-math.sqrt(2), 0], [0, 0], [math.sqrt(2), 0]], atol=1e-12)

    def test_the_column_with_the_largest_weight_counts_as_positive(self):
        columns = np.array([[0.0, 3.0, 0.0], [1.0, -3.0, 0.0], [-1.0, 0.0, 0.0]])
        plane = project_to_plane(columns)
        assert plane[0, 0] > 0 > plane[1, 0]
        np.testing.assert_allclose(project_to_plane(-columns), -plane, atol=1e-12)

    def test_two_columns_keep_their_distances(self):
        points = np.random.default_rng(0).normal(size=(6, 2))
        plane = project_to_plane(points)
        np.testing.assert_allclose(np.linalg.norm(plane[0] - plane), np.linalg.norm(points[0] - points))

    def test_one_client_or_one_column(self):
        np.testing.assert_array_equal(project_to_plane(np.zeros((1, 6))), [[0, 0]])
        np.testing.assert_allclose(project_to_plane(np.array([[1.0], [-1.0]])), [[1, 0], [-1, 0]])
