"""The rooms of the simulated building and their sensors, drawn from a seed: all that differs between locations.

A room has a type (`ROOM_TYPES`) and its own values around those of the type; `scale` is the degree of heterogeneity,
and `Degree` says it for each cause. First
  value = average + min(scale, 1) (type - average), where the average is that of all types, weighted by their shares;
then it gets a factor exp(scale sigma z), or a summand scale sigma z, with z ~ N(0, 1) drawn anew for each room and
quantity. At scale 0 all rooms and sensors would be alike; at 1 the types are as in the table; above 1 only the spread
within a type and that of the sensors grows. The sigmas stand in `draw_rooms` and `draw_sensors`. Those of the sensors
are the usual tolerances of cheap digital sensors (0.5 K, 3 % relative humidity), taken as one standard deviation at
scale 1.

A fourth degree, "structured", was written before any method was run on it. It has the heterogeneity that a shared start
can use: rooms of a kind are nearly alike (scale 0.25), the kinds differ in full (scale 1), sensors are far off but
steady (gain and offset at scale 3, drift and differences of noise at 0.25), and read with half the noise. How occupancy
shows in a room is then common to many sensors, and what a sensor must find out about itself is little.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

# Multiplies every difference between rooms and between sensors, by the name of the heterogeneity.
SCALES = {"low": 0.25, "medium": 1.0, "high": 2.0}


class Degree(NamedTuple):
    """Heterogeneity by its causes, each a scale of the module but the last.

    Attributes:
      kinds: between the types of rooms.
      rooms: between the rooms of a type.
      calibration: of the sensors' gains and offsets.
      steadiness: of their drift, and of how their noise and dropout differ.
      noise: a factor on the noise of every sensor.
    """

    kinds: float
    rooms: float
    calibration: float
    steadiness: float
    noise: float = 1.0


DEGREES = {
    **{name: Degree(scale, scale, scale, scale) for name, scale in SCALES.items()},
    "structured": Degree(kinds=1.0, rooms=0.25, calibration=3.0, steadiness=0.25, noise=0.5),
}


class RoomType(NamedTuple):
    """A kind of room. "Per person" means per person of the room's capacity.

    Attributes:
      share: of the rooms that are of this type; the shares sum to 1.
      capacity: people.
      area_m2: floor area per person.
      airflow_m3_per_h: supplied outdoor air per person while the building is open.
      solar_w_per_m2: highest heat gain through the windows per floor area.
      stay_h: mean stay.
      party_size: mean number of people who come together.
      leaves_together: whether all leave at once, as from a meeting, or one by one.
      attendance: mean share of the capacity that is taken in working hours.
      lunch_attendance: what is added to it at lunch time.
    """

    share: float
    capacity: float
    area_m2: float
    airflow_m3_per_h: float
    solar_w_per_m2: float
    stay_h: float
    party_size: float
    leaves_together: bool
    attendance: float
    lunch_attendance: float


ROOM_TYPES = {
    "office": RoomType(0.35, 4, 8.0, 36.0, 8.0, 3.0, 1.0, False, 0.60, -0.35),
    "open_plan": RoomType(0.15, 16, 7.0, 36.0, 6.0, 3.0, 1.0, False, 0.60, -0.30),
    "conference_room": RoomType(0.20, 10, 2.5, 25.0, 4.0, 1.0, 5.0, True, 0.50, -0.25),
    "hallway": RoomType(0.15, 8, 5.0, 20.0, 0.0, 0.3, 1.5, False, 0.35, 0.25),
    "kitchen": RoomType(0.15, 10, 3.0, 30.0, 3.0, 0.5, 1.5, False, 0.25, 0.50),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Rooms:
    """Every array has one entry for each room: float64, shape (rooms,), unless said otherwise.

    Attributes:
      type_names: names of `ROOM_TYPES`, strings.
      capacity: people, whole numbers of at least 2.
      volume_m3: of air.
      floor_m2: area.
      airflow_m3_per_h: outdoor air while the building is open.
      solar_w: highest heat gain through the windows.
      solar_hour: hour of day of that, which depends on where the windows face.
      stay_h: mean stay of a person.
      party_size: mean number of people who come together, at least 1.
      leaves_together: bool.
      attendance: mean share of the capacity that is taken in working hours.
      lunch_attendance: added at lunch time.
      begin_hour: when people come, on average.
      end_hour: when they leave.
      set_point_c: temperature that the room's controller aims at.
    """

    type_names: np.ndarray
    capacity: np.ndarray
    volume_m3: np.ndarray
    floor_m2: np.ndarray
    airflow_m3_per_h: np.ndarray
    solar_w: np.ndarray
    solar_hour: np.ndarray
    stay_h: np.ndarray
    party_size: np.ndarray
    leaves_together: np.ndarray
    attendance: np.ndarray
    lunch_attendance: np.ndarray
    begin_hour: np.ndarray
    end_hour: np.ndarray
    set_point_c: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Sensors:
    """The errors of each room's sensor: temperature in row 0, in K, relative humidity in row 1, in %; float64.

    A reading is reference + gain (truth - reference) + offset + drift_per_day days + noise N(0, 1).

    Attributes:
      gain: shape (2, rooms).
      offset: shape (2, rooms).
      drift_per_day: shape (2, rooms).
      noise: standard deviation, shape (2, rooms).
      dropout: chance that a reading is lost, shape (rooms,).
    """

    gain: np.ndarray
    offset: np.ndarray
    drift_per_day: np.ndarray
    noise: np.ndarray
    dropout: np.ndarray


def make_degree(scale: float | Degree) -> Degree:
    """The degree with one scale for all causes; a degree stays."""
    return scale if isinstance(scale, Degree) else Degree(scale, scale, scale, scale)


def draw_rooms(num_rooms: int, degree: float | Degree, seed: int) -> Rooms:
    """Draws rooms. Their types are dealt out by share, in random order.

    Args:
      num_rooms: at least 1.
      degree: the heterogeneity, or one scale of at least 0 for all its causes; see the module.
      seed: a non-negative integer.
    """
    degree = make_degree(degree)
    rng = np.random.default_rng([seed, 5, 0])
    shares = np.cumsum([room_type.share for room_type in ROOM_TYPES.values()])
    types = np.searchsorted(shares, (rng.permutation(num_rooms) + 0.5) / num_rooms)
    # The numbers of `RoomType` for each room, between the average of all types and the room's own.
    table = np.array([[float(value) for value in room_type] for room_type in ROOM_TYPES.values()])
    average = table[:, 0] @ table
    values = average + min(degree.kinds, 1.0) * (table - average)
    of_type = dict(zip(RoomType._fields, values[types].T, strict=True))

    def spread(sigma: float) -> np.ndarray:
        return degree.rooms * sigma * rng.standard_normal(num_rooms)

    capacity = np.maximum(np.rint(of_type["capacity"] * np.exp(spread(0.15))), 2)
    floor_m2 = capacity * of_type["area_m2"] * np.exp(spread(0.15))
    return Rooms(
        type_names=np.array(list(ROOM_TYPES))[types],
        capacity=capacity,
        volume_m3=floor_m2 * 2.8 * np.exp(spread(0.1)),
        floor_m2=floor_m2,
        airflow_m3_per_h=capacity * of_type["airflow_m3_per_h"] * np.exp(spread(0.2)),
        solar_w=floor_m2 * of_type["solar_w_per_m2"] * np.exp(spread(0.3)),
        solar_hour=13.0 + np.clip(spread(2.0), -4, 4),
        stay_h=of_type["stay_h"] * np.exp(spread(0.15)),
        party_size=of_type["party_size"],
        leaves_together=np.array([room_type.leaves_together for room_type in ROOM_TYPES.values()])[types],
        attendance=of_type["attendance"] * np.exp(spread(0.25)),
        lunch_attendance=of_type["lunch_attendance"],
        begin_hour=8.5 + np.clip(spread(0.6), -2, 2),
        end_hour=17.0 + np.clip(spread(0.6), -2, 2),
        set_point_c=21.5 + spread(0.6),
    )


def draw_sensors(num_rooms: int, degree: float | Degree, seed: int) -> Sensors:
    """Draws the errors of a sensor for each room; arguments as for `draw_rooms`."""
    degree = make_degree(degree)
    rng = np.random.default_rng([seed, 5, 1])

    def spread(scale: float, temperature_sigma: float, humidity_sigma: float) -> np.ndarray:
        sigmas = np.array([[temperature_sigma], [humidity_sigma]])
        return scale * sigmas * rng.standard_normal((2, num_rooms))

    steadiness = degree.steadiness
    return Sensors(
        gain=1 + np.clip(spread(degree.calibration, 0.03, 0.05), -0.3, 0.3),
        offset=spread(degree.calibration, 0.5, 3.0),
        drift_per_day=spread(steadiness, 0.01, 0.05),
        noise=degree.noise * np.array([[0.06], [0.4]]) * np.exp(np.clip(spread(steadiness, 0.4, 0.4), -1.5, 1.5)),
        dropout=np.clip(0.02 * np.exp(steadiness * 0.5 * rng.standard_normal(num_rooms)), 0, 0.3),
    )
