"""Start indices, ages and aggregation weights (Hu et al. 2021, Eqs. 7, 9, 13, 14). NumPy only.

Aggregation t = 1, 2, ... turns the global model theta(t) into theta(t + 1), which all ready devices then get. Device k
starts from theta(s_k(t)), and its age is a_k(t) = t - s_k(t).

Deviation: Eq. (7) is taken with t' < t. As printed, with t' <= t, a ready device would count its present readiness as
the reception of a model that it has yet to get, and would have the age -1. A device that was never ready before has
s_k = 1, the initial model. The freshest age is 0.
"""

import numpy as np

from tff_algos.async_periodic.config import AVERAGED_DEVICES, WEIGHTINGS
from tff_algos.settings.config_fields import ConfigError

FIRST_INDEX = 1


def create_start_indices(num_clients: int) -> np.ndarray:
    """s_k(1): all devices start from theta(1); int64, shape (clients,)."""
    return np.full(num_clients, FIRST_INDEX, np.int64)


def record_reception(start_indices: np.ndarray, clients: np.ndarray, index: int) -> np.ndarray:
    """s_k, Eq. (7), after devices got theta(`index`); index = t + 1 for the ready ones of aggregation t."""
    start_indices = start_indices.copy()
    start_indices[clients] = index
    return start_indices


def compute_ages(start_indices: np.ndarray, index: int) -> np.ndarray:
    """a_k(t) = t - s_k(t), Eq. (9), at aggregation t = `index`; int64, shape (clients,)."""
    return index - start_indices


def compute_weights(
    weighting: str,
    averaged_devices: str,
    scheduled: np.ndarray,
    num_examples: np.ndarray,
    ages: np.ndarray,
    gamma: float,
) -> np.ndarray:
    """w_k(t) of all devices, float64, shape (clients,), sums to 1.

    With "all" devices, those that are not scheduled have weights as well, for their start models, Eq. (10).

    Args:
      weighting: "equal", Eq. (13), or "age_aware", Eq. (14).
      averaged_devices: the set P: "scheduled" or "all".
      scheduled: indices of the scheduled devices, at least one.
      num_examples: |S_k|, at least 1, shape (clients,).
      ages: a_k(t), shape (clients,).
      gamma: above 1 favours old updates, below 1 fresh ones; 1 is "equal", to the bit.

    Raises:
      ConfigError: an unknown choice, or gamma is not finite and above 0.
      ValueError: nobody is scheduled; a period in which nobody is ready has no weights.
    """
    _check_weighting(weighting, averaged_devices, gamma)
    if not len(scheduled):
        raise ValueError("weights of no devices: expected at least one scheduled device")
    members = scheduled if averaged_devices == "scheduled" else np.arange(len(num_examples))
    weights = np.zeros(len(num_examples))
    counted_ages = ages[members] if weighting == "age_aware" else np.zeros(len(members))
    weights[members] = compute_age_aware_weights(num_examples[members], counted_ages, gamma)
    return weights


def compute_age_aware_weights(num_examples: np.ndarray, ages: np.ndarray, gamma: float) -> np.ndarray:
    """|S_k| gamma^a_k / sum_i |S_i| gamma^a_i, Eq. (14), over the given devices; with ages of 0 this is Eq. (13).

    The powers are divided by the largest one, in logarithms, so that none overflows and at least one is 1.
    """
    logarithms = np.asarray(ages, np.float64) * np.log(gamma)
    weights = num_examples * np.exp(logarithms - logarithms.max())
    return weights / weights.sum()


def _check_weighting(weighting: str, averaged_devices: str, gamma: float) -> None:
    if weighting not in WEIGHTINGS:
        raise ConfigError("weighting", weighting, "one of " + ", ".join(WEIGHTINGS))
    if averaged_devices not in AVERAGED_DEVICES:
        raise ConfigError("averaged_devices", averaged_devices, "one of " + ", ".join(AVERAGED_DEVICES))
    if not 0 < gamma < np.inf:
        raise ConfigError("gamma", gamma, "a number above 0")
