"""The simulated rooms against balances worked by hand, and what heterogeneity changes."""

import csv
import dataclasses
import time

import numpy as np
import pytest
from refusals import assert_refused

from datasets.building import readings as building
from datasets.building.physics import (
    DEGREES,
    ROOM_TYPES,
    STEPS_PER_DAY,
    Climate,
    Degree,
    Sensors,
    compute_attendance,
    compute_saturation_g_per_m3,
    compute_solar_w,
    draw_rooms,
    draw_sensors,
    simulate_climate,
)

ALIKE, USUAL = Degree(0.0, 0.0, 0.0, 0.0), DEGREES["medium"]
NOON = STEPS_PER_DAY // 2


def simulate(rooms, num_days=2, steps_per_interval=1, seed=0):
    return simulate_climate(rooms, num_days, steps_per_interval, seed)


@pytest.fixture
def empty_rooms():
    """Rooms of all types that nobody enters."""
    rooms = draw_rooms(20, USUAL, seed=3)
    return dataclasses.replace(rooms, attendance=np.zeros(20), lunch_attendance=np.zeros(20))


@pytest.fixture
def full_rooms(empty_rooms):
    """The same rooms, so sought after that they are full all day."""
    return dataclasses.replace(
        empty_rooms, attendance=np.full(20, 1e4), stay_h=np.full(20, 1e3), leaves_together=np.zeros(20, bool)
    )


def test_saturated_air_holds_what_tables_say():
    np.testing.assert_allclose(compute_saturation_g_per_m3(np.array([0.0, 20.0, 30.0])), [4.85, 17.3, 30.4], rtol=0.01)


def test_people_stay_within_the_capacity_and_balance_with_air_losses_and_control(empty_rooms, full_rooms):
    """Under the same weather, n people at balance add g n / (Q + I V) = 66 n / (Q + 0.1 V) to the absolute humidity.

    To the temperature likewise q n / (U + rho_c Q + K), with 0.5 W/m2 K, 1200 J/m3 K and 40 W/K a person.
    """
    empty, full = simulate(empty_rooms), simulate(full_rooms)
    assert not empty.people.any()
    np.testing.assert_array_equal(full.people[NOON], full_rooms.capacity)
    evening, airflow = STEPS_PER_DAY * 19 // 24, full_rooms.airflow_m3_per_h
    moisture = (full.humidity_g_per_m3 - empty.humidity_g_per_m3)[evening]
    expected = 66 * full_rooms.capacity / (airflow + 0.1 * full_rooms.volume_m3)
    np.testing.assert_allclose(moisture, expected, rtol=1e-3)
    heat = (full.temperature_c - empty.temperature_c)[evening]
    losses = 0.5 * full_rooms.floor_m2 + 1200 * airflow / 3600 + 40 * full_rooms.capacity
    np.testing.assert_allclose(heat, 100 * full_rooms.capacity / losses, rtol=1e-3)


def test_interval_holds_the_mean_of_the_people_and_the_last_air():
    rooms = draw_rooms(5, USUAL, seed=1)
    fine, coarse = simulate(rooms), simulate(rooms, steps_per_interval=6)
    np.testing.assert_allclose(coarse.people, fine.people.reshape(-1, 6, 5).mean(axis=1))
    np.testing.assert_array_equal(coarse.temperature_c, fine.temperature_c[5::6])


def test_schedule_follows_the_hours():
    rooms = draw_rooms(10, ALIKE, seed=0)
    attendance = compute_attendance(rooms, np.array([3.0, 10.0, 22.0]))
    np.testing.assert_allclose(attendance[1], rooms.attendance, rtol=0.01)
    assert attendance[[0, 2]].max() < 1e-5
    solar_w = compute_solar_w(rooms, np.array([7.9, 13.0, 18.1]))
    np.testing.assert_allclose(solar_w, [0 * rooms.solar_w, rooms.solar_w, 0 * rooms.solar_w], atol=1e-9)


def test_without_heterogeneity_all_are_alike():
    rooms, sensors = draw_rooms(12, ALIKE, seed=0), draw_sensors(12, ALIKE, seed=0)
    for field in dataclasses.fields(rooms):
        if field.name not in ("type_names", "leaves_together"):
            assert np.ptp(getattr(rooms, field.name)) < 1e-12, field.name
    for errors in (sensors.offset, sensors.drift_per_day, sensors.gain - 1):
        assert not errors.any()


def test_scale_multiplies_the_errors_of_the_sensors():
    medium, high = (draw_sensors(200, DEGREES[name], seed=0) for name in ("medium", "high"))
    np.testing.assert_allclose(high.offset, 2 * medium.offset)
    np.testing.assert_allclose(medium.offset.std(axis=1), [0.5, 3.0], rtol=0.15)
    assert (medium.noise > 0).all() and (high.dropout > 0).all() and (high.dropout <= 0.3).all()


def test_types_are_dealt_out_by_share_and_look_as_in_the_table():
    rooms = draw_rooms(100, USUAL, seed=0)
    names, counts = np.unique(rooms.type_names, return_counts=True)
    assert dict(zip(names, counts / 100, strict=True)) == {name: kind.share for name, kind in ROOM_TYPES.items()}
    for name, kind in ROOM_TYPES.items():
        capacity = rooms.capacity[rooms.type_names == name]
        assert abs(np.median(capacity) / kind.capacity - 1) < 0.2
        assert (capacity >= 2).all()


def test_structured_rooms_of_a_kind_are_alike_and_their_sensors_far_off_but_steady():
    degree = DEGREES["structured"]
    rooms, plain = draw_rooms(200, degree, seed=0), draw_rooms(200, USUAL, seed=0)
    offices, others = rooms.type_names == "office", plain.type_names == "office"
    assert np.log(rooms.stay_h[offices]).std() < 0.3 * np.log(plain.stay_h[others]).std()
    sensors, usual = draw_sensors(200, degree, seed=0), draw_sensors(200, USUAL, seed=0)
    np.testing.assert_allclose(sensors.offset, 3 * usual.offset)
    np.testing.assert_allclose(sensors.drift_per_day, 0.25 * usual.drift_per_day)
    assert np.median(sensors.noise[0]) == pytest.approx(0.03, rel=0.05)


@pytest.fixture(scope="module")
def arrays():
    return building.load_building_arrays(30, "medium", seed=1)


@pytest.fixture
def few_days(monkeypatch):
    """Days take the time of a simulation, whatever the number of sensors."""
    monkeypatch.setattr(building, "NUM_TRAIN_DAYS", 2)
    monkeypatch.setattr(building, "NUM_TEST_DAYS", 1)


def test_same_seed_same_bytes(few_days):
    first, again, other_seed, other_degree = (
        building.load_building_arrays(30, heterogeneity, seed=seed).source_digest
        for heterogeneity, seed in (("medium", 1), ("medium", 1), ("medium", 2), ("low", 1))
    )
    assert first == again and first not in (other_seed, other_degree)


def test_every_sensor_is_a_client_with_a_few_hundred_examples(arrays):
    assert len(arrays.client_names) == 30
    assert all(name.startswith(f"sensor_{index:03}_") for index, name in enumerate(arrays.client_names))
    counts = np.bincount(arrays.train_clients)
    assert counts.min() > 150 and counts.max() <= 360
    assert arrays.train_x.shape[1:] == building.BUILDING_FORMAT.input_shape == (len(building.FEATURE_NAMES),)
    assert arrays.num_dropped > 0
    assert len(arrays.train_y) + len(arrays.test_y) + arrays.num_dropped == 30 * 20 * 24
    deviations = arrays.train_x.std(axis=0)  # standardised roughly
    assert np.abs(arrays.train_x.mean(axis=0)).max() < 1.5 and deviations.min() > 0.2 and deviations.max() < 2.5


@pytest.mark.parametrize("heterogeneity", DEGREES)
def test_no_level_has_half_of_the_examples(few_days, heterogeneity):
    labels = building.load_building_arrays(40, heterogeneity).train_y
    shares = np.bincount(labels, minlength=4) / len(labels)
    assert shares.max() < 0.45 and shares.min() > 0.08


def test_knowing_the_sensor_helps_at_medium_heterogeneity(arrays):
    """A linear model gains from readings less their sensor's mean: the errors of calibration matter."""
    from sklearn.linear_model import LogisticRegression

    x, y = arrays.train_x.astype(np.float64), arrays.train_y
    means = np.stack([x[arrays.train_clients == client, :2].mean(axis=0) for client in range(30)])
    centred = np.column_stack([x[:, :2] - means[arrays.train_clients], x[:, 2:]])
    is_train = np.arange(len(y)) % 4 > 0
    pooled, knowing = (
        LogisticRegression(max_iter=200).fit(features[is_train], y[is_train]).score(features[~is_train], y[~is_train])
        for features in (x, centred)
    )
    assert knowing > pooled + 0.03


def test_level_is_the_share_of_the_capacity():
    rooms = draw_rooms(1, ALIKE, seed=0)
    shares = np.array([[0.0], [0.049], [0.05], [0.33], [0.34], [0.66], [0.67], [1.0]])
    assert building.compute_levels(shares * rooms.capacity, rooms)[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_features_by_hand():
    """Of 21, 22, 24 C and 40, 43, 46 %, 24 C is (24 - 21) / 2; changes are 2 / 0.5 and 3 / 0.5, 3 / 3, 6 / 3."""
    values = np.full((2, 48, 1), np.nan)
    values[0, 21:24, 0] = 21, 22, 24
    values[1, 21:24, 0] = 40, 43, 46
    features = building.compute_features(values)
    # The 24th reading of the day is at 12:00: sin 0, cos -1.
    np.testing.assert_allclose(features[23, 0], [1.5, 0.6, 4, 1, 6, 2, 0, -1], atol=1e-6)
    assert features.dtype == np.float32
    assert np.flatnonzero(np.isfinite(features).all(axis=2)[:, 0]).tolist() == [23]


def test_lost_reading_takes_the_three_examples_that_need_it():
    values = np.zeros((2, 48, 1))
    values[:, 20] = np.nan
    is_whole = np.isfinite(building.compute_features(values)).all(axis=2)[:, 0]
    assert np.flatnonzero(~is_whole).tolist() == [0, 1, 20, 21, 22]


def test_sensor_reads_with_its_errors():
    """Truth 25 C, gain 1.1, offset -0.5 and 0.1 K a day: 21 + 1.1 x 4 - 0.5 + 0.1 x days; the other reads nothing."""
    shape = (96, 2)
    climate = Climate(np.full(shape, 25.0), np.full(shape, 9.0), np.zeros(shape))
    pair = np.array([[1.0], [1.0]]) * np.ones(2)
    sensors = Sensors(
        gain=pair * 1.1,
        offset=np.array([[-0.5], [0.0]]) * np.ones(2),
        drift_per_day=np.array([[0.1], [0.0]]) * np.ones(2),
        noise=pair * 0,
        dropout=np.array([0.0, 1.0]),
    )
    values = building._read_sensors(climate, sensors, np.random.default_rng(0))
    np.testing.assert_allclose(values[0, [0, 48], 0], [24.9, 25.0])
    np.testing.assert_allclose(values[1, :, 0], 40 + 1.1 * (100 * 9.0 / 23.0 - 40), rtol=0.01)
    assert np.isnan(values[:, :, 1]).all()


def test_readings_are_saved_as_csv(tmp_path, few_days, monkeypatch):
    monkeypatch.setattr(building, "NUM_TRAIN_DAYS", 5)
    path = tmp_path / "readings.csv"
    path.write_text("old")
    building.load_building_arrays(3, "high", seed=1, csv_path=str(path))
    readings = building.simulate_readings(3, "high", seed=1)
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == building.CSV_COLUMNS
    assert len(rows) == 3 * 6 * 48
    assert (rows[0]["date"], rows[47]["date"]) == ("2024-01-08 00:30", "2024-01-09 00:00")
    assert rows[5 * 48]["date"] == "2024-01-15 00:30"  # a weekend later
    assert sum(row["temperature"] == "" for row in rows) == np.count_nonzero(np.isnan(readings.values[0])) > 0
    index = next(index for index in range(298, len(rows)) if rows[index]["temperature"])
    sensor, reading = divmod(index, 6 * 48)
    assert rows[index]["sensor"] == readings.names[sensor]
    assert float(rows[index]["temperature"]) == pytest.approx(readings.values[0, reading, sensor], abs=0.006)
    assert rows[index]["level"] == building.BUILDING_FORMAT.class_names[readings.levels[reading, sensor]]
    assert [entry.name for entry in tmp_path.iterdir()] == ["readings.csv"]


def test_csv_that_cannot_be_written_is_one_line(tmp_path, few_days):
    for path, message in ((tmp_path / "nowhere" / "x.csv", r" \(No such file"), (tmp_path, "")):
        message = f"building_csv={path}: cannot be written{message}"
        assert_refused(message, building.load_building_arrays, 1, csv_path=str(path))
    assert not list(tmp_path.iterdir())


def test_names_of_more_than_a_thousand_sensors_stay_in_order(few_days):
    names = building.simulate_readings(1001).names
    assert (names[7][:11], names[1000][:11]) == ("sensor_0007", "sensor_1000")


@pytest.mark.slow
def test_time_grows_no_faster_than_the_number_of_sensors():
    times_s = {}
    for num_sensors in (200, 1000):
        start_s = time.process_time()
        building.load_building_arrays(num_sensors)
        times_s[num_sensors] = time.process_time() - start_s
    assert times_s[1000] < 6 * times_s[200] + 0.5
