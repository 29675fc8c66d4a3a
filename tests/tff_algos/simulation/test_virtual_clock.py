"""Virtual seconds, bytes, joules and the work of devices by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.federated_data import DeviceProfiles, EnergyRates, Windows
from tff_algos.protocol import ClientWork
from tff_algos.settings.asynchronous import TrainingTimesConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.arrivals import DeviceStarts, collect_arrivals, start_at
from tff_algos.simulation.device_work import compute_joules, list_logged_work
from tff_algos.simulation.event_clock import LogRow, create_clock
from tff_algos.simulation.training_times import SimulatedDevices, draw_shares_done, plan_starts
from tff_algos.simulation.virtual_clock import compute_client_seconds, compute_phases_s
from tff_algos.weights import compute_model_bytes

PROFILES = DeviceProfiles(np.array([20.0, 10.0]), np.array([100.0, 200.0]), np.array([300.0, 100.0]), np.ones(2))


def test_seconds_are_download_training_and_upload():
    """Client 1: 600 / 200 + 50 / 10 + 900 / 100 = 3 + 5 + 9; client 0: 600 / 100 + 100 / 20 + 900 / 300 = 6 + 5 + 3."""
    seconds = compute_client_seconds(PROFILES, np.array([1, 0]), np.array([50, 100]), 600, 900)
    assert seconds.tolist() == [17.0, 14.0]


def test_parts_of_a_round_follow_each_other():
    """Part 1, client 1 alone: 600 / 200 + 50 / 10 = 8. Part 2: client 0 takes 100 / 20 = 5, client 1 900 / 100 = 9."""
    first = ClientWork(np.array([1]), 50, 600)
    second = ClientWork(np.array([0, 1]), np.array([100, 0]), bytes_up=np.array([0, 900]))
    assert compute_phases_s(PROFILES, [first, second], start_s=1e6) == 17.0
    assert compute_phases_s(PROFILES, [first._replace(clients=np.zeros(0, np.int64))], 0.0) == 0.0


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


NUM_CLIENTS = 4
COUNTS = st.integers(0, 10**9)


def test_joules_by_hand():
    """Client 0: 8 x 0.5 + 100 x 0.01 = 5; client 1: 4 x 2 + 100 x 0.02 + 50 x 0.1 = 15, and 3 x 2 in a second part."""
    rates = EnergyRates(np.array([0.5, 2.0, 9.0]), np.array([0.01, 0.02, 9.0]), np.array([9.0, 0.1, 9.0]))
    first = ClientWork(np.array([1, 0]), np.array([4, 8]), 100, np.array([50, 0]))
    assert compute_joules(rates, [first, ClientWork(np.array([1]), 3)]).tolist() == [5, 21, 0]


@st.composite
def draw_part(draw):
    clients = draw(st.lists(st.integers(0, NUM_CLIENTS - 1), max_size=6))  # a client may be named twice
    counts = [np.array(draw(st.lists(COUNTS, min_size=len(clients), max_size=len(clients)))) for _ in range(3)]
    return ClientWork(np.array(clients, np.int64), *counts)


RATE = st.lists(st.floats(0, 10), min_size=NUM_CLIENTS, max_size=NUM_CLIENTS)


@given(RATE, RATE, RATE, st.lists(draw_part(), max_size=4))
def test_a_rounds_joules_are_the_sum_of_what_each_client_did(examples, down, up, parts):
    rates = EnergyRates(*map(np.array, (examples, down, up)))
    joules = compute_joules(rates, parts)
    plain = sum(
        part.num_examples[i] * examples[client] + part.bytes_down[i] * down[client] + part.bytes_up[i] * up[client]
        for part in parts
        for i, client in enumerate(part.clients.tolist())
    )
    assert joules.sum() == pytest.approx(plain) and (joules >= 0).all()
    idle = set(range(NUM_CLIENTS)) - {client for part in parts for client in part.clients.tolist()}
    assert not joules[list(idle)].any()
    np.testing.assert_allclose(joules, sum((compute_joules(rates, [part]) for part in parts), np.zeros(NUM_CLIENTS)))


def test_only_floating_point_weights_travel_at_their_bits():
    """10 + 3 floats: 52 bytes at 32 bits; at 4 bits 5 + 2 bytes, each tensor rounded up to whole bytes."""
    weights = (np.zeros((5, 2), np.float32), np.zeros(3, np.float32), np.zeros((), np.int64))
    assert compute_model_bytes(weights) == 52
    assert compute_model_bytes(weights, bits=4) == 7
    assert compute_model_bytes(()) == 0


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
    starts = start_at(devices, DeviceStarts(create_clock(2), *np.zeros((2, 2), np.int64)), np.arange(2), 0)
    ready = [row for row in collect_arrivals(devices, starts, 0, 5, 1).log if row.what == "ready"]
    assert [row.client for row in ready] == [1, 1, 0, 1, 1]
    assert [row.time_s / HOUR_S for row in ready] == pytest.approx([7, 11, 25, 27, 31])


def test_devices_from_a_file_have_speeds_and_windows_of_their_own():
    profiles = make_devices(windows=Windows(np.zeros((2, 1)), np.full((2, 1), HOUR_S))).profiles
    named = DeviceProfiles(*[np.ones(2)] * 4, names=("a", "b"))
    TrainingTimesConfig(speed="profiles").check_devices(named)
    TrainingTimesConfig(availability_cycle_s=5.0).check_devices(make_devices().profiles)
    with pytest.raises(ConfigError, match="speed=redrawn: expected profiles with --device_profiles"):
        TrainingTimesConfig().check_devices(named)
    with pytest.raises(ConfigError, match=r"availability_cycle_s=5.0: expected 0 with --device_profiles"):
        TrainingTimesConfig(speed="profiles", availability_cycle_s=5.0).check_devices(profiles)
