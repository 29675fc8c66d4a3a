"""Eq. (2): k-means, the choice of k, random clusters and leaders."""

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tff_algos.fed_sikd.clustering import (
    Clustering,
    choose_by_majority,
    choose_for_silhouette,
    choose_leaders,
    cluster_at_random,
    cluster_by_statistics,
    draw_members,
)
from tff_algos.rounds.clustered import number_by_first_appearance

THREE_GROUPS = np.array([[9.0, 9.0], [0.0, 0.0], [9.0, 9.5], [-9.0, 9.0], [0.0, 0.5], [-9.0, 9.5], [0.5, 0.0]])


@pytest.fixture(autouse=True)
def fail_on_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def assert_numbered_by_first_appearance(assignments, num_clusters):
    assert assignments.dtype == np.int32
    assert list(dict.fromkeys(assignments.tolist())) == list(range(num_clusters))


class TestClusterByStatistics:
    def test_hand_worked_indices(self):
        """Points 0, 1 | 10, 11.

        Silhouette: 1 - 1/10.5 for the outer points, 1 - 1/9.5 for the inner. Calinski-Harabasz: between 4 * 5^2 over
        k - 1 = 1, within 4 * 0.5^2 over n - k = 2, so 200. Davies-Bouldin: (0.5 + 0.5) / 10.
        """
        clustering = cluster_by_statistics(np.array([[10.0], [0.0], [11.0], [1.0]]), 2, 8, seed=0)
        np.testing.assert_array_equal(clustering.assignments, [0, 1, 0, 1])
        np.testing.assert_allclose(clustering.silhouette, 1 - (1 / 10.5 + 1 / 9.5) / 2)
        np.testing.assert_allclose(clustering.calinski_harabasz, 200)
        np.testing.assert_allclose(clustering.davies_bouldin, 0.1)

    @pytest.mark.parametrize(("num_clusters", "most", "found"), [(0, 6, 3), (3, 6, 3), (0, 2, 2)])
    def test_finds_three_groups_or_the_most_clusters(self, num_clusters, most, found):
        clustering = cluster_by_statistics(THREE_GROUPS, num_clusters, most, seed=1)
        assert clustering.num_clusters == found and clustering.assignments.dtype == np.int32
        if found == 3:
            np.testing.assert_array_equal(clustering.assignments, [0, 1, 0, 2, 1, 2, 1])

    def test_minimises_the_squared_distances_to_the_centroids(self):
        """Eq. (2) against all 3^7 assignments."""
        points = np.random.default_rng(5).normal(size=(7, 2))

        def compute_objective(assignments):
            groups = [points[np.array(assignments) == cluster] for cluster in set(assignments)]
            return sum(np.sum((group - group.mean(axis=0)) ** 2) for group in groups)

        best = min(compute_objective(assignments) for assignments in itertools.product(range(3), repeat=7))
        found = compute_objective(cluster_by_statistics(points, 3, 8, seed=0).assignments.tolist())
        np.testing.assert_allclose(found, best)

    @pytest.mark.parametrize(
        ("points", "num_clusters", "expected"),
        [([0.0], 0, [0]), ([0.0], 4, [0]), ([1.0, 2.0, 5.0], 4, [0, 1, 2]), ([1.0, 2.0], 0, [0, 0])],
    )
    def test_too_few_clients_for_indices(self, points, num_clusters, expected):
        """One, as many as clusters, or two, which give the indices no choice."""
        clustering = cluster_by_statistics(np.array(points)[:, np.newaxis], num_clusters, 8, seed=0)
        assert clustering.assignments.tolist() == expected and clustering.num_clusters == max(expected) + 1
        assert all(math.isnan(index) for index in clustering[2:])

    @pytest.mark.parametrize("num_clusters", [0, 4])
    def test_identical_clients_are_one_cluster_in_spite_of_rounding(self, num_clusters):
        clustering = cluster_by_statistics(
            np.full((5, 3), 0.1) + np.arange(5)[:, None] * 1e-15, num_clusters, 8, seed=0
        )
        np.testing.assert_array_equal(clustering.assignments, np.zeros(5))

    def test_clusters_of_identical_clients(self):
        """Three points, each twice; the silhouette is 1, Davies-Bouldin 0, and nothing is dispersed within."""
        clustering = cluster_by_statistics(np.array([[0.0], [0.0], [1.0], [1.0], [7.0], [7.0]]), 0, 5, seed=0)
        np.testing.assert_array_equal(clustering.assignments, [0, 0, 1, 1, 2, 2])
        assert (clustering.silhouette, clustering.davies_bouldin) == (1, 0)
        assert math.isnan(clustering.calinski_harabasz)

    @settings(deadline=None, max_examples=5)
    @given(
        st.integers(1, 7).flatmap(lambda n: arrays(np.float64, (n, 2), elements=st.integers(-2, 2).map(float))),
        st.integers(0, 5),
        st.integers(0, 2**32 + 1),
    )
    def test_any_points(self, points, num_clusters, seed):
        clustering = cluster_by_statistics(points, num_clusters, 4, seed)
        assert_numbered_by_first_appearance(clustering.assignments, clustering.num_clusters)
        num_distinct = len({tuple(point) for point in points.tolist()})
        if num_clusters:
            assert clustering.num_clusters == min(num_clusters, num_distinct)
        else:
            assert 1 <= clustering.num_clusters <= min(4, num_distinct)
        again = cluster_by_statistics(points, num_clusters, 4, seed)
        np.testing.assert_array_equal(clustering.assignments, again.assignments)


class TestChooseByMajority:
    @pytest.mark.parametrize(
        ("silhouettes", "calinski_harabasz", "davies_bouldin", "expected"),
        [
            pytest.param((0.5, 0.6, 0.4), (1, 9, 2), (0.1, 0.2, 0.3), 3, id="silhouette and Calinski-Harabasz"),
            pytest.param((0.5, 0.6, 0.4), (1, 2, 9), (0.3, 0.1, 0.2), 3, id="silhouette and Davies-Bouldin"),
            pytest.param((0.5, 0.6, 0.4), (1, 2, 9), (0.3, 0.2, 0.1), 4, id="the other two"),
            pytest.param((0.5, 0.6, 0.4), (9, 1, 2), (0.3, 0.2, 0.1), 3, id="all differ: silhouette"),
            pytest.param((0.5, 0.5, 0.5), (1, 2, 9), (0.1, 0.1, 0.2), 2, id="ties go to the smallest"),
            pytest.param((0.5, 0.6, 0.7), (1, math.nan, 9), (0.3, 0.1, 0.2), 3, id="undefined ratio is the best"),
        ],
    )
    def test_votes(self, silhouettes, calinski_harabasz, davies_bouldin, expected):
        rows = zip((2, 3, 4), silhouettes, calinski_harabasz, davies_bouldin, strict=True)
        assert choose_by_majority([Clustering(np.zeros(5), *row) for row in rows]).num_clusters == expected


class TestClusterAtRandom:
    @given(st.integers(1, 50), st.integers(1, 10), st.integers(0, 2**40))
    def test_sizes_differ_by_at_most_one(self, num_clients, num_clusters, seed):
        assignments, found_clusters, *indices = cluster_at_random(num_clients, num_clusters, seed)
        sizes = np.bincount(assignments)
        assert len(assignments) == num_clients and len(sizes) == found_clusters == min(num_clusters, num_clients)
        assert all(math.isnan(index) for index in indices)
        assert sizes.min() >= 1 and sizes.max() - sizes.min() <= 1
        assert_numbered_by_first_appearance(assignments, len(sizes))


class TestDrawMembers:
    @given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(0, 2**40))
    def test_the_sizes_of_any_clustering_are_permuted(self, labels, seed):
        found = Clustering(number_by_first_appearance(np.array(labels)), len(set(labels)))
        drawn = draw_members(found, seed)
        assert sorted(np.bincount(drawn.assignments)) == sorted(np.bincount(found.assignments))
        assert_numbered_by_first_appearance(drawn.assignments, found.num_clusters)


class TestChooseLeaders:
    ASSIGNMENTS = np.array([0, 1, 0, 1, 0], np.int32)

    @pytest.mark.parametrize(
        ("sizes", "speeds", "criterion", "leaders"),
        [
            ([5, 1, 9, 2, 9], [0.0] * 5, "examples", [2, 3]),  # ties go to the lowest index
            ([1] * 5, [5.0, 7.5, 1.0, 7.25, 1.0], "speed", [0, 1]),
        ],
    )
    def test_leaders_by_hand(self, sizes, speeds, criterion, leaders):
        found = choose_leaders(self.ASSIGNMENTS, np.array(sizes), np.array(speeds), criterion)
        assert found.tolist() == leaders and found.dtype == np.int32


def test_the_silhouette_of_many_clients_is_that_of_a_part_with_every_cluster_in_it():
    assignments = np.array([0] * 60 + [1] + [2] * 39)
    assert choose_for_silhouette(assignments, 0, most=100).tolist() == list(range(100))
    for seed in range(5):
        seen = choose_for_silhouette(assignments, seed, most=10)
        assert 10 <= len(seen) <= 13 and set(assignments[seen]) == {0, 1, 2}
    assert not np.array_equal(choose_for_silhouette(assignments, 0, 10), choose_for_silhouette(assignments, 1, 10))


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: cluster_at_random(40, 4, seed),
        lambda seed: draw_members(Clustering(np.repeat([0, 1, 2], [25, 10, 5]).astype(np.int32), 3), seed),
    ],
    ids=["equal sizes", "sizes of a clustering"],
)
def test_members_are_drawn_by_the_seed(draw):
    first, again, other = (draw(seed).assignments for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other) and np.any(first != np.sort(first))
