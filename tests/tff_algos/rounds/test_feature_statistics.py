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


@pytest.fixture
def prepare(tff_runtime, make_federation, linear_spec):
    """A function (train examples of each client, changes of the format) -> (spec, federation)."""

    def prepare(parts, **changes):
        data = make_federation([len(part) for part in parts])
        for client, x in zip(data.clients, parts, strict=True):
            np.asarray(x, np.float32).tofile(f"{client.path}.train.x")
        return change_format(linear_spec, **changes), data

    return prepare


def test_moments_by_hand():
    # 1, 3 and 8 shifted by 2: -1, 1, 6; their sum is 6, their squares' 38; mean 4, variance 38 / 3 - 2 ** 2 = 26 / 3
    means, deviations = divide_moments(3, np.array([6.0]), np.array([38.0]), np.array([2.0]))
    assert means.tolist() == [4.0] and deviations[0] == pytest.approx((26 / 3) ** 0.5, rel=1e-15)


def test_a_constant_and_its_rounding_errors_have_deviation_1():
    origin = np.array([0.0, 1e6, 1e6, 1e6])
    means, deviations = divide_moments(4, np.zeros(4), np.array([0.0, 1e-26, 4.0, 16e-12]), origin)
    assert means.tolist() == origin.tolist() and deviations.tolist() == [1.0, 1.0, 1.0, pytest.approx(2e-6)]


# One step of zeros and three others: 2, 6 and 0 in channel 0, which 0, 1 and 1 are beside in channel 1.
STEPS = [[[2, 1, 0, 1]], [[6, 0, 0, 0]]]


@pytest.mark.parametrize(
    ("parts", "changes", "padding", "means", "variances", "no_switches"),
    [
        # The sums are over 1 + 3 examples, as if one client had all.
        ([[[2, 0, 5, 1]], [[4, 0, 5, 1], [4, 0, 5, 1], [6, 0, 5, 3]]], {}, None, [4, 0, 5, 1.5], [2, 1, 1, 0.75], None),
        # Of what the preprocessing gives.
        (
            [[[1, 2, 3, 4], [3, 2, 3, 4]]],
            {"preprocessing": Preprocessing(0.5, 1.0)},
            None,
            [2, 2, 2.5, 3],
            [0.25, 1, 1, 1],
            None,
        ),
        (STEPS, {"input_shape": (2, 2)}, None, [2, 0.5], [6, 0.25], [2, 0]),
        (STEPS, {"input_shape": (2, 2)}, Padding(0.0, True), [8 / 3, 2 / 3], [56 / 9, 2 / 9], [2, 0]),
    ],
    ids=["unlike sizes", "preprocessing", "steps", "padding"],
)
def test_statistics_by_hand(prepare, parts, changes, padding, means, variances, no_switches):
    found = compute_feature_statistics(*prepare(parts, **changes), seed=0, padding=padding)
    np.testing.assert_allclose(found.means, means, rtol=1e-15)
    np.testing.assert_allclose(found.deviations, np.sqrt(variances), rtol=1e-15)
    assert found.num_clients == len(parts) and (no_switches is None or found.no_switches.tolist() == no_switches)


def test_a_large_mean_beside_a_small_deviation(prepare):
    """At 1e6 with a deviation of 1, at 1e-6 with one of 1e-9, at -3e8 with 100, and plain."""
    rng, centres, sizes = np.random.default_rng(0), [1e6, 1e-6, -3e8, 0.0], [1.0, 1e-9, 100.0, 1.0]
    parts = [(rng.normal(size=(n, 4)) * sizes + centres).astype(np.float32) for n in (40, 1, 200)]
    pooled = np.concatenate(parts).astype(np.float64)
    found = compute_feature_statistics(*prepare(parts), seed=0)
    np.testing.assert_allclose(found.means, pooled.mean(0), rtol=1e-14)
    np.testing.assert_allclose(found.deviations, pooled.std(0), rtol=1e-9)


def test_of_many_clients_some_are_drawn_by_the_seed(make_federation, monkeypatch):
    # Thousands of clients would take their time.
    monkeypatch.setattr(feature_statistics, "MOST_CLIENTS", 3)
    data = make_federation([2] * 9)
    drawn = [tuple(client.index for client in choose_clients(data, seed)) for seed in range(4)]
    assert all(len(set(each)) == 3 and list(each) == sorted(each) for each in drawn) and len(set(drawn)) > 1
    assert [client.index for client in choose_clients(make_federation([2] * 3), 0)] == [0, 1, 2]


def test_steps_of_padding_are_counted_at_the_ends_and_within(prepare):
    spec, data = prepare([[[0, 3, 0, 4], [0, 0, 0, 0]], [[5, 0, 0, 0]]], input_shape=(4, 1))
    assert count_padded_steps(spec, data, 0, (0.0, -1.0)).tolist() == [[1 + 4 + 3, 1, 12], [0, 0, 12]]
    found = compute_feature_statistics(spec, data, 0, Padding(0.0, False))
    # Of each step those that are between others: 5; 3; 0; 4.
    assert found.means.tolist() == [5.0, 3.0, 0.0, 4.0] and found.deviations.tolist() == [1.0] * 4
