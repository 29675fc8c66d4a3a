"""Virtual seconds by hand."""

import numpy as np
import pytest

from datasets.federated_data import DeviceProfiles, Windows
from tff_algos.protocol import ClientWork
from tff_algos.simulation.virtual_clock import compute_client_seconds, compute_phases_s, compute_synchronous_round_s


def test_seconds_are_download_training_and_upload():
    """Client 1: 600 / 200 + 50 / 10 + 900 / 100 = 3 + 5 + 9; client 0: 600 / 100 + 100 / 20 + 900 / 300 = 6 + 5 + 3."""
    profiles = DeviceProfiles(np.array([20.0, 10.0]), np.array([100.0, 200.0]), np.array([300.0, 100.0]), np.ones(2))
    seconds = compute_client_seconds(profiles, np.array([1, 0]), np.array([50, 100]), 600, 900)
    assert seconds.tolist() == [17.0, 14.0]
    assert compute_synchronous_round_s(seconds) == 17.0


def test_nobody_takes_no_time():
    assert compute_synchronous_round_s(np.zeros(0)) == pytest.approx(0.0)


def test_parts_of_a_round_follow_each_other():
    """Part 1, client 1 alone: 600 / 200 + 50 / 10 = 8. Part 2: client 0 takes 100 / 20 = 5, client 1 900 / 100 = 9."""
    profiles = DeviceProfiles(np.array([20.0, 10.0]), np.array([100.0, 200.0]), np.array([300.0, 100.0]), np.ones(2))
    first = ClientWork(np.array([1]), 50, 600)
    second = ClientWork(np.array([0, 1]), np.array([100, 0]), bytes_up=np.array([0, 900]))
    assert compute_phases_s(profiles, [first, second], start_s=1e6) == 17.0
    assert compute_phases_s(profiles, [first._replace(clients=np.zeros(0, np.int64))], 0.0) == 0.0


def test_a_part_waits_for_the_windows_of_its_devices():
    """Client 0 can be reached from hour 1 to 3, client 1 from 2 to 4; each trains for an hour and a half.

    From hour 0: client 0 gets the model at 1, has trained at 2.5 and sends at once; client 1 gets it at 2 and sends at
    3.5. The next part begins then. Client 0 gets the model at 25, and sends it at 26.5; client 1 gets it at once, has
    trained at 5, and sends it when its window opens, at 26. So the two take 3.5 and 23 hours.
    """
    ones, hour_s = np.ones(2), 3600.0
    windows = Windows(np.array([[1.0], [2.0]]) * hour_s, np.full((2, 1), 2 * hour_s))
    profiles = DeviceProfiles(np.full(2, 100 / hour_s), ones, ones, ones, windows=windows)
    work = ClientWork(np.arange(2), np.full(2, 150))
    assert compute_phases_s(profiles, [work], 0.0) == pytest.approx(3.5 * hour_s)
    assert compute_phases_s(profiles, [work, work], 0.0) == pytest.approx(26.5 * hour_s)
    assert compute_phases_s(profiles, [work], 24 * hour_s) == pytest.approx(3.5 * hour_s)
