"""Arrivals by hand, and the versions that the server keeps."""

import numpy as np
import pytest

from tff_algos.simulation import arrivals as module
from tff_algos.simulation.arrivals import DeviceStarts, collect_arrivals, start_at
from tff_algos.simulation.event_clock import create_clock
from tff_algos.simulation.model_versions import add_versions, create_versions
from tff_algos.simulation.training_times import StartPlan


@pytest.fixture
def starts(monkeypatch):
    """Two devices that train for 1 s and 2.5 s, started at 0 s from version 0."""
    durations = np.array([1.0, 2.5])
    plan = lambda devices, clients, num_starts, time_s: StartPlan(durations[clients], np.zeros(len(clients)))
    monkeypatch.setattr(module, "plan_starts", plan)
    nowhere = DeviceStarts(create_clock(2), np.zeros(2, np.int64), np.zeros(2, np.int64))
    return start_at(None, nowhere, np.arange(2), 0)


def test_each_arrival_makes_a_version(starts):
    """Ready: device 0 at 1 s and 2 s, device 1 at 2.5 s, device 0 at 3 s."""
    collected = collect_arrivals(None, starts, 0, 4, arrivals_per_version=1)
    assert [tuple(arrival) for arrival in collected.arrivals] == [(0, 0, 0), (0, 1, 1), (1, 0, 2), (0, 2, 3)]
    assert [arrival.staleness for arrival in collected.arrivals] == [0, 0, 2, 1]
    assert collected.starts.versions.tolist() == [4, 3]
    assert collected.starts.num_starts.tolist() == [4, 2]
    assert (float(collected.starts.clock.time_s), collected.num_handed_out) == (3.0, 4)


def test_a_buffer_makes_a_version_when_it_is_full(starts):
    """The last of three arrivals, device 1, already starts from the new version; device 0 restarted from the old."""
    collected = collect_arrivals(None, starts, 5, 3, arrivals_per_version=3)
    assert [arrival.newest_version for arrival in collected.arrivals] == [5, 5, 5]
    assert collected.starts.versions.tolist() == [5, 6]


def test_versions_in_use_are_kept():
    versions = create_versions((np.array([0.0]),))
    versions = add_versions(versions, [(np.array([1.0]),), (np.array([2.0]),)], used=np.array([0, 2]))
    assert versions.numbers.tolist() == [0, 2]
    versions = add_versions(versions, [(np.array([3.0]),), (np.array([4.0]),)], used=np.array([2, 3]))
    assert versions.numbers.tolist() == [2, 3, 4]  # the newest stays, though nobody uses it
    assert [versions.get(number)[0].item() for number in (2, 3, 4)] == [2.0, 3.0, 4.0]
    assert versions.newest == 4
