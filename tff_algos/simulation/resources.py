"""What a device can spend: its resource level R_i, and the fine-tuning that follows from it. NumPy only.

After Vasishtha 2025 ("Adaptive Meta-Learning for Personalized Federated Learning in Resource-Constrained IoT
Environments", sections 3.3 and 4.1), for every algorithm whose clients fine-tune at the end. Static, as in the paper:
R_i ~ U(0.1, 1.0), drawn once. Dynamic, a limitation that the paper names: a device has a battery with charge b_i and
other work with load l_i, and

    R_i(t) = R_i * b_i(t) * (1 - l_i(t))
    b_i(t + 1) = clip(b_i(t) + PLUGGED_IN_GAIN * p_i(t) - FULL_WORK_DRAIN * R_i(t) * a_i(t), 0, 1)
    l_i(t + 1) = LOAD_MEMORY * l_i(t) + (1 - LOAD_MEMORY) * u_i(t)

with p_i(t) ~ Bernoulli(PLUGGED_IN_CHANCE), u_i(t) ~ U(0, 1), and a_i(t) = 1 if the device took part in the round, else
IDLE_DRAIN. The constants are assumptions: a device that works at full power empties its battery in ten rounds.
"""

from typing import NamedTuple

import numpy as np

from tff_algos.seeds import derive_generator
from tff_algos.settings.fine_tuning import MAX_RESOURCE, MIN_RESOURCE, RESOURCES, SAME

PLUGGED_IN_CHANCE = 0.25
PLUGGED_IN_GAIN = 0.2
FULL_WORK_DRAIN = 0.1
IDLE_DRAIN = 0.1
LOAD_MEMORY = 0.7
LEAST_RESOURCE = 1e-3  # keeps weights and step sizes above 0


class DeviceState(NamedTuple):
    """Charge b_i in [0, 1] and load l_i in [0, 1] of each device, float64, shape (clients,)."""

    charge: np.ndarray
    load: np.ndarray


class FineTuningPlan(NamedTuple):
    """What each device does at the end: N_i, int32, and alpha_i, float64, both of shape (clients,)."""

    num_steps: np.ndarray
    learning_rates: np.ndarray


def draw_devices(
    num_clients: int,
    seed: int,
    low: float = MIN_RESOURCE,
    high: float = MAX_RESOURCE,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, DeviceState]:
    """R_i of each device, and batteries and loads at the start: a function of the run's seed, for every algorithm.

    R_i ~ U(low, high), b_i ~ U(0.5, 1) and l_i ~ U(0, 0.5). With `known`, R_i is that, as where the devices come from a
    file; batteries and loads are drawn in any case.
    """
    generator = derive_generator(seed, "resources")
    # In this order, and also where R_i is known, so that batteries and loads do not depend on that.
    drawn = generator.uniform(low, high, num_clients)
    state = DeviceState(generator.uniform(0.5, 1.0, num_clients), generator.uniform(0.0, 0.5, num_clients))
    return (drawn if known is None else known), state


def compute_dynamic_resources(resources: np.ndarray, state: DeviceState) -> np.ndarray:
    """R_i(t), float64, shape (clients,), at least LEAST_RESOURCE."""
    return np.maximum(resources * state.charge * (1 - state.load), LEAST_RESOURCE)


def advance_devices(
    state: DeviceState, current: np.ndarray, took_part: np.ndarray, generator: np.random.Generator
) -> DeviceState:
    """Batteries and loads a round later.

    Args:
      state: before the round.
      current: R_i(t) in the round, shape (clients,).
      took_part: who took part, bool, shape (clients,).
      generator: draws who is plugged in, and the new loads.
    """
    plugged_in = generator.random(len(current)) < PLUGGED_IN_CHANCE
    # By what the device can spend now, which falls with its charge: an empty battery drains next to nothing.
    drain = FULL_WORK_DRAIN * current * np.where(took_part, 1.0, IDLE_DRAIN)
    charge = np.clip(state.charge + PLUGGED_IN_GAIN * plugged_in - drain, 0, 1)
    load = LOAD_MEMORY * state.load + (1 - LOAD_MEMORY) * generator.random(len(current))
    return DeviceState(charge, load)


def plan_fine_tuning(rule: str, resources: np.ndarray, max_steps: int, max_rate: float) -> FineTuningPlan:
    """Steps and rate of every device: N_i = N_max R_i / R_max, and alpha_i = alpha_max R_i / R_max.

    With steps and rate both in proportion to R_i, the distance that a device moves goes with R_i squared; the other
    rules are controls.

    Args:
      rule: "resources" (both in proportion to R_i, section 3.3), "steps" (steps alone) or "same" (neither).
      resources: R_i, shape (clients,).
      max_steps: N_max.
      max_rate: alpha_max.
    """
    most, num_devices = resources.max(), len(resources)
    # Rounded half up, and at least one step each; of no steps at most, none.
    steps = np.full(num_devices, max_steps) if rule == SAME else np.floor(max_steps * resources / most + 0.5)
    rates = max_rate * resources / most if rule == RESOURCES else np.full(num_devices, max_rate)
    return FineTuningPlan(np.maximum(steps, min(max_steps, 1)).astype(np.int32), rates)
