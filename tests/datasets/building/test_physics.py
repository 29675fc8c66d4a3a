"""The simulated rooms against balances worked by hand, and what heterogeneity changes."""

import dataclasses

import numpy as np
import pytest

from datasets.building.physics import (
    DEGREES,
    ROOM_TYPES,
    STEPS_PER_DAY,
    compute_attendance,
    compute_saturation_g_per_m3,
    compute_solar_w,
    draw_rooms,
    draw_sensors,
    simulate_climate,
)

NOON = STEPS_PER_DAY // 2


def simulate(rooms, num_days=2, steps_per_interval=1, seed=0):
    return simulate_climate(rooms, num_days, steps_per_interval, seed)


@pytest.fixture
def empty_rooms():
    """Rooms of all types that nobody enters."""
    rooms = draw_rooms(20, 1.0, seed=3)
    return dataclasses.replace(rooms, attendance=np.zeros(20), lunch_attendance=np.zeros(20))


@pytest.fixture
def full_rooms(empty_rooms):
    """The same rooms, so sought after that they are full all day."""
    return dataclasses.replace(
        empty_rooms, attendance=np.full(20, 1e4), stay_h=np.full(20, 1e3), leaves_together=np.zeros(20, bool)
    )


def test_saturated_air_holds_what_tables_say():
    np.testing.assert_allclose(compute_saturation_g_per_m3(np.array([0.0, 20.0, 30.0])), [4.85, 17.3, 30.4], rtol=0.01)


def test_people_stay_within_the_capacity(empty_rooms, full_rooms):
    assert not simulate(empty_rooms).people.any()
    np.testing.assert_array_equal(simulate(full_rooms).people[NOON], full_rooms.capacity)


def test_moisture_of_people_balances_with_the_air_exchange(empty_rooms, full_rooms):
    """Under the same weather, n people at balance add g n / (Q + I V) = 66 n / (Q + 0.1 V) to the absolute humidity."""
    excess = simulate(full_rooms).humidity_g_per_m3 - simulate(empty_rooms).humidity_g_per_m3
    expected = 66 * full_rooms.capacity / (full_rooms.airflow_m3_per_h + 0.1 * full_rooms.volume_m3)
    np.testing.assert_allclose(excess[STEPS_PER_DAY * 19 // 24], expected, rtol=1e-3)


def test_heat_of_people_balances_with_losses_and_control(empty_rooms, full_rooms):
    """Likewise q n / (U + rho_c Q + K), with 0.5 W/m2 K, 1200 J/m3 K and 40 W/K a person."""
    excess = simulate(full_rooms).temperature_c - simulate(empty_rooms).temperature_c
    losses = 0.5 * full_rooms.floor_m2 + 1200 * full_rooms.airflow_m3_per_h / 3600 + 40 * full_rooms.capacity
    np.testing.assert_allclose(excess[STEPS_PER_DAY * 19 // 24], 100 * full_rooms.capacity / losses, rtol=1e-3)


def test_interval_holds_the_mean_of_the_people_and_the_last_air():
    rooms = draw_rooms(5, 1.0, seed=1)
    fine, coarse = simulate(rooms), simulate(rooms, steps_per_interval=6)
    np.testing.assert_allclose(coarse.people, fine.people.reshape(-1, 6, 5).mean(axis=1))
    np.testing.assert_array_equal(coarse.temperature_c, fine.temperature_c[5::6])


def test_schedule_follows_the_hours():
    rooms = draw_rooms(10, 0.0, seed=0)
    attendance = compute_attendance(rooms, np.array([3.0, 10.0, 22.0]))
    np.testing.assert_allclose(attendance[1], rooms.attendance, rtol=0.01)
    assert attendance[[0, 2]].max() < 1e-5
    solar_w = compute_solar_w(rooms, np.array([7.9, 13.0, 18.1]))
    np.testing.assert_allclose(solar_w, [0 * rooms.solar_w, rooms.solar_w, 0 * rooms.solar_w], atol=1e-9)


def test_without_heterogeneity_all_are_alike():
    rooms, sensors = draw_rooms(12, 0.0, seed=0), draw_sensors(12, 0.0, seed=0)
    for field in dataclasses.fields(rooms):
        if field.name not in ("type_names", "leaves_together"):
            assert np.ptp(getattr(rooms, field.name)) < 1e-12, field.name
    for errors in (sensors.offset, sensors.drift_per_day, sensors.gain - 1):
        assert not errors.any()


def test_scale_multiplies_the_errors_of_the_sensors():
    medium, high = (draw_sensors(200, scale, seed=0) for scale in (1.0, 2.0))
    np.testing.assert_allclose(high.offset, 2 * medium.offset)
    np.testing.assert_allclose(medium.offset.std(axis=1), [0.5, 3.0], rtol=0.15)
    assert (medium.noise > 0).all() and (high.dropout > 0).all() and (high.dropout <= 0.3).all()


def test_types_are_dealt_out_by_share_and_look_as_in_the_table():
    rooms = draw_rooms(100, 1.0, seed=0)
    names, counts = np.unique(rooms.type_names, return_counts=True)
    assert dict(zip(names, counts / 100, strict=True)) == {name: kind.share for name, kind in ROOM_TYPES.items()}
    for name, kind in ROOM_TYPES.items():
        capacity = rooms.capacity[rooms.type_names == name]
        assert abs(np.median(capacity) / kind.capacity - 1) < 0.2
        assert (capacity >= 2).all()


def test_structured_rooms_of_a_kind_are_alike_and_their_sensors_far_off_but_steady():
    degree = DEGREES["structured"]
    rooms, plain = draw_rooms(200, degree, seed=0), draw_rooms(200, 1.0, seed=0)
    offices, others = rooms.type_names == "office", plain.type_names == "office"
    assert np.log(rooms.stay_h[offices]).std() < 0.3 * np.log(plain.stay_h[others]).std()
    sensors, usual = draw_sensors(200, degree, seed=0), draw_sensors(200, 1.0, seed=0)
    np.testing.assert_allclose(sensors.offset, 3 * usual.offset)
    np.testing.assert_allclose(sensors.drift_per_day, 0.25 * usual.drift_per_day)
    assert np.median(sensors.noise[0]) == pytest.approx(0.03, rel=0.05)
