"""What a record says of each start, by hand, and the ends of it."""

import numpy as np
import pytest

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.asynchronous import TrainingTimesConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.arrivals import DeviceStarts, collect_arrivals, start_at
from tff_algos.simulation.event_clock import LogRow, create_clock
from tff_algos.simulation.recorded import FAR_S, build_recorded_devices, find_far
from tff_algos.simulation.training_times import SimulatedDevices

TICK_S = 2.0**-20
# Device 0 is ready after 1 s, starts again, leaves after half a second, and is back at 4 s. Device 1 never answers.
RECORD = {
    1: [
        LogRow(0.0, 0, "start", 0),
        LogRow(0.0, 1, "start", 0),
        LogRow(1.0, 0, "ready", 0),
        LogRow(1.0, 0, "rejected", 0),
        LogRow(1.0, 0, "received", 0),
        LogRow(1.0, 0, "start", 1),
    ],
    2: [
        LogRow(1.5, 0, "dropped", 1),
        LogRow(4.0, 0, "back", 1),
        LogRow(4.0, 0, "start", 1),
        LogRow(4.25 + TICK_S, 0, "ready", 1),
        LogRow(4.25 + TICK_S, 0, "received", 1),
        LogRow(4.25 + TICK_S, 0, "start", 2),
    ],
    3: [],
}


@pytest.fixture
def devices():
    ones = np.ones(2)
    profiles = DeviceProfiles(ones, ones, ones, ones)
    return SimulatedDevices(TrainingTimesConfig(dropout=0.5, max_training_s=3.0), 5, profiles, ones, 0, 0)


def test_each_start_lasts_as_long_as_the_record_says(devices):
    recorded = build_recorded_devices(devices, RECORD)
    plan = recorded.plan_starts(np.array([0, 0, 0, 0, 1]), np.array([0, 1, 2, 3, 0]), 17.0)
    assert plan.durations_s.tolist() == [1.0, 0.5, 0.25 + TICK_S, FAR_S, FAR_S]
    assert plan.away_s.tolist() == [0.0, 2.5, 0.0, 0.0, 0.0]
    assert recorded.find_rejected(np.array([0, 0, 1]), np.array([1, 2, 1])).tolist() == [True, False, False]
    assert (recorded.longest_training_s, recorded.seed, recorded.counts_by_start) == (3.0, 5, True)
    assert not devices.counts_by_start and not devices.find_rejected(np.array([0]), np.array([1])).any()


def test_arrivals_are_those_of_the_record(devices):
    recorded = build_recorded_devices(devices, RECORD)
    starts = start_at(recorded, DeviceStarts(create_clock(2), *np.zeros((2, 2), np.int64)), np.arange(2), 0)
    logs = []
    for version in range(2):
        collected = collect_arrivals(recorded, starts, version, 1, 1)
        starts, logs = collected.starts, [*logs, collected.log]
    assert logs == [RECORD[1][2:], RECORD[2]]
    assert find_far(starts.clock).all()
    with pytest.raises(ConfigError, match=r"replay=.*nothing more happens in it"):
        collect_arrivals(recorded, starts, 2, 1, 1)


def test_who_was_not_back_when_the_record_ended_stays_away(devices):
    recorded = build_recorded_devices(devices, {1: [*RECORD[1], RECORD[2][0]]})
    assert recorded.plan_starts(np.array([0]), np.array([1]), 1.0).away_s.tolist() == [FAR_S]


def test_where_a_record_ends_and_what_is_none(devices):
    recorded = build_recorded_devices(devices, RECORD)
    recorded.begin_round(3)
    with pytest.raises(ConfigError, match="rounds=4: expected at most 3, where the record ends"):
        recorded.begin_round(4)
    with pytest.raises(ConfigError, match=r"replay=.*a start of client 1 before it is ready"):
        build_recorded_devices(devices, {1: [LogRow(1.0, 1, "ready", 0)]})
