"""The simulated building: its rooms and sensors, and people, heat and moisture in them, in steps of five minutes.

Days are working days, one after another. A room of volume V holds n people; its air has the temperature T and the
absolute humidity w, the air outdoors T_out and w_out. All rooms take a step at once, as arrays.

People: parties arrive at random and stay for an exponentially distributed time:
  parties ~ Poisson(a(t) d capacity / (party_size stay) dt), each of 1 + Poisson(party_size - 1) people,
  leaving ~ Binomial(n, 1 - exp(-dt / stay)), or all at once with that chance (meetings); never more than `capacity`.
  a(t) = attendance S(t - begin) S(end - t) + lunch_attendance exp(-((t - 12.5 h) / 0.6 h)^2 / 2), at least 0,
  S(x) = 1 / (1 + exp(-x / 0.3 h)); d = exp(0.25 z) is the day's own factor in each room.
Heat, solved exactly over a step:
  C dT/dt = q n + solar(t) + U (T_out - T) + rho_c Q (T_supply - T) + K (T_set - T)
Moisture, likewise:
  V dw/dt = g n + Q (w_supply - w) + I V (w_out - w)

Constants, beside those below: q = 100 W sensible heat a person (about 70 W of a seated person at light work, by the
ASHRAE Handbook of Fundamentals, and 30 W of a laptop) and g = 66 g/h moisture (45 W latent, by the same table, over
2.45 kJ/g). Supplied air is conditioned for the whole building: T_supply is 20 C and w_supply 6.5 g/m3 plus a quarter
of what w_out differs from that. Q is the room's airflow from 6 to 20 o'clock and a fifth of it at night, when T_set
is 3 K lower. `solar` is a half cosine of 5 hours to either side of the room's hour, times the day's clearness.
Outdoors: a day cycle of 4 K around a level that wanders from day to day (autoregressive, 0.7) with a standard
deviation of 2.5 K around 8 C for T_out and 0.8 g/m3 around 6.5 g/m3 for w_out.

The rooms of the simulated building and their sensors, drawn from a seed: all that differs between locations.

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
    "low": Degree(0.25, 0.25, 0.25, 0.25),
    "medium": Degree(1.0, 1.0, 1.0, 1.0),
    "high": Degree(2.0, 2.0, 2.0, 2.0),
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


def draw_rooms(num_rooms: int, degree: Degree, seed: int) -> Rooms:
    """Draws rooms. Their types are dealt out by share, in random order.

    Args:
      num_rooms: at least 1.
      degree: the heterogeneity; see the module.
      seed: a non-negative integer.
    """
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


def draw_sensors(num_rooms: int, degree: Degree, seed: int) -> Sensors:
    """Draws the errors of a sensor for each room; arguments as for `draw_rooms`."""
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


MINUTES_PER_STEP = 5
STEP_S = 60.0 * MINUTES_PER_STEP
STEPS_PER_DAY = 24 * 60 // MINUTES_PER_STEP

PERSON_HEAT_W = 100.0
PERSON_MOISTURE_G_PER_H = 66.0
AIR_HEAT_J_PER_M3_K = 1200.0  # rho_c: density times specific heat
# Furniture and surfaces hold more heat than the air: C of a room over that of its air.
HEAT_CAPACITY_FACTOR = 6.0
ENVELOPE_W_PER_M2_K = 0.5  # U per floor area
CONTROL_W_PER_K = 40.0  # K per person of the capacity, heating and cooling
INFILTRATION_PER_H = 0.1  # I: room volumes of outdoor air that leak in
NIGHT_AIRFLOW, NIGHT_SETBACK_K = 0.2, 3.0
OPEN_HOURS = 6.0, 20.0
SUPPLY_C, SUPPLY_G_PER_M3, SUPPLY_HUMIDITY_SHARE = 20.0, 6.5, 0.25


class Climate(NamedTuple):
    """The air of the rooms at the end of each interval; float64, shape (intervals, rooms).

    Attributes:
      temperature_c: of the air.
      humidity_g_per_m3: absolute humidity.
      people: mean number of people over the interval.
    """

    temperature_c: np.ndarray
    humidity_g_per_m3: np.ndarray
    people: np.ndarray


class _AirStep(NamedTuple):
    """For one state of the ventilation: the rooms' conductances, and how far a step goes towards balance (0..1)."""

    airflow_m3_per_h: np.ndarray
    heat_w_per_k: np.ndarray
    heat_approach: np.ndarray
    moisture_m3_per_h: np.ndarray
    moisture_approach: np.ndarray


def compute_saturation_g_per_m3(temperature_c: np.ndarray) -> np.ndarray:
    """The most water vapour that air can hold, by Magnus: 6.112 hPa exp(17.62 T / (243.12 + T)) as a density."""
    pressure_hpa = 6.112 * np.exp(17.62 * temperature_c / (243.12 + temperature_c))
    return 216.7 * pressure_hpa / (273.15 + temperature_c)


def simulate_climate(rooms: Rooms, num_days: int, steps_per_interval: int, seed: int) -> Climate:
    """Simulates the rooms from midnight of the first day on.

    Args:
      rooms: as drawn.
      num_days: working days.
      steps_per_interval: a divisor of `STEPS_PER_DAY`.
      seed: of the weather and of the people, a non-negative integer.
    """
    weather_rng, rng = (np.random.default_rng([seed, 5, purpose]) for purpose in (2, 3))
    outdoor_c, outdoor_g_per_m3, clearness = _draw_weather(num_days, weather_rng)
    hours = np.arange(STEPS_PER_DAY) * MINUTES_PER_STEP / 60
    attendance = compute_attendance(rooms, hours)
    solar_w = compute_solar_w(rooms, hours)
    is_open = (hours >= OPEN_HOURS[0]) & (hours < OPEN_HOURS[1])
    air_steps = {True: _prepare_air_step(rooms, 1.0), False: _prepare_air_step(rooms, NIGHT_AIRFLOW)}

    num_rooms = len(rooms.capacity)
    shape = (num_days * STEPS_PER_DAY // steps_per_interval, num_rooms)
    climate = Climate(np.empty(shape), np.empty(shape), np.zeros(shape))
    temperature_c, humidity = rooms.set_point_c - NIGHT_SETBACK_K, np.full(num_rooms, SUPPLY_G_PER_M3)
    people = np.zeros(num_rooms)
    for step in range(num_days * STEPS_PER_DAY):
        day, step_of_day = divmod(step, STEPS_PER_DAY)
        if step_of_day == 0:
            day_factor = np.exp(0.25 * rng.standard_normal(num_rooms))
        air = air_steps[bool(is_open[step_of_day])]
        people = _move_people(rooms, people, attendance[step_of_day] * day_factor, rng)
        gain_w = PERSON_HEAT_W * people + clearness[day] * solar_w[step_of_day]
        set_point_c = rooms.set_point_c - (0.0 if is_open[step_of_day] else NIGHT_SETBACK_K)
        supplied_w = (
            ENVELOPE_W_PER_M2_K * rooms.floor_m2 * outdoor_c[step]
            + AIR_HEAT_J_PER_M3_K * air.airflow_m3_per_h / 3600 * SUPPLY_C
            + CONTROL_W_PER_K * rooms.capacity * set_point_c
        )
        # The way to the balance is solved exactly, so that a step may be long.
        balance_c = (gain_w + supplied_w) / air.heat_w_per_k
        temperature_c = temperature_c + air.heat_approach * (balance_c - temperature_c)
        outdoor = outdoor_g_per_m3[day]
        supply = SUPPLY_G_PER_M3 + SUPPLY_HUMIDITY_SHARE * (outdoor - SUPPLY_G_PER_M3)
        brought_in = air.airflow_m3_per_h * supply + INFILTRATION_PER_H * rooms.volume_m3 * outdoor
        balance = (PERSON_MOISTURE_G_PER_H * people + brought_in) / air.moisture_m3_per_h
        humidity = humidity + air.moisture_approach * (balance - humidity)
        interval = step // steps_per_interval
        climate.people[interval] += people / steps_per_interval
        climate.temperature_c[interval], climate.humidity_g_per_m3[interval] = temperature_c, humidity
    return climate


def _draw_weather(num_days: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outdoor temperature (C) of each step, absolute humidity (g/m3) and clearness (0..1) of each day."""
    level = np.empty((num_days, 2))
    level[0] = rng.standard_normal(2)
    for day in range(1, num_days):
        level[day] = 0.7 * level[day - 1] + np.sqrt(1 - 0.7**2) * rng.standard_normal(2)
    hours = np.arange(num_days * STEPS_PER_DAY) * MINUTES_PER_STEP / 60
    daily_c = np.interp(hours, 24.0 * np.arange(num_days) + 12, 8 + 2.5 * level[:, 0])
    outdoor_c = daily_c + 4 * np.cos(2 * np.pi * (hours - 15) / 24)
    return outdoor_c, np.maximum(6.5 + 0.8 * level[:, 1], 2.0), rng.uniform(0, 1, num_days)


def compute_attendance(rooms: Rooms, hours: np.ndarray) -> np.ndarray:
    """a(t) of the module, the expected share of the capacity that is taken: shape (hours, rooms)."""
    hours = hours[:, np.newaxis]
    ramp = 1 / (1 + np.exp((rooms.begin_hour - hours) / 0.3)) / (1 + np.exp((hours - rooms.end_hour) / 0.3))
    lunch = np.exp(-(((hours - 12.5) / 0.6) ** 2) / 2)
    return np.maximum(rooms.attendance * ramp + rooms.lunch_attendance * lunch, 0)


def compute_solar_w(rooms: Rooms, hours: np.ndarray) -> np.ndarray:
    """Heat gain through the windows on a clear day, in W: shape (hours, rooms)."""
    angle = np.clip((hours[:, np.newaxis] - rooms.solar_hour) / 5, -1, 1) * np.pi / 2
    return rooms.solar_w * np.cos(angle)


def _prepare_air_step(rooms: Rooms, airflow_share: float) -> _AirStep:
    airflow = airflow_share * rooms.airflow_m3_per_h
    ventilation_w_per_k = AIR_HEAT_J_PER_M3_K * airflow / 3600
    heat_w_per_k = ENVELOPE_W_PER_M2_K * rooms.floor_m2 + ventilation_w_per_k + CONTROL_W_PER_K * rooms.capacity
    heat_capacity = HEAT_CAPACITY_FACTOR * AIR_HEAT_J_PER_M3_K * rooms.volume_m3
    moisture = airflow + INFILTRATION_PER_H * rooms.volume_m3
    return _AirStep(
        airflow,
        heat_w_per_k,
        -np.expm1(-heat_w_per_k * STEP_S / heat_capacity),
        moisture,
        -np.expm1(-moisture * STEP_S / 3600 / rooms.volume_m3),
    )


def _move_people(rooms: Rooms, people: np.ndarray, attendance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    step_h = STEP_S / 3600
    # Of small exponents `exp` less 1 would lose the digits.
    leave_chance = -np.expm1(-step_h / rooms.stay_h)
    all_leave = rng.random(len(people)) < leave_chance
    staying = np.where(
        rooms.leaves_together, np.where(all_leave, 0, people), people - rng.binomial(people.astype(int), leave_chance)
    )
    parties = rng.poisson(attendance * rooms.capacity / (rooms.party_size * rooms.stay_h) * step_h)
    arriving = parties + rng.poisson(parties * (rooms.party_size - 1))
    return np.minimum(staying + arriving, rooms.capacity)
