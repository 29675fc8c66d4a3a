"""The devices of clients: drawn, and the sizes and ranges that they have."""

import numpy as np
import pytest

from datasets.device_profiles import draw_device_profiles
from datasets.errors import DatasetError


def test_a_clients_device_does_not_depend_on_how_many_there_are():
    few, many = draw_device_profiles(5, seed=1), draw_device_profiles(50, seed=1)
    np.testing.assert_array_equal(few.examples_per_s, many.examples_per_s[:5])
    np.testing.assert_array_equal(few.uplink_bytes_per_s, many.uplink_bytes_per_s[:5])
    assert not np.array_equal(few.examples_per_s, draw_device_profiles(5, seed=2).examples_per_s)


def test_distributions_are_as_documented():
    profiles = draw_device_profiles(20_000, seed=0)
    for values, median, sigma in (
        (profiles.examples_per_s, 500, 0.6),
        (profiles.downlink_bytes_per_s, 4e6, 0.8),
        (profiles.uplink_bytes_per_s, 1e6, 0.8),
    ):
        assert np.log(values).mean() == pytest.approx(np.log(median), abs=0.03)
        assert np.log(values).std() == pytest.approx(sigma, abs=0.02)
    np.testing.assert_allclose(profiles.downlink_bytes_per_s, 4 * profiles.uplink_bytes_per_s)
    assert abs(np.corrcoef(np.log(profiles.examples_per_s), np.log(profiles.uplink_bytes_per_s))[0, 1]) < 0.03
    assert set(profiles.availability) == {1.0}


def test_zero_sigma_makes_equal_devices():
    profiles = draw_device_profiles(3, 0, median_examples_per_s=10, speed_sigma=0, link_sigma=0, availability=0.5)
    assert profiles.examples_per_s.tolist() == [10, 10, 10] and profiles.availability.tolist() == [0.5] * 3


@pytest.mark.parametrize("wrong", [{"availability": 0}, {"availability": 1.5}, {"speed_sigma": -1}, {"num_clients": 0}])
def test_values_out_of_range(wrong):
    with pytest.raises(DatasetError):
        draw_device_profiles(**{"num_clients": 2, "seed": 0, **wrong})
