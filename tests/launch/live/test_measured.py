"""The measured devices, by numbers worked by hand; and what `--device_profiles` makes of their file."""

import numpy as np

from datasets.device_table import COLUMNS, draw_device_profiles, load_device_profiles
from launch.live import measured
from launch.live.measured import Answer, Device, measure_devices, read_devices, write_devices

ANSWERS = [
    Answer(0, examples=200, training_s=2.0, elapsed_s=3.0, bytes_down=600, bytes_up=400),  # 100 a second, 1000 bytes
    Answer(0, examples=200, training_s=1.0, elapsed_s=5.0, bytes_down=600, bytes_up=400),  # 200 a second, 250 bytes
    Answer(0, examples=200, training_s=4.0, elapsed_s=4.5, bytes_down=600, bytes_up=400),  # 50 a second, 2000 bytes
    Answer(2, examples=30, training_s=0.5, elapsed_s=1.5, bytes_down=0, bytes_up=400),
    Answer(3, examples=60, training_s=0.5, elapsed_s=1.0, bytes_down=350, bytes_up=50),
]


def test_a_device_is_the_median_of_its_answers():
    assert measure_devices(ANSWERS) == {0: Device(100, 1000), 2: Device(60, 400), 3: Device(120, 800)}


def test_the_file_is_one_of_device_profiles_in_the_clients_order(tmp_path):
    path = tmp_path / "devices.csv"
    assert write_devices(path, ANSWERS, rounds_present=[8, 6, 4, 0], num_rounds=8)
    assert set(measured.COLUMNS) <= set(COLUMNS)
    for seed in range(3):
        profiles = load_device_profiles(str(path), 4, seed)
        # The second client never answered: it gets the medians of the others.
        np.testing.assert_array_equal(profiles.examples_per_s, [100, 100, 60, 120])
        np.testing.assert_array_equal(profiles.downlink_bytes_per_s, [1000, 800, 400, 800])
        np.testing.assert_array_equal(profiles.uplink_bytes_per_s, profiles.downlink_bytes_per_s)
        np.testing.assert_array_equal(profiles.availability, [1, 0.75, 0.5, 0.01])


def test_times_that_cannot_be_give_finite_rates(tmp_path):
    odd = [Answer(0, 10, training_s=9.0, elapsed_s=1.0, bytes_down=1, bytes_up=1), Answer(0, 0, 1.0, 2.0, 1, 1)]
    assert measure_devices(odd) == {0: Device(10 / 9, 2 * 2.0**20)}
    odd = [Answer(0, 10, training_s=-1.0, elapsed_s=1.0, bytes_down=0, bytes_up=2)]
    assert measure_devices(odd)[0].examples_per_s == 10 * 2.0**20
    assert write_devices(tmp_path / "devices.csv", odd, [1], 1)
    assert load_device_profiles(str(tmp_path / "devices.csv"), 1, 0).uplink_bytes_per_s[0] > 0


def test_nothing_is_written_where_nobody_answered(tmp_path):
    assert not write_devices(tmp_path / "devices.csv", [], [0, 0], 3)
    assert not (tmp_path / "devices.csv").exists()


def test_results_have_the_devices_that_were_measured_or_else_those_drawn(tmp_path):
    path, drawn = tmp_path / "devices.csv", draw_device_profiles(4, seed=1)
    assert read_devices(path, drawn) is drawn
    write_devices(path, ANSWERS, rounds_present=[8, 6, 4, 0], num_rounds=8)
    found = read_devices(path, drawn)
    assert found.examples_per_s.tolist() == [100, 100, 60, 120] and not found.names
    path.write_text("client\n1\n")
    assert read_devices(path, drawn) is drawn
