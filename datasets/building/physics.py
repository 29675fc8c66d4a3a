"""People, heat and moisture in the rooms of the simulated building, in steps of five minutes.

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
"""

from typing import NamedTuple

import numpy as np

from datasets.building.rooms import Rooms

MINUTES_PER_STEP = 5
STEP_S = 60.0 * MINUTES_PER_STEP
STEPS_PER_DAY = 24 * 60 // MINUTES_PER_STEP

PERSON_HEAT_W = 100.0
PERSON_MOISTURE_G_PER_H = 66.0
AIR_HEAT_J_PER_M3_K = 1200.0  # rho_c: density times specific heat
HEAT_CAPACITY_FACTOR = 6.0  # C of a room, with its furniture and surfaces, over that of its air
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


class _Weather(NamedTuple):
    """Outdoor temperature (C) for each step, absolute humidity (g/m3) and clearness (0..1) for each day."""

    temperature_c: np.ndarray
    humidity_g_per_m3: np.ndarray
    clearness: np.ndarray


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
    weather = _draw_weather(num_days, weather_rng)
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
        gain_w = PERSON_HEAT_W * people + weather.clearness[day] * solar_w[step_of_day]
        set_point_c = rooms.set_point_c - (0.0 if is_open[step_of_day] else NIGHT_SETBACK_K)
        supplied_w = (
            ENVELOPE_W_PER_M2_K * rooms.floor_m2 * weather.temperature_c[step]
            + AIR_HEAT_J_PER_M3_K * air.airflow_m3_per_h / 3600 * SUPPLY_C
            + CONTROL_W_PER_K * rooms.capacity * set_point_c
        )
        balance_c = (gain_w + supplied_w) / air.heat_w_per_k
        temperature_c = temperature_c + air.heat_approach * (balance_c - temperature_c)
        outdoor = weather.humidity_g_per_m3[day]
        supply = SUPPLY_G_PER_M3 + SUPPLY_HUMIDITY_SHARE * (outdoor - SUPPLY_G_PER_M3)
        brought_in = air.airflow_m3_per_h * supply + INFILTRATION_PER_H * rooms.volume_m3 * outdoor
        balance = (PERSON_MOISTURE_G_PER_H * people + brought_in) / air.moisture_m3_per_h
        humidity = humidity + air.moisture_approach * (balance - humidity)
        interval = step // steps_per_interval
        climate.people[interval] += people / steps_per_interval
        climate.temperature_c[interval], climate.humidity_g_per_m3[interval] = temperature_c, humidity
    return climate


def _draw_weather(num_days: int, rng: np.random.Generator) -> _Weather:
    level = np.empty((num_days, 2))
    level[0] = rng.standard_normal(2)
    for day in range(1, num_days):
        level[day] = 0.7 * level[day - 1] + np.sqrt(1 - 0.7**2) * rng.standard_normal(2)
    hours = np.arange(num_days * STEPS_PER_DAY) * MINUTES_PER_STEP / 60
    daily_c = np.interp(hours, 24.0 * np.arange(num_days) + 12, 8 + 2.5 * level[:, 0])
    return _Weather(
        temperature_c=daily_c + 4 * np.cos(2 * np.pi * (hours - 15) / 24),
        humidity_g_per_m3=np.maximum(6.5 + 0.8 * level[:, 1], 2.0),
        clearness=rng.uniform(0, 1, num_days),
    )


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
    leave_chance = -np.expm1(-step_h / rooms.stay_h)
    all_leave = rng.random(len(people)) < leave_chance
    staying = np.where(
        rooms.leaves_together, np.where(all_leave, 0, people), people - rng.binomial(people.astype(int), leave_chance)
    )
    parties = rng.poisson(attendance * rooms.capacity / (rooms.party_size * rooms.stay_h) * step_h)
    arriving = parties + rng.poisson(parties * (rooms.party_size - 1))
    return np.minimum(staying + arriving, rooms.capacity)
