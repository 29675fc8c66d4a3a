"""What the server collects of the clients, against NumPy and SciPy on the preprocessed examples."""

import numpy as np
import pytest
from scipy import stats
from small_formats import change_format

from datasets.example_format import Preprocessing
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.sharing import build_statistics_sharing, take_noisy_sizes, take_statistics


def compute_expected(data, axis, scale, offset):
    """Means, then deviations, then skewnesses of each client; `axis` None takes all values as one sample."""
    rows = []
    for client in data.clients:
        x = data.read_split(client, "train")[0].astype(np.float64) * scale + offset
        rows.append(np.hstack([np.mean(x, axis), np.std(x, axis), stats.skew(x, axis)]))
    return np.array(rows)


@pytest.mark.parametrize(("kind", "axis", "num_columns"), [("scalar", None, 3), ("per_feature", 0, 12)])
def test_statistics_are_those_of_the_preprocessed_examples(
    tff_runtime, make_federation, linear_spec, kind, axis, num_columns
):
    data = make_federation([9, 12, 30, 3, 17, 8, 21, 6, 13])
    spec = change_format(linear_spec, preprocessing=Preprocessing(1 / 16, 0.25))
    sharing = build_statistics_sharing(spec, data, FedSiKDConfig(statistics=kind), seed=5)
    collected = sharing.collect()
    assert collected.shape == (9, num_columns) and collected.dtype == np.float64
    np.testing.assert_allclose(collected, compute_expected(data, axis, 1 / 16, 0.25), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(take_statistics(collected), collected)
    assert sharing.spent_epsilon is None and take_noisy_sizes(collected) is None


@pytest.mark.parametrize(("kind", "axis"), [("scalar", None), ("per_feature", 0)])
def test_private_statistics_with_next_to_no_noise_are_the_same(tff_runtime, make_federation, linear_spec, kind, axis):
    data = change_format(make_federation([200, 300]), preprocessing=Preprocessing(1 / 16, 0, (-0.25, 0.25)))
    spec = change_format(linear_spec, preprocessing=data.format.preprocessing)
    config = FedSiKDConfig(statistics=kind, privacy_epsilon=1e8)
    shared = build_statistics_sharing(spec, data, config, seed=5).collect()
    np.testing.assert_allclose(take_noisy_sizes(shared), [200, 300], atol=1e-2)
    assert np.all(take_noisy_sizes(shared) != [200, 300])
    collected, expected = take_statistics(shared), compute_expected(data, axis, 1 / 16, 0.0)
    num_columns = expected.shape[1] // 3
    np.testing.assert_allclose(collected[:, : 2 * num_columns], expected[:, : 2 * num_columns], atol=1e-5)
    np.testing.assert_allclose(collected[:, 2 * num_columns :], expected[:, 2 * num_columns :], atol=0.02)
    assert np.any(collected != expected)
