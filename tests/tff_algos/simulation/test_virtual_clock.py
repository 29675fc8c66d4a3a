"""Virtual seconds by hand."""

import numpy as np
import pytest

from datasets.federated_data import DeviceProfiles
from tff_algos.simulation.virtual_clock import compute_client_seconds, compute_synchronous_round_s


def test_seconds_are_download_training_and_upload():
    """Client 1: 600 / 200 + 50 / 10 + 900 / 100 = 3 + 5 + 9; client 0: 600 / 100 + 100 / 20 + 900 / 300 = 6 + 5 + 3."""
    profiles = DeviceProfiles(np.array([20.0, 10.0]), np.array([100.0, 200.0]), np.array([300.0, 100.0]), np.ones(2))
    seconds = compute_client_seconds(profiles, np.array([1, 0]), np.array([50, 100]), 600, 900)
    assert seconds.tolist() == [17.0, 14.0]
    assert compute_synchronous_round_s(seconds) == 17.0


def test_nobody_takes_no_time():
    assert compute_synchronous_round_s(np.zeros(0)) == pytest.approx(0.0)
