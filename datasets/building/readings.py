"""`building`: simulated temperature and humidity sensors in the rooms of a building, and how full each room is.

Modelled on the simulated data set of the AMFL-P paper. The paper says only that there are 100 sensors in offices,
conference rooms and hallways, with varying noise and calibration errors; everything below is our choice. `rooms` draws
rooms and sensors, `physics` simulates people, heat and moisture; here the sensors read, and readings become examples.

Readings: every sensor, every 30 minutes, for 20 working days. With t the days since the beginning,
  reading = reference + gain (truth - reference) + offset + drift_per_day t + noise N(0, 1),
for the temperature in C (reference 21) and for the relative humidity in % (reference 40; the truth is the absolute
humidity over that of saturation; held within 0..100). A reading is lost with the sensor's chance `dropout`.

Examples: the 24 readings from 7:30 to 19:00 of each day; at night rooms are known to be empty. The first 15 days are
the train part (at most 360 examples for each sensor), the last 5 the global test set (120). Each sensor is a natural
client. Its own test split is its part of the last days and its validation split the end of the first part, so that no
reading is predicted from its neighbours in time. An example that lacks one of the three readings it needs is dropped
and counted.

Features, float32 (`FEATURE_NAMES`), standardised with the constants below, which need no data of any client:
  0 temperature: (C - 21) / 2                      1 humidity: (% - 40) / 10
  2 its change over 30 minutes, K / 0.5            3 its change over 30 minutes, % / 3
  4 its change over 60 minutes, K / 0.5            5 its change over 60 minutes, % / 3
  6, 7 sin and cos of 2 pi hour / 24
Label: the mean number of people over the 30 minutes before the reading, as a share of the room's capacity: empty
(below 0.05), low (below 1/3), medium (below 2/3), high.

Heterogeneity multiplies the differences between locations and between sensors by 0.25 (low), 1 (medium) or 2 (high).
"structured" is of another kind, of which a shared start can make use; see `rooms`.
"""

import csv
import os
from typing import NamedTuple

import numpy as np

from datasets.arrays import ArrayDataset, make_array_dataset
from datasets.building.physics import (
    DEGREES,
    MINUTES_PER_STEP,
    Climate,
    Rooms,
    Sensors,
    compute_saturation_g_per_m3,
    draw_rooms,
    draw_sensors,
    simulate_climate,
)
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from files.reading import explain_errors
from files.writing import replace_whole

NUM_TRAIN_DAYS, NUM_TEST_DAYS = 15, 5
MINUTES_PER_READING = 30
READINGS_PER_DAY = 24 * 60 // MINUTES_PER_READING
# Of a day's readings 0..47, each taken at the end of a half hour, those of 7:30 to 19:00 become examples.
EXAMPLE_READINGS = slice(14, 38)
REFERENCE = np.array([21.0, 40.0]).reshape(2, 1, 1)  # C, %
READING_UNIT = np.array([2.0, 10.0]).reshape(2, 1, 1)
CHANGE_UNIT = np.array([0.5, 3.0]).reshape(2, 1, 1)
LEVEL_BOUNDS = 0.05, 1 / 3, 2 / 3
FEATURE_NAMES = (
    "temperature",
    "humidity",
    "temperature_change_30_min",
    "humidity_change_30_min",
    "temperature_change_60_min",
    "humidity_change_60_min",
    "hour_sin",
    "hour_cos",
)
FEATURE_UNITS = (  # of the standardised numbers
    *("(°C - 21) / 2", "(% - 40) / 10"),
    *("K / 0.5", "% / 3", "K / 0.5", "% / 3"),
    *("", ""),
)
BUILDING_FORMAT = ExampleFormat(
    (len(FEATURE_NAMES),), "float32", ("empty", "low", "medium", "high"),
    feature_names=FEATURE_NAMES, feature_units=FEATURE_UNITS,
)  # fmt: skip
FIRST_DAY = np.datetime64("2024-01-08", "D")  # a Monday
CSV_COLUMNS = ("sensor", "room", "date", "temperature", "humidity", "people", "level")


class Readings(NamedTuple):
    """What all sensors of a building have read.

    Attributes:
      names: of the sensors, for example "sensor_007_office", strings of shape (sensors,).
      room_types: names of `rooms.ROOM_TYPES`, shape (sensors,).
      values: temperature (C) and relative humidity (%), NaN where lost, float64, shape (2, readings, sensors).
      people: mean number in the half hour before each reading, float64, shape (readings, sensors).
      levels: the labels 0..3, int64, shape (readings, sensors).
    """

    names: np.ndarray
    room_types: np.ndarray
    values: np.ndarray
    people: np.ndarray
    levels: np.ndarray


def simulate_readings(num_sensors: int = 100, heterogeneity: str = "medium", seed: int = 0) -> Readings:
    """Simulates a building; see the module. The same arguments give the same bytes.

    Args:
      num_sensors: at least 1; each room has one.
      heterogeneity: "low", "medium", "high" or "structured".
      seed: of everything random, a non-negative integer.
    """
    degree = DEGREES[heterogeneity]
    rooms = draw_rooms(num_sensors, degree, seed)
    climate = simulate_climate(rooms, NUM_TRAIN_DAYS + NUM_TEST_DAYS, MINUTES_PER_READING // MINUTES_PER_STEP, seed)
    width = max(3, len(str(num_sensors - 1)))
    names = [f"sensor_{sensor:0{width}}_{room_type}" for sensor, room_type in enumerate(rooms.type_names.tolist())]
    return Readings(
        names=np.array(names),
        room_types=rooms.type_names,
        values=_read_sensors(climate, draw_sensors(num_sensors, degree, seed), np.random.default_rng([seed, 5, 4])),
        people=climate.people,
        levels=compute_levels(climate.people, rooms),
    )


def compute_levels(people: np.ndarray, rooms: Rooms) -> np.ndarray:
    """The label 0..3 of a mean number of people, by the room's capacity: shape (readings, rooms)."""
    return np.searchsorted(LEVEL_BOUNDS, people / rooms.capacity, side="right")


def _read_sensors(climate: Climate, sensors: Sensors, rng: np.random.Generator) -> np.ndarray:
    humidity = 100 * climate.humidity_g_per_m3 / compute_saturation_g_per_m3(climate.temperature_c)
    truth = np.stack([climate.temperature_c, humidity])
    days = (np.arange(truth.shape[1]) / READINGS_PER_DAY)[:, np.newaxis]
    gain, offset, drift_per_day, noise = (
        values[:, np.newaxis] for values in (sensors.gain, sensors.offset, sensors.drift_per_day, sensors.noise)
    )
    error = offset + drift_per_day * days + noise * rng.standard_normal(truth.shape)
    values = REFERENCE + gain * (truth - REFERENCE) + error
    values[1] = np.clip(values[1], 0, 100)
    values[:, rng.random(truth.shape[1:]) < sensors.dropout] = np.nan
    return values


def compute_features(values: np.ndarray) -> np.ndarray:
    """Features of every reading, as in the module: NaN where one of the three readings it needs is lost.

    Args:
      values: temperature (C) and relative humidity (%), whole days, shape (2, readings, sensors).

    Returns:
      float32, shape (readings, sensors, 8).
    """
    features = np.full((*values.shape[1:], len(FEATURE_NAMES)), np.nan, np.float32)
    features[..., 0:2] = np.moveaxis((values - REFERENCE) / READING_UNIT, 0, -1)
    for first, lag in ((2, 1), (4, 2)):
        change = (values[:, lag:] - values[:, :-lag]) / CHANGE_UNIT
        features[lag:, :, first : first + 2] = np.moveaxis(change, 0, -1)
    angle = 2 * np.pi * (np.arange(values.shape[1]) + 1) / READINGS_PER_DAY
    features[..., 6], features[..., 7] = np.sin(angle)[:, np.newaxis], np.cos(angle)[:, np.newaxis]
    return features


def load_building(options: DatasetOptions) -> ArrayDataset:
    """The catalog's loader; see `load_building_arrays`."""
    return load_building_arrays(
        options.building_num_sensors, options.building_heterogeneity, options.seed, options.building_csv
    )


def load_building_arrays(
    num_sensors: int = 100, heterogeneity: str = "medium", seed: int = 0, csv_path: str | None = None
) -> ArrayDataset:
    """The simulated building as checked arrays; see the module.

    Args:
      num_sensors: at least 1.
      heterogeneity: "low", "medium", "high" or "structured".
      seed: of everything random.
      csv_path: where to save the readings, None for nowhere.

    Raises:
      DatasetError: the CSV file cannot be written.
    """
    readings = simulate_readings(num_sensors, heterogeneity, seed)
    if csv_path:
        write_readings_csv(readings, csv_path)
    features = _select_examples(compute_features(readings.values))
    levels = _select_examples(readings.levels)
    sensors = np.broadcast_to(readings.names, levels.shape)
    is_whole = np.isfinite(features).all(axis=-1)
    train, test = is_whole[:NUM_TRAIN_DAYS], is_whole[NUM_TRAIN_DAYS:]
    return make_array_dataset(
        "building",
        (features[:NUM_TRAIN_DAYS][train], levels[:NUM_TRAIN_DAYS][train]),
        (features[NUM_TRAIN_DAYS:][test], levels[NUM_TRAIN_DAYS:][test]),
        BUILDING_FORMAT,
        sensors[:NUM_TRAIN_DAYS][train],
        num_dropped=int(np.count_nonzero(~is_whole)),
        test_clients=sensors[NUM_TRAIN_DAYS:][test],
        # Neighbours in time are alike: drawn at random, a test reading would be predicted from them.
        is_ordered_by_time=True,
    )


def _select_examples(values: np.ndarray) -> np.ndarray:
    """Of an array (readings, ...), the hours that become examples: (days, readings a day, ...)."""
    return values.reshape(-1, READINGS_PER_DAY, *values.shape[1:])[:, EXAMPLE_READINGS]


def write_readings_csv(readings: Readings, path: str) -> None:
    """Saves all readings, sensor by sensor, as a whole or not at all; the cells of a lost reading are empty.

    Columns: sensor, room (its type), date (YYYY-MM-DD HH:MM, the end of the half hour), temperature (C), humidity (%),
    people (their mean number in the half hour), level (its name).

    Raises:
      DatasetError: the file cannot be written.
    """
    day, reading = np.divmod(np.arange(readings.values.shape[1]), READINGS_PER_DAY)
    # Days are working days: after five comes a weekend.
    midnight = np.busday_offset(FIRST_DAY, day).astype("datetime64[m]")
    times = midnight + np.timedelta64(MINUTES_PER_READING, "m") * (reading + 1)
    dates = [text.replace("T", " ") for text in np.datetime_as_string(times).tolist()]
    path = os.path.abspath(os.path.expanduser(path))
    with (
        explain_errors(f"building_csv={path}", DatasetError, "cannot be written", "name another file"),
        replace_whole(path, makes_folder=False) as draft,
        open(draft, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        for sensor in range(len(readings.names)):
            writer.writerows(_format_rows(readings, sensor, dates))


def _format_rows(readings: Readings, sensor: int, dates: list[str]):
    cells = [
        ["" if np.isnan(value) else f"{value:.2f}" for value in readings.values[quantity, :, sensor].tolist()]
        for quantity in (0, 1)
    ]
    people = [f"{number:.2f}" for number in readings.people[:, sensor].tolist()]
    levels = [BUILDING_FORMAT.class_names[level] for level in readings.levels[:, sensor].tolist()]
    start = [readings.names[sensor]] * len(dates), [readings.room_types[sensor]] * len(dates)
    return zip(*start, dates, *cells, people, levels, strict=True)
