"""The work of asynchronous devices by hand, and their windows."""

import numpy as np
import pytest

from datasets.federated_data import DeviceProfiles, EnergyRates, Windows
from tff_algos.settings.asynchronous import TrainingTimesConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.arrivals import DeviceStarts, collect_arrivals, start_at
from tff_algos.simulation.device_work import list_logged_work
from tff_algos.simulation.energy import compute_joules
from tff_algos.simulation.event_clock import LogRow, create_clock
from tff_algos.simulation.training_times import SimulatedDevices, draw_shares_done, plan_starts

HOUR_S = 3600.0


def make_devices(num_clients=2, windows=None, **settings):
    """Devices of 10 examples an hour, with 20 and 40 of them; transfers take no time to speak of."""
    ones = np.ones(num_clients)
    profiles = DeviceProfiles(10 * ones / HOUR_S, 1e12 * ones, 1e12 * ones, ones, windows=windows)
    num_examples = np.array([20, 40])[:num_clients]
    return SimulatedDevices(TrainingTimesConfig(speed="profiles", **settings), 3, profiles, num_examples, 300.0, 150.0)


def test_work_and_joules_of_a_log_by_hand():
    """Device 0 is ready twice and sends once; device 1 drops out, in its second start, and begins its third."""
    devices = make_devices(dropout=0.5)
    log = [
        *(LogRow(0.0, client, "start", 0) for client in (0, 1)),  # before the first round
        *(LogRow(1.0, 0, what, 0) for what in ("ready", "received", "start")),
        LogRow(2.0, 1, "back", 0),
        LogRow(2.0, 1, "start", 1),
        LogRow(3.0, 1, "dropped", 1),
        LogRow(4.0, 0, "ready", 1),
        LogRow(5.0, 1, "back", 1),
        LogRow(5.0, 1, "start", 1),
    ]
    work = list_logged_work(devices, log, np.array([1, 1]), True, bytes_of_ready=4)
    done = float(draw_shares_done(devices, np.array([1]), np.array([1]))[0])
    rates = EnergyRates(np.array([1.0, 10.0]), np.array([0.1, 0.2]), np.array([0.01, 0.02]))
    joules = compute_joules(rates, work)
    # Device 0: two trainings, one model down, one up, two norms. Device 1: a part of a training, two models down.
    assert joules == pytest.approx([40 + 30 + 1.5 + 0.08, 400 * done + 120])
    assert 0 < done < 1
    # In a later round the log has no starts at time 0.
    later = compute_joules(rates, list_logged_work(devices, log[2:], np.array([1, 1]), False, bytes_of_ready=4))
    assert later.tolist() == joules.tolist()


def test_the_share_done_is_the_one_that_the_clock_took():
    devices = make_devices(dropout=0.9)
    for number in range(20):
        plan = plan_starts(devices, np.arange(2), np.full(2, number), 0.0)
        drops = np.flatnonzero(plan.away_s)
        shares = draw_shares_done(devices, drops, np.full(len(drops), number))
        assert plan.durations_s[drops] == pytest.approx(shares * devices.num_examples[drops] / 10 * HOUR_S)


def test_devices_get_and_send_models_in_their_windows_alone():
    """Device 0 can be reached from hour 1 to 2, and trains two hours; device 1 from 3 to 12, and trains four.

    Device 0 begins at 1, has trained at 3, and can send at 25; the next model it gets then, and sends at 49. Device 1
    begins at 3 and sends at 7, begins again and sends at 11, begins again, has trained at 15 and sends at 27.
    """
    windows = Windows(np.array([[1.0], [3.0]]) * HOUR_S, np.array([[1.0], [9.0]]) * HOUR_S)
    devices = make_devices(windows=windows)
    starts = DeviceStarts(create_clock(2), np.zeros(2, np.int64), np.zeros(2, np.int64))
    starts = start_at(devices, starts, np.arange(2), 0)
    collected = collect_arrivals(devices, starts, 0, 5, 1)
    arrivals = [(row.time_s / HOUR_S, row.client) for row in collected.log if row.what == "ready"]
    assert arrivals == [
        (pytest.approx(time_h), client) for time_h, client in [(7, 1), (11, 1), (25, 0), (27, 1), (31, 1)]
    ]


def test_devices_from_a_file_have_speeds_and_windows_of_their_own():
    profiles = make_devices(windows=Windows(np.zeros((2, 1)), np.full((2, 1), HOUR_S))).profiles
    named = DeviceProfiles(*[np.ones(2)] * 4, names=("a", "b"))
    TrainingTimesConfig(speed="profiles").check_devices(named)
    TrainingTimesConfig(availability_cycle_s=5.0).check_devices(make_devices().profiles)
    with pytest.raises(ConfigError, match="speed=redrawn: expected profiles with --device_profiles"):
        TrainingTimesConfig().check_devices(named)
    with pytest.raises(ConfigError, match=r"availability_cycle_s=5.0: expected 0 with --device_profiles"):
        TrainingTimesConfig(speed="profiles", availability_cycle_s=5.0).check_devices(profiles)
